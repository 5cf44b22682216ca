"""From a driven run of the agent to the `Step` that goes into history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import AgentRun, DeferredToolRequests
from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import (
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from perdure.activities.carry import dump_parts, dump_response, run_usage, usage_between
from perdure.activities.drive import Place, advance, asked_again, ended_with
from perdure.activities.output import dump_output
from perdure.activities.plan import planned_calls
from perdure.activities.room import room
from perdure.activities.seam import Answered, Collected, Seam
from perdure.activities.sent import changed_parts
from perdure.activities.surrogates import joined
from perdure.contracts import MAX_PAYLOAD, Fault, Json, Step, StepRetries, Usage, payload_size
from perdure.errors import OutputTooLarge

SKIPPED = "Tool not executed - a final result was already processed."
"""Pydantic AI's words for a call that an output made needless."""
INTERRUPTED = "interrupted_requests"
"""Among the usage's details: requests that were cancelled while the model answered."""
ENDED = "The run ended before this call was made."


@dataclass
class Finished:
    """A run of the agent that has got as far as one step goes, and what is left of it."""

    here: Place
    seam: Seam
    run: AgentRun[Any, Any]
    before: Usage
    answered: Answered = field(default_factory=Answered)
    node: Any = None
    """The node after the step: a new request with answers, or the end with an output."""
    collected: DeferredToolRequests | None = None
    """The calls that were collected."""
    error: Fault | None = None
    skipped: Sequence[ToolCallPart] = ()
    """Calls that an output made needless."""
    warnings: Sequence[str] = ()
    """What whoever looks at the run should know."""

    @property
    def response(self) -> ModelResponse | None:
        """The model's answer, if there is one, as hooks have left it, or as it was where one refused it."""
        return self.seam.response or self.answered.response

    async def advance(self, node: Any) -> None:
        """Run the node of the calls."""
        try:
            self.node = await advance(self.run, node)
        except Collected as collected:
            self.collected = collected.requests

    def keep_partial_text(self) -> bool:
        """Take the text that the model had got to when its stream was cut off; whether there is any. What it began to
        think or to call is left out: a provider refuses half of that."""
        history = self.run.ctx.state.message_history
        partial = history[-1] if history else None
        if not isinstance(partial, ModelResponse) or partial.state != "interrupted":
            return False
        text = [part for part in partial.parts if isinstance(part, TextPart) and part.content]
        self.answered.response = joined(replace(partial, parts=text))
        return bool(text)

    def cut_off_call(self) -> Exception | None:
        """Pydantic AI's own error where the response was cut off in the middle of its last call's arguments."""
        history = self.run.ctx.state.message_history
        if history and isinstance(history[-1], ModelRequest) and history[-1].state == "interrupted":
            history.pop()
        try:
            self.run.ctx.state.check_incomplete_tool_call()
        except IncompleteToolCall as error:
            return error
        return None

    def output_names(self) -> set[str]:
        """The names of the output tools of this step."""
        tools = self.run.ctx.deps.tool_manager.tools or {}
        return {name for name, tool in tools.items() if tool.tool_def.kind == "output"}

    def settles_later(self) -> bool:
        """Output calls beside others are decided after these, except with `early`, where they may skip them."""
        names = {call.tool_name for call in self.response.tool_calls} if self.response else set[str]()
        outputs = names & self.output_names()
        return bool(outputs) and names != outputs and self.run.ctx.deps.end_strategy != "early"

    def text_may_win(self) -> bool:
        """Whether text or an image beside plain calls might be the output: see `_text_wins`."""
        response, request = self.response, self.seam.request
        if response is None or request is None or not response.tool_calls or self.run.ctx.deps.end_strategy != "early":
            return False
        kinds = {
            self.seam.tools[call.tool_name].tool_def.kind
            for call in response.tool_calls
            if call.tool_name in self.seam.tools
        }
        if kinds - {"function"} or {call.tool_name for call in response.tool_calls} & self.output_names():
            return False
        parameters = request.model_request_parameters
        structured = parameters.output_mode in ("native", "prompted") and bool(response.text)
        return structured or (parameters.allow_image_output and bool(response.images))

    def usage(self) -> Usage:
        """What the step used."""
        response = self.response
        unpriced = 1 if response is not None and response.usage.cost is None else 0
        return usage_between(run_usage(self.before), self.run.usage, unpriced)

    def retries(self) -> StepRetries:
        """What the step adds to the counts."""
        manager, seeds = self.run.ctx.deps.tool_manager, self.here.retries
        return StepRetries(
            failed=sorted(manager.failed_tools),
            output=self.run.ctx.state.output_retries_used - seeds.output,
            refused=sorted(manager.availability_refused - set(seeds.refused)),
        )


