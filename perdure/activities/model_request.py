"""The activity `model_request`: one step of the user's agent, from the request to the plan for its calls."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any, cast

from pydantic_ai import AgentRun, CallToolsNode, ModelRequestNode
from pydantic_ai.messages import UserPromptPart
from temporalio import activity

from perdure.activities.containment import contained
from perdure.activities.counted import TooLarge
from perdure.activities.drive import Place, advance, ended_with, opened, place
from perdure.activities.faults import fault_of, log_error, provider_errors
from perdure.activities.finish import Finished, finished_step, interrupted_step, without_calls
from perdure.activities.listing import list_called
from perdure.activities.live import heartbeats
from perdure.activities.runtime import Runtime
from perdure.activities.seam import Answered, Seam
from perdure.activities.streaming import can_stream, show
from perdure.activities.transcript import Conversation
from perdure.activities.unmatched import Unmatched
from perdure.context import Live
from perdure.contracts import Step, StepInput

Node = Any


class ModelRequests:
    """Holds what the worker has opened; its method is the activity."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="model_request")
    async def model_request(self, input: StepInput) -> Step:
        """Make one model request and plan its calls.

        Provider and infrastructure errors before the model has answered are raised, for Temporal to retry. Once it has
        answered nothing is raised: what went wrong travels as `Step.error`, with the response and what it cost.
        """
        with provider_errors():
            async with heartbeats() as live:
                here = await place(self._runtime, input)
                step = await _request(here, live, input, self._runtime.unmatched)
        self._hold(here, step)
        return step

    def _hold(self, here: Place, step: Step) -> None:
        """Keep the conversation for the calls of the step. Only a cache: a fault here doesn't undo the answer."""
        try:
            if step.entry is not None:
                self._runtime.transcripts.hold(here.conversation.extended([step.entry]))
        except Exception as error:
            log_error("the transcript could not be cached", error)


async def _request(here: Place, live: Live, input: StepInput, unmatched: Unmatched) -> Step:
    seam = Seam(collect=True, retries=here.retries.tools)
    answered = Answered(used_ids=here.conversation.call_ids(), id_seed=f"{here.run_id}.{here.step}")
    messages, prompt = first_or_next(here.conversation)
    async with opened(here, [seam, answered], messages, prompt) as run:
        end = Finished(here=here, seam=seam, run=run, before=input.usage, answered=answered)
        try:
            with contained():
                end.node = await _ask(run, here, live)
                end.warnings = await _judged(unmatched, end)
                await _decide(end)
        except asyncio.CancelledError:
            if _was_asked_to() and end.keep_partial_text():
                return interrupted_step(end)
            raise
        except Exception as error:
            if answered.response is None and isinstance(error, TooLarge):
                return Step(counted_input=error.tokens)
            if answered.response is None:
                raise
            log_error("after the model answered", error)
            end.error = fault_of(end.cut_off_call() or error)
        try:
            return await finished_step(end)
        except Exception as error:
            log_error("the answer could not be carried", error)
            return Step(error=fault_of(error), usage=end.usage())


async def _judged(unmatched: Unmatched, end: Finished) -> list[str]:
    """What is new of policies that apply to no tool. A fault here doesn't undo the answer."""
    try:
        run_id = activity.info().workflow_run_id or ""
        return await unmatched.judge(end.here.durable, end.run, end.seam, run_id)
    except Exception as error:
        log_error("the policies could not be judged", error)
        return []


def _was_asked_to() -> bool:
    """Whether the cancel is the workflow's, and not the worker's end."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def first_or_next(conversation: Conversation) -> tuple[list[Any], Any]:
    """The history and the prompt to open a run with.

    The first request of a run is made from the prompt, since only then does Pydantic AI add system prompts. Where
    several messages came before the first answer, their contents are one prompt.
    """
    pending = conversation.request()
    users = [part for part in pending.parts if isinstance(part, UserPromptPart)]
    if conversation.messages or len(users) < len(pending.parts):
        return [*conversation.messages, pending], None
    if len(users) == 1:
        return [], users[0].content
    contents = [[part.content] if isinstance(part.content, str) else part.content for part in users]
    return [], [item for content in contents for item in content]


async def _ask(run: AgentRun[Any, Any], here: Place, live: Live) -> Node:
    """Drive the agent up to the model's answer."""
    node = await advance(run, run.next_node)
    if isinstance(node, ModelRequestNode) and can_stream(here.model):
        async with cast("ModelRequestNode[Any, Any]", node).stream(run.ctx) as stream:
            async for event in stream:
                show(live, event)
    return await advance(run, node)


async def _decide(end: Finished) -> None:
    """Let Pydantic AI validate the calls and the output of the response, unless a hook wants another request."""
    if not isinstance(end.node, CallToolsNode):
        return
    node = cast("CallToolsNode[Any, Any]", end.node)  # pyright: ignore[reportUnknownMemberType]
    await list_called(end.run, {call.tool_name for call in node.model_response.tool_calls})
    if await _text_wins(end, copy(node)):
        return
    if end.settles_later():
        node.model_response = without_calls(node.model_response, end.output_names())
    await end.advance(node)


async def _text_wins(end: Finished, node: CallToolsNode[Any, Any]) -> bool:
    """With `end_strategy='early'`, text that is a valid structured output ends the run, and plain calls are skipped.

    Pydantic AI decides so only beside tools of kind `function`, which the seam has changed; so it is asked here with
    the calls left out. Text that isn't valid costs no retry then.
    """
    if not end.text_may_win():
        return False
    deps, state = end.run.ctx.deps, end.run.ctx.state
    used, most = state.output_retries_used, deps.max_output_retries
    deps.max_output_retries = used + 1
    response = node.model_response
    node.model_response = without_calls(response, {call.tool_name for call in response.tool_calls})
    result = await advance(end.run, node)
    state.output_retries_used, deps.max_output_retries = used, most
    if ended_with(result) is None:
        return False
    end.node, end.skipped = result, response.tool_calls
    return True
