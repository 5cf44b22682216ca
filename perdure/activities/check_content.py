"""The activity `check_content`: whether a message is something a model can be given."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import UserContent
from pydantic_core import to_json
from temporalio import activity

from perdure.contracts import ContentInput, ResultCheck, validation_problems

CONTENT = TypeAdapter[Any](str | list[UserContent])


@activity.defn(name="check_content")
async def check_content(input: ContentInput) -> ResultCheck:
    """Text is, and a list of text and Pydantic AI's content parts. Short: 10 s, 3 attempts."""
    return ResultCheck(problem=content_problem(input.content, "content"))


def content_problem(content: Any, name: str) -> str:
    """What is wrong with a message or prompt, as one line; nothing where a model can be given it."""
    try:
        CONTENT.validate_json(to_json(content))
    except ValidationError as error:
        return f"the {name} is neither text nor a list of content parts: {validation_problems(error, name)}"
    return ""
