"""The activity `check_endpoint`: whether a Nexus endpoint is there, before a run makes its first call to it."""

from __future__ import annotations

from temporalio import activity
from temporalio.api.operatorservice.v1 import ListNexusEndpointsRequest
from temporalio.service import RPCError, RPCStatusCode

from perdure.activities.faults import log_error
from perdure.contracts import EndpointInput, ResultCheck

NOT_TO_BE_ASKED = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED)
"""Where endpoints are somebody else's business, the run has to trust the declaration."""


@activity.defn(name="check_endpoint")
async def check_endpoint(input: EndpointInput) -> ResultCheck:
    """Ask the server. Short: 10 s, 3 attempts. Fails, to be repeated, where the server doesn't answer."""
    try:
        answer = await activity.client().operator_service.list_nexus_endpoints(
            ListNexusEndpointsRequest(name=input.endpoint)
        )
    except RPCError as error:
        if error.status not in NOT_TO_BE_ASKED:
            raise
        log_error(f"whether the Nexus endpoint {input.endpoint!r} is there can't be asked", error)
        return ResultCheck()
    known = any(found.spec.name == input.endpoint for found in answer.endpoints)
    return ResultCheck(problem="" if known else f"there is no Nexus endpoint {input.endpoint!r}")
