"""Arguments and faults of LangChain's tools, by the real library."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import (
    ToolException,
)
from pydantic import ValidationError
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import ToolPolicy
from tests.foreign import RAN, told
from tests.harness import activities
from tests.langchain_tools import Shout, an_app, failing, lookup, ranged
from tests.reading import everything
from tests.scripts import Script

pytestmark = pytest.mark.usefixtures("nothing_ran")


def say(error: Any) -> str:
    """The words of a tool."""
    assert isinstance(error, ValidationError)
    return f"{error.error_count()} things are wrong"


async def test_bad_arguments_are_asked_for_again_in_the_words_of_the_tool(client: Client, cache: int) -> None:
    tools = [ranged("plain"), ranged("text", "try again"), ranged("calls", say), lookup, Shout()]
    script = Script(
        {"plain": {"low": 2, "high": 1}},
        {"plain": {"low": -1}},
        {"text": {"low": -1}},
        {"calls": {"low": -1}},
        {"lookup": {"key": 1}},
        {"shout": {"text": 1}},
        {"plain": {"low": "1", "high": 3}},
        "done",
    )
    found, handle = await told(client, an_app(script, *tools), cache)
    assert [outcome for outcome, _ in found] == ["retried"] * 6 + ["success"]
    texts = [text.removesuffix("\n\nFix the errors and try again.") for _, text in found]
    assert texts[0] == "The arguments are not valid: $: Value error, low is above high"
    assert texts[1].startswith(
        "The arguments are not valid: $.low: Input should be greater than or equal to 0; $.high: "
    )
    assert texts[2:4] == ["try again", "2 things are wrong"]
    assert texts[4] == "The arguments are not valid: $.key: 1 is not of type 'string'"
    assert texts[5] == "The arguments are not valid: $.text: 1 is not of type 'string'"
    assert RAN == [(1, 3)]
    assert (await activities(handle)).count("tool:plain") == 1


def code(error: ToolException) -> str:
    """The words of a tool."""
    return f"code {error}"


async def test_s2_25_only_what_a_tool_handles_is_told(client: Client, cache: int) -> None:
    """A `ToolException` that the tool handles is for the model, at once; others are repeated as the policy says."""
    tools = [
        failing("plain", ValueError("password hunter2")),
        failing("unhandled", ToolException("password hunter2")),
        failing("shown", ToolException("no such key"), True),
        failing("text", ToolException("password hunter2"), "look elsewhere"),
        failing("calls", ToolException("12"), code),
    ]
    script = Script([ToolCallPart(one.name, {"key": one.name}) for one in tools], "done")
    policy = ToolPolicy(effect="safe", attempts=2, backoff=0.01)
    app = an_app(script, *tools, **{one.name: policy for one in tools})
    found, handle = await told(client, app, cache)
    assert found == [
        ("failed", "The tool failed with ValueError."),
        ("failed", "The tool failed with ToolException."),
        ("failed", "no such key"),
        ("failed", "look elsewhere"),
        ("failed", "code 12"),
    ]
    assert sorted(RAN) == ["calls", "plain", "plain", "shown", "text", "unhandled", "unhandled"]
    assert "hunter2" not in await everything(handle)
