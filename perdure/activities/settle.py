"""The activity `settle`: the output calls of a step, after its other calls have ended.

With `end_strategy` `graceful` and `exhaustive`, Pydantic AI runs function tools beside an output tool first, and a call
that has to be mended makes the output not count. Here the others are activities, so the output is decided on its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from temporalio import activity

from perdure.activities.carry import dump_parts, run_usage, usage_between
from perdure.activities.drive import Place, at_calls, ended_with, opened, place
from perdure.activities.faults import fault_of, log_error, provider_errors
from perdure.activities.finish import Finished, answers, returned, unanswered, without_calls
from perdure.activities.live import heartbeats
from perdure.activities.output import dump_output
from perdure.activities.room import room
from perdure.activities.runtime import Runtime
from perdure.activities.seam import Seam
from perdure.contracts import SettleInput, Settlement, Usage, payload_size
from perdure.errors import InternalError, OutputTooLarge

RETRY_FIRST = "Output not used as the final result - addressing tool retries from this round first."
NOT_USED = "Output tool not used - a final result was already processed."
"""Both in Pydantic AI's words, so that a model reads the same."""


class Settle:
    """Holds what the worker has opened; its method is the activity."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="settle")
    async def settle(self, input: SettleInput) -> Settlement:
        """Decide on the output calls of the last response. Not at all if a sibling call has to be mended."""
        with provider_errors():
            async with heartbeats():
                here = await place(self._runtime, input)
                return await _settle(here, input)


async def _settle(here: Place, input: SettleInput) -> Settlement:
    response = here.conversation.response
    if response is None:
        raise InternalError("there is no response to settle")
    seam = Seam(collect=True, retries=here.retries.tools, response=response)
    async with opened(here, [seam], here.conversation.messages) as run:
        end = Finished(here=here, seam=seam, run=run, before=input.usage)
        node = await at_calls(here, run)
        others = {call.tool_name for call in response.tool_calls} - end.output_names()
        node.model_response = without_calls(response, others)
        outputs = node.model_response.tool_calls
        if input.retried:
            return Settlement(parts=dump_parts(_not_used(outputs)))
        try:
            await end.advance(node)
            return _settlement(end)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log_error("while settling the output", error)
            return Settlement(error=fault_of(error), parts=dump_parts(unanswered(outputs)), usage=_used(end))


def _used(end: Finished) -> Usage:
    """What settling used; the request itself was counted with the step."""
    return usage_between(run_usage(end.before), end.run.usage)


def _settlement(end: Finished) -> Settlement:
    """What was decided. Raises `OutputTooLarge`: refused by Temporal, it would be made again."""
    result = ended_with(end.node)
    settlement = Settlement(
        parts=dump_parts(answers(end)),
        output=dump_output(end.here.durable.agent.output_type, result.output) if result else None,
        retries=end.retries(),
        usage=_used(end),
    )
    if (size := payload_size(settlement)) > (most := room()):
        raise OutputTooLarge(f"the output has {size} bytes as JSON; it may have {most}")
    return settlement


def _not_used(outputs: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
    texts = [RETRY_FIRST, *([NOT_USED] * (len(outputs) - 1))]
    return [returned(call, text, "success") for call, text in zip(outputs, texts, strict=True)]
