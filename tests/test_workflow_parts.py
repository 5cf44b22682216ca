"""The pure parts of the workflow, as tables. No server. Limits are in test_workflow_limits.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
    TimeoutType,
)
from temporalio.exceptions import (
    RetryState as ActivityRetryState,
)

from perdure import contracts
from perdure.contracts import (
    CallOptions,
    CallOutcome,
    Mark,
    Output,
    PlannedCall,
    RetryState,
    RunResult,
    Step,
    StepRetries,
    TranscriptQuery,
    canonical,
    chain_digest,
    cut,
)
from perdure.errors import OutputTooLarge
from perdure.workflows.details import escape
from perdure.workflows.effects import outcome_of_failure
from perdure.workflows.retries import next_retries
from perdure.workflows.schedule import segments
from perdure.workflows.sizes import fitting_result
from perdure.workflows.transcript import MAX_TAIL, Transcript


def call(key: str = "1.1-aaaa", **options: Any) -> PlannedCall:
    return PlannedCall(key=key, tool_call_id=f"id-{key}", tool="refund", options=CallOptions(**options))


def outcome(tool: str, kind: Any, charged: bool = False) -> CallOutcome:
    return CallOutcome(key="1.1-aaaa", tool_call_id="x", tool=tool, kind=kind, charged=charged)


def lost(cause: BaseException) -> ActivityError:
    error = ActivityError(
        "lost",
        scheduled_event_id=1,
        started_event_id=2,
        identity="w",
        activity_type="tool:refund",
        activity_id="1",
        retry_state=ActivityRetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = cause
    return error


def timeout(type: TimeoutType) -> TimeoutError:
    return TimeoutError("timed out", type=type, last_heartbeat_details=[])


@pytest.mark.parametrize(
    ("options", "cause", "kind", "ends"),
    [
        ({}, timeout(TimeoutType.HEARTBEAT), "unknown", None),
        ({}, timeout(TimeoutType.START_TO_CLOSE), "unknown", None),
        ({}, timeout(TimeoutType.SCHEDULE_TO_START), "failed", None),
        ({}, ApplicationError("stop", type="WorkerShutdown"), "unknown", None),
        ({}, ApplicationError("anything"), "unknown", None),
        ({}, ApplicationError("The call was not run: X.", type="NotRun"), "failed", None),
        ({}, CancelledError("c"), "unknown", None),
        ({"on_timeout": "fail"}, timeout(TimeoutType.START_TO_CLOSE), "unknown", "ToolTimeout"),
        ({"on_timeout": "fail"}, timeout(TimeoutType.HEARTBEAT), "unknown", None),
        ({"effect": "idempotent"}, timeout(TimeoutType.HEARTBEAT), "failed", None),
        ({"effect": "safe"}, ApplicationError("x", type="WorkerShutdown"), "failed", None),
        ({"effect": "safe"}, CancelledError("c"), "cancelled", None),
        ({"effect": "idempotent"}, CancelledError("c"), "cancelled", None),
    ],
)
def test_a_lost_activity_is_an_outcome_by_effect(
    options: dict[str, Any], cause: FailureError, kind: str, ends: str | None
) -> None:
    result = outcome_of_failure(call(**options), lost(cause))
    assert (result.kind, result.error.type if result.error else None) == (kind, ends)
    assert result.text
    assert (result.key, result.tool_call_id) == ("1.1-aaaa", "id-1.1-aaaa")


@pytest.mark.parametrize(
    ("before", "step", "outcomes", "after"),
    [
        ({}, {}, [], {}),
        ({}, {"failed": ["a"]}, [], {"a": 1}),
        ({"a": 1}, {"failed": ["a"]}, [], {"a": 2}),
        ({"a": 1}, {}, [outcome("a", "returned")], {}),
        ({"a": 1}, {}, [outcome("a", "returned"), outcome("a", "retried", True)], {"a": 2}),
        ({}, {}, [outcome("a", "retried", True), outcome("a", "retried", True)], {"a": 1}),
        ({}, {}, [outcome("a", "retried")], {}),
        ({"a": 1, "b": 2}, {"failed": ["b"]}, [outcome("a", "failed")], {"a": 1, "b": 3}),
    ],
)
def test_retries_count_once_a_step_and_a_failure_beats_a_success(
    before: dict[str, int], step: dict[str, Any], outcomes: list[CallOutcome], after: dict[str, int]
) -> None:
    assert next_retries(RetryState(tools=before), StepRetries(**step), outcomes).tools == after


def test_output_retries_and_refusals_add_up() -> None:
    after = next_retries(RetryState(output=1, refused=["b"]), StepRetries(output=1, refused=["a", "b"]), [])
    assert (after.output, after.refused) == (2, ["a", "b"])


@pytest.mark.parametrize(
    ("sequential", "expected"),
    [
        ("", []),
        ("...", [[0, 1, 2]]),
        ("S..", [[0], [1, 2]]),
        (".S.", [[0], [1], [2]]),
        ("..S", [[0, 1], [2]]),
        ("SS", [[0], [1]]),
    ],
)
def test_a_sequential_call_is_a_barrier(sequential: str, expected: list[list[int]]) -> None:
    calls = [call(str(index), sequential=letter == "S") for index, letter in enumerate(sequential)]
    assert [[int(one.key) for one in segment] for segment in segments(calls)] == expected


def _compact(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, contracts.Compact)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_an_output_comes_back_from_history_as_it_was(value: Any) -> None:
    step = Step(output=Output(value=value))
    again = Step.model_validate_json(step.model_dump_json())
    assert again.output is not None
    assert canonical(again.output.value) == canonical(value)


@pytest.mark.parametrize("kind", [kind for kind in vars(contracts).values() if _compact(kind)])
def test_what_is_left_out_of_history_comes_back_as_it_was(kind: type[contracts.Compact]) -> None:
    """An empty value is written only where it isn't the default: so it must mean the same as the default."""
    for name, field in kind.model_fields.items():
        if field.is_required():
            continue
        default = field.get_default(call_default_factory=True)
        assert field.annotation is not Any or default == {}, f"{name}: an empty value would come back changed"
        assert default is not True, f"{name}: False would come back as True"


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=5), st.integers(1, 200))
@settings(max_examples=50, deadline=None)
def test_pages_of_a_transcript_are_the_transcript(rows: list[dict[str, Any]], max_bytes: int) -> None:
    transcript = Transcript()
    digest = ""
    for row in rows:
        transcript.append(row)
        digest = chain_digest(digest, row)
    read: list[dict[str, Any]] = []
    while len(read) < len(rows):
        page = transcript.page(TranscriptQuery(start=len(read), max_bytes=max_bytes))
        assert page.entries
        assert len(page.entries) == 1 or sum(len(canonical(entry)) for entry in page.entries) <= max_bytes
        read += page.entries
    assert read == rows
    assert transcript.mark == Mark(length=len(rows), digest=digest)


