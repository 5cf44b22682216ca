"""Connect to Temporal, start runs and find them."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, ListWorkflowExecutionsRequest
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfigProfile
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.asking import summary
from perdure.client.errors import ClientError, NoServer, RunClosed, RunExists
from perdure.client.filters import list_filter
from perdure.client.leaving import pause_at_exit
from perdure.client.run import QUERY_TIMEOUTS, RunHandle
from perdure.client.verbs import check_size, message, repeated
from perdure.client.views import RunStatus, RunSummary
from perdure.contracts import (
    MAX_PAYLOAD,
    MAX_STORED,
    TASK_QUEUE,
    WORKFLOW_TYPE,
    Json,
    Limits,
    RunRequest,
    Session,
    TurnView,
    WhenBusy,
    payload_size,
    validation_problems,
)
from perdure.converter import data_converter
from perdure.errors import InvalidRequest

DEFAULT_ADDRESS = "localhost:7233"
PAGE_SIZE = 1000
"""Runs that the server is asked for at once; it may give fewer."""
CONNECT_TIMEOUT = 10.0
"""Seconds to reach the server."""


async def connect(
    *, address: str | None = None, namespace: str | None = None, profile: str | None = None
) -> PerdureClient:
    """Connect as Temporal's environment configuration says; arguments win over it.

    Read are `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS_*`, `TEMPORAL_PROFILE` and the
    file `TEMPORAL_CONFIG_FILE`. Raises `NoServer`, or `ClientError` for a configuration or namespace that isn't there.
    """
    pause_at_exit()
    try:
        config = ClientConfigProfile.load(profile).to_client_connect_config()
    except (RuntimeError, OSError) as error:
        raise ClientError(f"Temporal's client configuration can't be used: {error}") from error
    config["target_host"] = target = address or config.get("target_host") or DEFAULT_ADDRESS
    config["namespace"] = namespace or config.get("namespace") or "default"
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            client = await Client.connect(**config, data_converter=data_converter())
    except (RuntimeError, ValueError, OSError) as error:
        raise NoServer(
            f"no Temporal server answers at {target!r} ({_reason(error)}). Start one with `perdure dev`, or set "
            "TEMPORAL_ADDRESS to where yours is"
        ) from error
    await _check_namespace(client)
    return PerdureClient(client)


def _reason(error: Exception) -> str:
    """What went wrong, out of the words of several Rust libraries."""
    if isinstance(error, asyncio.TimeoutError):
        return f"none within {CONNECT_TIMEOUT:g} s"
    found = re.search(r'message: "([^"]*)"|error: "([^"]*)"', str(error))
    return next(filter(None, found.groups())) if found else str(error)


async def _check_namespace(client: Client) -> None:
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        await client.workflow_service.describe_namespace(request, timeout=timedelta(seconds=CONNECT_TIMEOUT))
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise ClientError(f"the server has no namespace {client.namespace!r}: set TEMPORAL_NAMESPACE") from error
        # Not allowed to ask, or too slow: the first call that needs the namespace will tell.


class PerdureClient:
    """Starts runs and finds them. `client` is Temporal's own, with `perdure.converter.data_converter()`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @property
    def address(self) -> str:
        """Host and port of the server."""
        return self.client.service_client.config.target_host

    async def start(
        self,
        agent: str,
        prompt: str | list[Any] | None = None,
        *,
        id: str | None = None,
        session: Session | None = None,
        params: Any = None,
        model: str | None = None,
        limits: Limits | None = None,
        by: str | None = None,
        metadata: dict[str, Any] | None = None,
        task_queue: str = TASK_QUEUE,
    ) -> RunHandle:
        """Start a run and return at once. Whether the agent exists is known to its worker: see `RunHandle.result`.

        `session`: keeps it open for further messages; then the prompt may be absent. `by`: who starts it; an approval
        with `forbid_self` refuses them.

        Raises `RunExists`, and `InvalidRequest` for a prompt, params or metadata that aren't JSON or are too large.
        """
        more: Json = {"params": params, "model": model, "limits": limits, "by": by, "metadata": metadata}
        request = _request(agent=agent, prompt=prompt, session=session, **more)
        self._check_size(request)
        id = id or f"{agent}-{uuid.uuid4().hex[:8]}"
        try:
            await self.client.start_workflow(
                WORKFLOW_TYPE,
                request,
                id=id,
                task_queue=task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
        except WorkflowAlreadyStartedError as error:
            raise RunExists(f"there is a run {id!r} already: choose another id, or see `perdure show {id}`") from error
        return self.run(id)

    async def send(
        self,
        agent: str,
        content: str | list[Any],
        *,
        id: str,
        when_busy: WhenBusy = "queue",
        message_id: str | None = None,
        session: Session | None = None,
        params: Any = None,
        model: str | None = None,
        limits: Limits | None = None,
        by: str | None = None,
        metadata: dict[str, Any] | None = None,
        task_queue: str = TASK_QUEUE,
    ) -> tuple[RunHandle, TurnView]:
        """Send a message to the session of that id, which is started where there is none: one call, by Temporal's
        update-with-start. What a session is started with is ignored where it is open already.

        Needs a worker. Returns the run and where the message stands: `run.wait_turn(message=turn.messages[0])` waits
        for its answer. Raises `Refused`, `RunClosed` for a session that has ended, `InvalidRequest`.
        """
        more: Json = {"params": params, "model": model, "limits": limits, "by": by, "metadata": metadata}
        request = _request(agent=agent, session=session or Session(), **more)
        argument = message(content, when_busy=when_busy, id=message_id, by=by or "")
        check_size(argument)

        async def execute() -> TurnView:
            starting: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                WORKFLOW_TYPE,
                request,
                id=id,
                task_queue=task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            return await self.client.execute_update_with_start_workflow(  # pyright: ignore[reportUnknownMemberType]
                "send", argument, start_workflow_operation=starting, result_type=TurnView
            )

        try:
            return self.run(id), await repeated(self.client, id, execute)
        except WorkflowAlreadyStartedError as error:
            raise RunClosed(f"the session {id!r} has ended: send to another id") from error

    def _check_size(self, request: Json) -> None:
        most = MAX_PAYLOAD if self.client.data_converter.external_storage is None else MAX_STORED
        if (size := payload_size(request)) > most:
            raise InvalidRequest(
                f"the request has {size} bytes; it may have {most}. Put large inputs where a tool can read them."
            )

    def run(self, id: str, *, query_timeouts: Sequence[float] = QUERY_TIMEOUTS) -> RunHandle:
        """The run of that id. Nothing is asked yet: a run that isn't there raises `NoSuchRun` when it is used.

        `query_timeouts`: seconds that each try of a query may take, before `NoAnswer`.
        """
        return RunHandle(self.client, id, query_timeouts=query_timeouts)

    async def list(
        self, query: str = "", *, agent: str | None = None, status: RunStatus | None = None, limit: int = 50
    ) -> list[RunSummary]:
        """The latest `limit` runs. `query` is more of Temporal's list filter: `StartTime > '2026-01-01'`.

        `agent` finds only runs that a worker has begun: it is the worker that sets the search attribute.
        """
        where = list_filter(query, agent, status)
        found: list[RunSummary] = []
        token = b""
        while len(found) < limit:
            request = ListWorkflowExecutionsRequest(
                namespace=self.client.namespace,
                page_size=min(limit - len(found), PAGE_SIZE),
                query=where,
                next_page_token=token,
            )
            answer = await self.client.workflow_service.list_workflow_executions(request, retry=True)
            found += [summary(info) for info in answer.executions]
            token = answer.next_page_token
            if not token:
                break
        return found[:limit]


def _request(**fields: Any) -> Json:
    """A `RunRequest` as JSON. Only what was given is sent: of limits, each field that is there counts."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return RunRequest.model_validate(given).model_dump(mode="json", exclude_unset=True)
    except ValueError as error:  # also what Pydantic raises for a value that isn't JSON
        raise InvalidRequest(f"the run can't be asked for: {validation_problems(error, 'request')}") from error
