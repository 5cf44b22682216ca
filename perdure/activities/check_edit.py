"""The activity `check_edit`: whether a person's arguments for a call that waits are valid, before they are accepted."""

from __future__ import annotations

from pydantic_ai.exceptions import UnexpectedModelBehavior
from temporalio import activity

from perdure.activities.drive import Place, advance, asked_again, at_calls, opened, place
from perdure.activities.plan import planned_calls
from perdure.activities.runtime import Runtime
from perdure.activities.seam import Collected, Seam
from perdure.activities.transcript import only_call
from perdure.contracts import EditCheck, EditInput, PlannedCall
from perdure.errors import InternalError, PerdureError


class CheckEdit:
    """Holds what the worker has opened; its method is the activity. Short: 10 s, 3 attempts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="check_edit")
    async def check_edit(self, input: EditInput) -> EditCheck:
        """Validate the arguments as the model's would be: types, validators, hooks, and the gate's predicate anew."""
        here = await place(self._runtime, input)
        try:
            return await _check(here, input)
        except PerdureError as error:
            return EditCheck(problem=str(error))


async def _check(here: Place, input: EditInput) -> EditCheck:
    call, response = input.call, here.conversation.response
    if response is None:
        raise InternalError("there is no response whose call could be edited")
    edited = only_call(response, call.tool_call_id, input.args)
    seam = Seam(collect=True)
    async with opened(here, [seam], [*here.conversation.messages[:-1], edited]) as run:
        try:
            node = await advance(run, await at_calls(here, run))
        except Collected as collected:
            planned = await planned_calls(here.durable, seam, edited, collected.requests, here.step)
            return EditCheck(call=_kept(call, planned[0]))
        except UnexpectedModelBehavior as error:
            return EditCheck(problem=str(error.__cause__ or error))
        answers = asked_again(node) or []
        return EditCheck(problem="; ".join(str(getattr(part, "content", "")) for part in answers) or "not valid")


def _kept(before: PlannedCall, edited: PlannedCall) -> PlannedCall:
    """The call with new arguments, under the key and the terms that were shown."""
    return before.model_copy(update={"args": edited.args})
