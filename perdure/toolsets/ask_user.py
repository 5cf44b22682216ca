"""`ask_user`: a tool with which the model asks the person it works for. The run waits for the answer."""

from __future__ import annotations

from typing import Any

from pydantic_ai import CallDeferred, RunContext, Tool

TEXT = {"type": "string", "minLength": 1}


def _ask_user(question: str, choices: list[str] | None = None) -> str:
    """Ask the user a question and wait for the answer, for as long as it takes.

    Args:
        question: What to ask, with all the user needs to answer it.
        choices: The answers to choose from; without them the user answers in words.
    """
    raise CallDeferred(kind="question")


def _wait(ctx: RunContext[Any], question: str, choices: list[str] | None = None) -> None:
    """Defers the call as soon as its arguments are valid, so that no activity runs for it."""
    schema: dict[str, Any] = {"type": "string", "enum": choices} if choices else TEXT
    raise CallDeferred(metadata={"result_schema": schema}, kind="question")


ask_user: Tool[Any] = Tool(_ask_user, name="ask_user", args_validator=_wait)
"""Add it to an agent: `Agent(…, tools=[ask_user])`. Each call waits, with no open activity, for the update or signal
`complete` with the answer as text; of several `choices`, one of them. `ToolPolicy(wait=…)` limits how long."""
