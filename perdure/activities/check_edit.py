"""The activity `check_edit`: whether a person's arguments for a call that waits are valid, before they are accepted."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequestPart
from temporalio import activity

from perdure.activities.drive import Place, advance, asked_again, at_calls, only_call, opened, place
from perdure.activities.plan import key_of, planned_calls
from perdure.activities.runtime import Runtime
from perdure.activities.seam import Collected, Seam
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
            return _accepted(call, planned[0])
        except UnexpectedModelBehavior as error:
            return EditCheck(problem=str(error.__cause__ or error))
        answers = asked_again(node) or []
        return EditCheck(problem="; ".join(_problem(part) for part in answers) or "not valid")


def _problem(part: ModelRequestPart) -> str:
    """What the model would be told, in one line."""
    content: Any = getattr(part, "content", "")
    if not isinstance(content, list):
        return str(content)
    rows = cast("list[dict[str, Any]]", content)
    return "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows)


def _accepted(before: PlannedCall, edited: PlannedCall) -> EditCheck:
    """The call with new arguments and what its validator says of them, under its terms. Its key counts the edits and is
    bound to the arguments: nobody approves what wasn't shown."""
    if edited.after != before.after or edited.action == "unknown":
        return EditCheck(problem="with these arguments the call would be made in another way")
    place, _, _ = before.key.rpartition("-")
    first, _, count = place.partition("+")
    key = key_of(f"{first}+{int(count or 0) + 1}", before.tool, edited.args)
    return EditCheck(call=before.model_copy(update={"args": edited.args, "key": key, "metadata": edited.metadata}))
