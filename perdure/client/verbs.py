"""What a client sends to a run: decisions, messages, interrupts. Each is a Temporal update, answered by a worker."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.errors import Refused, RunClosed, missing
from perdure.client.payloads import readable
from perdure.contracts import (
    MAX_PAYLOAD,
    Decided,
    Heard,
    Json,
    Limits,
    NewLimits,
    NewModel,
    TurnView,
    VerbName,
    WhenBusy,
    payload_size,
)
from perdure.errors import InvalidRequest, RollingOver

ENDED = re.compile("completed|closing")
"""What the server says of a run that has ended, or ends or continues as new right now."""
REPEATED = ("AcceptedUpdateCompletedWorkflow", RollingOver.__name__)
"""Refusals that mean: send it again, to the run that continues this one."""
TRIES = 40
PAUSE = 0.25
"""Seconds between tries, at most."""

T = TypeVar("T")


class Verbs:
    """The verbs of a run. All need a worker: without one they wait for one. All raise `Refused` and `RunClosed`."""

    id: str
    _client: Client

    async def send(
        self, content: str | list[Any], *, when_busy: WhenBusy = "queue", id: str | None = None, by: str = ""
    ) -> TurnView:
        """Send a message to the agent. `queue`: it gets its own turn; `steer`: it joins the running one before its next
        model request; `interrupt`: it ends the running one. With an `id` of your own a repeat changes nothing."""
        return await self._update("send", message(content, when_busy=when_busy, id=id, by=by), TurnView)

    async def interrupt(self, *, by: str = "", reason: str = "") -> Heard:
        """End the running turn: running tools get their grace, what waits is superseded. The session goes on."""
        return await self._update("interrupt", _given(by=by, reason=reason), Heard)

    async def close(self, *, by: str = "", reason: str = "") -> Heard:
        """Take no further message: the session completes when those that wait have their answer."""
        return await self._update("close", _given(by=by, reason=reason), Heard)

    async def approve(
        self, call: str, *, by: str = "", reason: str = "", args: Json | None = None, token: str = ""
    ) -> Decided:
        """Let a call run, with other arguments where the policy allows it."""
        return await self.decide("approve", call, {"by": by, "reason": reason, "args": args, "token": token})

    async def deny(self, call: str, *, by: str = "", reason: str = "", token: str = "") -> Decided:
        """Don't let a call run; the model is told the reason."""
        return await self.decide("deny", call, {"by": by, "reason": reason, "token": token})

    async def complete(
        self, call: str, result: Any = None, *, error: str | None = None, by: str = "", token: str = ""
    ) -> Decided:
        """The result, or the error, of a call that is made outside."""
        what: Json = {"result": result} if error is None else {"error": error}
        return await self.decide("complete", call, {**what, "by": by, "token": token})

    async def set_limits(self, limits: Limits | Json, *, by: str = "", reason: str = "", token: str = "") -> NewLimits:
        """Change limits, as absolute values; only the fields that are set count. A run that waits for one goes on."""
        given = (limits if isinstance(limits, Limits) else Limits.model_validate(limits)).given()
        return await self._update(
            "set_limits", {"limits": given} | _given(by=by, reason=reason, token=token), NewLimits
        )

    async def set_model(self, model: str | None, *, by: str = "") -> NewModel:
        """Use another of the agent's models from the next request on; `None` = the agent's own."""
        return await self._update("set_model", {"model": model} | _given(by=by), NewModel)

    async def decide(self, verb: VerbName, call: str, sent: Json) -> Decided:
        """Send a decision with the fields of `Decide` or `Complete`."""
        empty = [name for name in ("by", "reason", "token", "args") if sent.get(name) in (None, "")]
        given = {"call": call} | {name: value for name, value in sent.items() if name not in empty}
        return await self._update(verb, given, Decided)

    async def _update(self, verb: str, argument: Json, answer: type[T]) -> T:
        check_size(argument)
        handle = self._client.get_workflow_handle(self.id)
        id = str(uuid.uuid4())

        async def execute() -> T:
            return await handle.execute_update(  # pyright: ignore[reportUnknownMemberType]
                verb, argument, id=id, result_type=answer
            )

        return await repeated(self._client, self.id, execute)


async def repeated(client: Client, run: str, execute: Callable[[], Awaitable[T]]) -> T:
    """The answer of an update, sent again where the run continues as new meanwhile. Raises `Refused`, `RunClosed`."""
    for attempt in range(TRIES):
        try:
            with readable():
                return await execute()
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            kind = cause.type if isinstance(cause, ApplicationError) and cause.type else "Refused"
            if kind not in REPEATED:
                raise Refused(kind, getattr(cause, "message", str(error))) from error
        except RPCError as error:
            if not await _goes_on(client, run, error):
                raise _lost(run, error) from error
        await asyncio.sleep(min(PAUSE, 0.02 * (attempt + 1)))
    raise Refused(RollingOver.__name__, f"run {run!r} was continuing as new all the time: send it again")


async def _goes_on(client: Client, run: str, error: RPCError) -> bool:
    """Whether what failed may be sent again: the server goes away, or a run of the chain has just ended."""
    if error.status == RPCStatusCode.UNAVAILABLE or "unexpected workflow task failure" in error.message.lower():
        return True
    if not ENDED.search(error.message):
        return False
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=WorkflowExecution(workflow_id=run))
    described = await client.workflow_service.describe_workflow_execution(request, retry=True)
    return described.workflow_execution_info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING


def _lost(run: str, error: RPCError) -> Exception:
    if error.status == RPCStatusCode.NOT_FOUND and ENDED.search(error.message):
        return RunClosed(f"run {run!r} has ended: nothing can be sent to it any more")
    return missing(run, error)


def message(content: str | list[Any], *, when_busy: WhenBusy, id: str | None, by: str) -> Json:
    """The argument of `send`. Without an id of the caller's it gets one, so that sending it again is harmless."""
    return _given(content=content, when_busy=when_busy, id=id or uuid.uuid4().hex, by=by)


def check_size(argument: Json) -> None:
    """Raise `InvalidRequest` for what is too large to be sent."""
    if (size := payload_size(argument)) > MAX_PAYLOAD:
        raise InvalidRequest(f"what is sent has {size} bytes; it may have {MAX_PAYLOAD}")


def _given(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value != ""}
