"""Whether a Nexus endpoint is there. A command that names an unknown one fails the workflow task, for ever."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import EndpointInput, ResultCheck
    from perdure.workflows.requests import execute
    from perdure.workflows.state import RunState


async def problem_of(state: RunState, endpoint: str) -> str:
    """Why an endpoint can't be called; empty = it can. Asked once in each step: one may be deleted.

    Raises `FailureError` where nobody could ask.
    """
    if endpoint in state.endpoints:
        return ""
    raw = await execute(
        state,
        "check_endpoint",
        EndpointInput(endpoint=endpoint),
        start_to_close_timeout=timedelta(seconds=10),
        retry_policy=RetryPolicy(maximum_attempts=3),
        summary=endpoint,
    )
    problem = ResultCheck.model_validate(raw).problem
    if not problem:
        state.endpoints.append(endpoint)
    return problem