def test_an_activity_is_sent_only_what_came_since_the_last() -> None:
    transcript = Transcript()
    transcript.append({"kind": "user", "n": 1})
    assert transcript.seen().tail == [{"kind": "user", "n": 1}]
    transcript.told()
    transcript.append({"kind": "user", "n": 2})
    seen = transcript.seen()
    assert (seen.base.length, seen.until.length, seen.tail) == (1, 2, [{"kind": "user", "n": 2}])
    transcript.append({"kind": "user", "text": "x" * MAX_TAIL})
    assert transcript.seen().tail is None


def test_a_result_too_large_loses_its_audit_first() -> None:
    audit = [{"note": "x" * 900_000}, {"note": "y" * 900_000}]
    assert fitting_result(RunResult(output="ok", audit=audit)).audit == [{"left_out": 2}]
    with pytest.raises(OutputTooLarge, match="the output has 1600002 bytes"):
        fitting_result(RunResult(output="x" * 1_600_000))


def test_text_of_a_model_is_escaped_for_the_page() -> None:
    assert escape("![x](http://a/b.png)\n# h <img>") == (r"\!\[x\]\(http\:\/\/a\/b\.png\) \# h \<img\>")
    assert escape("5\u202e€") == "5\\\\u202e€"
    assert cut("abc", 2) == "ab… (1 more characters)"