async def finished_step(end: Finished) -> Step:
    """The step as data. Raises `ArgumentsNotCarried`, `NotCarried` or `OutputTooLarge`."""
    response = end.response
    step = Step(
        entry=_entry(end),
        error=end.error,
        usage=end.usage(),
        model=response.model_name if response else None,
        finish_reason=response.finish_reason if response else None,
        parts=dump_parts(unanswered(response.tool_calls if response else ()) if end.error else answers(end)),
        retries=StepRetries() if end.error else end.retries(),
        settle="after_calls" if end.error is None and end.settles_later() else "now",
        warnings=list(end.warnings),
    )
    outputs = _outputs(end) if step.settle == "after_calls" else []
    step = step.model_copy(update=await _end_of(end) | {"outputs": outputs})
    _check_size(step)
    return step


def _check_size(step: Step) -> None:
    """The calls of a step are started by one workflow task, so a payload store makes no more room for them."""
    if (size := payload_size(step)) > (most := room()):
        raise OutputTooLarge(
            f"the model's response and its plan have {size} bytes; a step may have {most}. "
            "Ask for less at a time, or lower max_tokens."
        )
    if (size := payload_size(step.calls)) > MAX_PAYLOAD:
        raise OutputTooLarge(
            f"the calls of the model's response have {size} bytes; together they may have {MAX_PAYLOAD}"
        )


def interrupted_step(end: Finished) -> Step:
    """The step of a request that was cancelled while the model answered. What it cost isn't known, as a rule: it is
    counted in the usage's details instead."""
    usage = usage_between(run_usage(end.before), end.run.usage)
    counted = usage.model_copy(update={"details": {**usage.details, INTERRUPTED: 1}})
    model = end.response.model_name if end.response else None
    return Step(entry=_entry(end), interrupted=True, usage=counted, model=model)


async def _end_of(end: Finished) -> dict[str, Any]:
    """The calls or the output of the step, and whether a call has to be mended."""
    if end.error is not None or end.response is None:
        return {}
    update: dict[str, Any] = {"retried": _has_retried(end)}
    if end.collected is not None:
        calls = await planned_calls(end.here.durable, end.seam, end.response, end.collected, end.here.step)
        return update | {"calls": calls}
    result = ended_with(end.node)
    if result is None:
        return update
    return update | {"output": dump_output(end.here.durable.agent.output_type, result.output)}


def _outputs(end: Finished) -> list[Json]:
    """The output calls of the response."""
    calls = end.response.tool_calls if end.response else ()
    names = end.output_names()
    return [{"tool_call_id": call.tool_call_id, "tool": call.tool_name} for call in calls if call.tool_name in names]


def _has_retried(end: Finished) -> bool:
    return any(
        isinstance(part, ToolReturnPart)
        and part.outcome == "retried"
        and (tool := end.seam.tools.get(part.tool_name)) is not None
        and tool.tool_def.kind == "function"
        for part in answers(end)
    )


def answers(end: Finished) -> list[ModelRequestPart]:
    """The parts that answer the response, as far as the step itself has answers."""
    if end.skipped:
        return [returned(call, SKIPPED, "success") for call in end.skipped]
    if (parts := asked_again(end.node)) is not None:
        refused = end.seam.response is None and end.response is not None
        return [*unanswered(end.response.tool_calls), *parts] if refused and end.response else parts
    last = end.run.ctx.state.message_history[-1]
    ended = end.collected is not None or ended_with(end.node) is not None
    return list(last.parts) if ended and isinstance(last, ModelRequest) else []


def unanswered(calls: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
    """Answers for the calls of a response that ended the run: a call without one makes a transcript unusable."""
    return [returned(call, ENDED, "interrupted") for call in calls]


def returned(call: ToolCallPart, text: str, outcome: Any) -> ToolReturnPart:
    """The answer to a call that isn't run."""
    return ToolReturnPart(tool_name=call.tool_name, content=text, tool_call_id=call.tool_call_id, outcome=outcome)


def _entry(end: Finished) -> Json | None:
    """The transcript's entry, with the request's parts where they aren't what the transcript gives."""
    known, responded = end.here.conversation, end.response is not None
    parts = changed_parts(end.run, known, responded)
    if end.response is None:
        return None if parts is None else {"kind": "request", "request_parts": parts}
    entry: Json = {"kind": "response", "response": dump_response(end.response)}
    entry |= {} if parts is None else {"request_parts": parts}
    established = sorted(end.run.ctx.deps.established_tool_names or ())
    same = known.established is not None and established == list(known.established)
    return entry if same else entry | {"established": established}


def without_calls(response: ModelResponse, names: Collection[str]) -> ModelResponse:
    """The response without the calls of these tools."""
    kept = [part for part in response.parts if not (isinstance(part, ToolCallPart) and part.tool_name in names)]
    return replace(response, parts=kept)
