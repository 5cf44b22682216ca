"""The agent of the property test: a tool of every kind, and a model that reads its script from the prompt.

What truly happened is written into a book outside of Temporal.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, CallDeferred, FunctionToolset, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from perdure import App, Approval, DurableAgent, ToolPolicy, current_call
from tests.decisions.scenario import Call, Scenario

SOON = timedelta(seconds=0.2)
ANN_OR_BOB = ("ann", "bob")
POLICIES = {
    "policy*": ToolPolicy(approval=Approval(approvers=ANN_OR_BOB, allow_edit=True)),
    "quorum*": ToolPolicy(approval=Approval(approvers=(*ANN_OR_BOB, "eve"), quorum=2, allow_edit=True)),
    "when*": ToolPolicy(approval=Approval(when=lambda _, args: _large(args["n"]))),
    "brief_external*": ToolPolicy(wait=SOON),
    "brief*": ToolPolicy(approval=Approval(approvers=ANN_OR_BOB, expires_after=SOON)),
    "fails*": ToolPolicy(approval=Approval(approvers=ANN_OR_BOB, expires_after=SOON, on_expiry="fail")),
    "escalates*": ToolPolicy(
        approval=Approval(
            approvers=ANN_OR_BOB,
            expires_after=SOON,
            on_expiry="escalate",
            escalate_to=Approval(approvers=("boss",)),
        )
    ),
}


@dataclass
class Log:
    """What truly happened in one run."""

    asked: list[int] = field(default_factory=list[int])
    """The turns for which the model was asked."""
    ran: list[tuple[str, str, dict[str, Any]]] = field(default_factory=lambda: [])
    """Key, tool and arguments of each call whose tool did its work."""
    began: list[tuple[str, str]] = field(default_factory=lambda: [])
    """Key and tool of each call whose tool asked for a decision or a result itself."""
    released: defaultdict[int, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """By turn: whether the model may answer."""


Book = defaultdict[str, Log]
"""By workflow id."""


def prompt_of(run: str, scenario: Scenario) -> str:
    """The prompt of a run: its id and the script of its model."""
    turns = [
        [_part(step, index, call) for index, call in enumerate(one.calls)] for step, one in enumerate(scenario.steps)
    ]
    return json.dumps({"run": run, "turns": turns})


def _part(step: int, index: int, call: Call) -> list[Any]:
    ids = {"own": f"s{step}c{index}", "empty": "", "equal": "equal", "reused": "s0c0"}
    return [call.tool, call.sent_args, ids[call.id]]


def shop(book: Book) -> App:
    """A new app around a book that outlives its workers."""

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        script = json.loads(_prompt(messages))
        log, turn = book[script["run"]], sum(isinstance(message, ModelResponse) for message in messages)
        log.asked.append(turn)
        await log.released[turn].wait()
        if turn == len(script["turns"]):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*call) for call in script["turns"][turn]])

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    outside = [
        ToolDefinition(name=name, parameters_json_schema=schema, sequential=name.endswith("_alone"))
        for tool in ("external", "brief_external")
        for name in (tool, f"{tool}_alone")
    ]
    toolsets = [tools(book), ExternalToolset[None](outside, id="outside")]
    make: Any = Agent
    agent = make(FunctionModel(model), name="shop", toolsets=toolsets, retries=20)
    return App(agents=[DurableAgent(agent, policies=POLICIES)])


def tools(book: Book) -> FunctionToolset[None]:
    """Each tool twice: one that runs beside others and one that runs alone."""
    made = FunctionToolset[None](id="shop")

    def worked(ctx: RunContext[None], n: int, note: str = "none") -> str:
        """Do the work."""
        call = current_call()
        book[call.workflow_id].ran.append((call.key, ctx.tool_name or "", {"n": n, "note": note}))
        return f"{ctx.tool_name} {n}"

    def asks(ctx: RunContext[None], n: int, note: str = "none") -> str:
        """Ask first."""
        if ctx.tool_call_approved:
            return worked(ctx, n, note)
        book[current_call().workflow_id].began.append((current_call().key, ctx.tool_name or ""))
        raise ApprovalRequired(metadata={"why": n})

    def defers(ctx: RunContext[None], n: int, note: str = "none") -> str:
        """Have it done elsewhere."""
        book[current_call().workflow_id].began.append((current_call().key, ctx.tool_name or ""))
        raise CallDeferred

    for alone in (False, True):
        suffix = "_alone" if alone else ""
        for name in ("plain", "policy", "quorum", "when", "brief", "fails", "escalates"):
            made.tool(name=name + suffix, sequential=alone)(worked)
        made.tool(name="required" + suffix, sequential=alone, requires_approval=True)(worked)
        made.tool(name="asks" + suffix, sequential=alone)(asks)
        made.tool(name="defers" + suffix, sequential=alone)(defers)
    return made


def _prompt(messages: list[ModelMessage]) -> str:
    part = next(part for part in messages[0].parts if isinstance(part, UserPromptPart))
    assert isinstance(part.content, str)
    return part.content


def _large(n: int) -> bool:
    """The predicate of `when`: asked where it is large, and where it fails."""
    if n < 0:
        raise ValueError("a fault of the predicate")
    return n > 10
