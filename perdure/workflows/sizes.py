"""Sizes of what the workflow emits. One byte too much fails a workflow task for ever, so everything is measured.

Over 2 MB in a command the task fails; over 4 MB in the commands of one task the server terminates the run. A step has
at most 1.5 MB, arguments included, so its calls together stay under the second.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_PAYLOAD, MAX_STORED, OFFLOADED, Json, RunResult, payload_size
    from perdure.errors import InvalidRequest, OutputTooLarge

MAX_ENTRY = 1_000_000
"""Bytes of one transcript entry, where there is more than one answer in it: a page of the query holds 1.5 MB."""


def check_request(request: Json) -> None:
    """Raise `InvalidRequest` where the request of a run that begins is too large.

    A payload store makes more room. The plan that says so isn't there yet, but history tells: a request that isn't in
    it came by a store, which the worker that has read it must have, too.
    """
    size = payload_size(request)
    stored = workflow.info().get_current_history_size() < OFFLOADED
    if size > (most := MAX_STORED if stored else MAX_PAYLOAD):
        raise InvalidRequest(
            f"the request has {size} bytes; it may have {most}. Put large inputs where a tool can read them."
        )


def fitting_result(result: RunResult) -> RunResult:
    """`result`, without its audit where it would be too large; the query `audit` still has it.

    Raises `OutputTooLarge` where the output alone is.
    """
    if payload_size(result) <= MAX_PAYLOAD:
        return result
    if result.audit:
        counted = result.model_copy(update={"audit": [{"left_out": len(result.audit)}]})
        if payload_size(counted) <= MAX_PAYLOAD:
            return counted
    raise OutputTooLarge(
        f"the output has {payload_size(result.output)} bytes as JSON; a result may have {MAX_PAYLOAD}. "
        "Let the agent return a reference to what it made."
    )
