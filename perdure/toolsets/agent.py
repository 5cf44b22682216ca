"""`agent_tool` and `handoff_tool`: agents as tools of other agents.

An agent tool is a run of its own, a child workflow: it sees nothing of the conversation but what it is given, and its
output is the call's result. A handoff moves the conversation itself to the other agent, for the rest of the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import Tool

from perdure.contracts import AgentTerms, Limits, Target
from perdure.errors import DeclarationError
from perdure.names import check_name
from perdure.toolsets.json_types import closed
from perdure.toolsets.signature import fields_of, of_function, of_model
from perdure.toolsets.target import metadata_of
from perdure.typed import check_arguments, shown

MAX_DEPTH = 3
NO_LETTER = re.compile(r"[^A-Za-z0-9_-]")


async def _prompted(prompt: str) -> Any:
    """What the model gives where no `input` is declared. It is never called: the tool is made of its signature.

    Args:
        prompt: What to do, with all that is needed for it: nothing of this conversation is passed on.
    """


async def _handed() -> str:
    """A handoff without `input`. It is never called: the tool is made of its signature."""
    return ""


def agent_tool(
    agent: str,
    *,
    name: str | None = None,
    description: str | None = None,
    input: Any = None,
    prompt: str = "prompt",
    params: Mapping[str, Any] | None = None,
    inherit: Sequence[str] = (),
    model: str | None = None,
    limits: Limits | None = None,
    task_queue: str | None = None,
    max_depth: int = MAX_DEPTH,
    **more: Any,
) -> Tool[Any]:
    """A tool that another agent answers: `Agent(…, tools=[agent_tool("researcher")])`. A policy applies as to any tool.

    Args:
        agent: the name of the other agent.
        name: what the model calls the tool; `None`: `ask_` and the agent's name.
        description: what the model reads of it.
        input: what the model gives: a model, dataclass or TypedDict. Its field `prompt` is the other agent's prompt,
            every other field one of its params. A model refuses fields that it hasn't, unless its `model_config` says
            otherwise. `None`: the prompt alone.
        prompt: the name of that field.
        params: params of the other agent that are always the same.
        inherit: names of params that are the calling run's own. The model has no say in them.
        model: a key of the other agent's `models`.
        limits: what a run of it may use. It never has more than the calling run has left.
        task_queue: where its workers are, if elsewhere. Else it is an agent of the same `App`.
        max_depth: how deep runs may start each other: 1 = only a run that nobody has started may call it.
        more: what Pydantic AI's `Tool` takes: `sequential`, `requires_approval`, `max_retries`, …

    Raises:
        DeclarationError: for whatever is wrong here, and when the `App` is built, for what is wrong about the agent.
    """
    where = f"agent_tool({shown(agent)})"
    check_arguments(agent_tool, locals(), where, own=("max_depth", "task_queue"))
    if type(max_depth) is not int or max_depth < 1:
        raise DeclarationError(f"{where}: max_depth={max_depth!r} must be at least 1, a whole number")
    if task_queue is not None:
        check_name(task_queue, f"{where}: task_queue")
    given = limits.given() if limits else {}
    terms = _terms(params, inherit, prompt=prompt, model=model, limits=given, max_depth=max_depth)
    target = Target(kind="agent", name=agent, task_queue=task_queue, agent=terms)
    text = description or f"Let the agent {agent!r} work on something, and wait for its answer."
    return _tool(target, name or _named("ask", agent), text, input, where, more)


def handoff_tool(
    agent: str,
    *,
    name: str | None = None,
    description: str | None = None,
    input: Any = None,
    params: Mapping[str, Any] | None = None,
    inherit: Sequence[str] = (),
    model: str | None = None,
    **more: Any,
) -> Tool[Any]:
    """A tool that hands the conversation to another agent of the `App`: `Agent(…, tools=[handoff_tool("billing")])`.

    Args:
        agent: the name of the other agent.
        name: what the model calls the tool; `None`: `transfer_to_` and the agent's name.
        description: what the model reads of it.
        input: what the model gives, as params of the other agent: a model, dataclass or TypedDict. `None`: nothing.
        params: params of the other agent that are always the same.
        inherit: names of params that stay what they are.
        model: a key of the other agent's `models`.
        more: what Pydantic AI's `Tool` takes.

    Raises:
        DeclarationError: as `agent_tool`.
    """
    where = f"handoff_tool({shown(agent)})"
    check_arguments(handoff_tool, locals(), where)
    terms = _terms(params, inherit, model=model)
    target = Target(kind="handoff", name=agent, agent=terms)
    text = description or f"Hand this conversation over to the agent {agent!r}, who goes on with it."
    return _tool(target, name or _named("transfer_to", agent), text, input, where, more)


def _terms(params: Mapping[str, Any] | None, inherit: Sequence[str], **more: Any) -> AgentTerms:
    return AgentTerms(params=dict(params or {}), inherit=list(inherit), **more)


def _named(verb: str, agent: str) -> str:
    return f"{verb}_{NO_LETTER.sub('_', agent)}"


def _tool(target: Target, name: str, description: str, input: Any, where: str, more: dict[str, Any]) -> Tool[Any]:
    default = _prompted if target.kind == "agent" else _handed
    given: Any = closed(input) if isinstance(input, type) and issubclass(input, BaseModel) else input
    stub = of_function(default, where) if given is None else of_model(given, None, name, where)
    _check_names(target, input, where)
    try:
        tool = Tool(stub, name=name, description=description, takes_ctx=False, **more)
    except (UserError, TypeError) as error:
        raise DeclarationError(f"{where}: {error}") from None
    tool.metadata = {**(tool.metadata or {}), **metadata_of(target)}
    return tool


def _check_names(target: Target, input: Any, where: str) -> None:
    """Every param comes from one place, and the prompt is there."""
    terms = target.agent or AgentTerms()
    fields = {"prompt": {"type": "string"}} if input is None else fields_of(input, where)
    if target.kind == "agent" and fields.get(terms.prompt, {}).get("type") != "string":
        raise DeclarationError(
            f"{where}: prompt={terms.prompt!r} must be a field of the input that is text. Its fields: {sorted(fields)}"
        )
    given = [*(name for name in fields if input is not None), *terms.params, *terms.inherit]
    if twice := sorted({name for name in given if given.count(name) > 1}):
        raise DeclarationError(f"{where}: {twice} come from more than one of input, params and inherit")
