"""How Temporal runs a tool, and who may let it run: `ToolPolicy` and `Approval`. Nothing here runs a workflow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from perdure.contracts import (
    MAX_PAYLOAD,
    MAX_STORED,
    MIN_RESULT,
    ApprovalTerms,
    CallOptions,
    Effect,
    ExternalCall,
    OnTimeout,
)
from perdure.errors import DeclarationError
from perdure.names import check_name
from perdure.numbers import positive, whole
from perdure.typed import check_fields

OUTER_MARGIN = 30.0
"""Seconds by which Temporal's clock is longer than the tool's own and its grace, so that the tool's own answer wins. In
them the worker also finds the transcript and builds the deps."""
LONGEST = timedelta(days=36_500)
"""A hundred years: more than a workflow, or a date, can hold is a mistake."""
TIMES = ("timeout", "heartbeat", "schedule_to_start", "backoff", "cancel_grace", "wait")
"""The fields of a policy that are times."""
UNTIMED_START_TO_CLOSE = 3600.0
"""Seconds an attempt of a tool without a timeout may take."""


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Who may let a call run, and until when. Times by workflow time."""

    approvers: Sequence[str] = ()
    """Names, or `group:<name>`, which needs a verifier; not given = anyone. Without a verifier a name is a claim, and
    the audit says so."""
    quorum: int = 1
    """How many different people have to approve. One denial is enough to deny."""
    expires_after: timedelta | None = None
    """`None` = waits for ever, with no timer and no open activity."""
    on_expiry: Literal["deny", "fail", "escalate"] = "deny"
    """`deny`: the model is told that nobody answered; `fail`: the run ends with `ApprovalExpired`; `escalate`: the next
    approvers are asked, votes begin anew."""
    escalate_to: Approval | None = None
    """The next approvers. Who they are, how many, and their time are used; that the call is gated stays."""
    reminders: Sequence[timedelta] = ()
    """When to tell the app's notifier again, counted from the asking; from the escalation for who is asked next."""
    when: Callable[[Any, dict[str, Any]], bool | Awaitable[bool]] | None = None
    """Called with the run context and the validated arguments in `model_request`; `None` = always. A predicate that
    raises gates the call."""
    allow_edit: bool = False
    """Whether an approver may change the arguments. They are validated before they are accepted."""
    forbid_self: bool = False
    """Whoever started the run (`RunRequest.by`, needed then) or edited the arguments last may not approve. Names are
    compared without regard to case."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.quorum < 1:
            raise DeclarationError(f"quorum={self.quorum!r} must be at least 1")
        if (
            self.approvers
            and not any(name.startswith("group:") for name in self.approvers)
            and self.quorum > len(set(self.approvers))
        ):
            raise DeclarationError(f"quorum={self.quorum!r} is more than the approvers: {list(self.approvers)}")
        if not self.approvers and self.approvers != ():
            raise DeclarationError(
                f"approvers={self.approvers!r} names nobody. Leave approvers out where anyone may approve"
            )
        if not all(self.approvers):
            raise DeclarationError(f"approvers={self.approvers!r} must be a list of names, none of them empty")
        if self.on_expiry == "escalate" and self.escalate_to is None:
            raise DeclarationError("on_expiry='escalate' needs escalate_to=Approval(…)")
        if self.on_expiry != "deny" and self.expires_after is None:
            raise DeclarationError(f"on_expiry={self.on_expiry!r} needs expires_after=…")
        if self.escalate_to is not None and self.on_expiry != "escalate":
            raise DeclarationError("escalate_to=… needs on_expiry='escalate'")
        if self.escalate_to is not None and self.escalate_to.when is not None:
            raise DeclarationError("escalate_to=Approval(when=…): the call is gated already, so nobody would ask it")
        self._check_times()

    def _check_times(self) -> None:
        ends = self.expires_after
        if ends is not None and not timedelta(0) < ends <= LONGEST:
            raise DeclarationError(f"expires_after={ends!r} must be more than 0 and at most {LONGEST}")
        for reminder in self.reminders:
            if reminder <= timedelta(0) or (ends is not None and reminder >= ends):
                raise DeclarationError(f"reminders: {reminder!r} must be more than 0 and before expires_after={ends!r}")

    @property
    def groups(self) -> list[str]:
        """The groups among the approvers, also those of the next approvers."""
        own = [name for name in self.approvers if name.startswith("group:")]
        return own + (self.escalate_to.groups if self.escalate_to else [])

    def terms(self, rule: str) -> ApprovalTerms:
        """The terms as they go into history."""
        return ApprovalTerms(
            rule=rule,
            approvers=list(self.approvers),
            quorum=self.quorum,
            expires_after=seconds(self.expires_after),
            on_expiry=self.on_expiry,
            escalate_to=self.escalate_to.terms(rule) if self.escalate_to else None,
            reminders=sorted(reminder.total_seconds() for reminder in self.reminders),
            allow_edit=self.allow_edit,
            forbid_self=self.forbid_self,
        )


@dataclass(frozen=True, kw_only=True)
class Breaker:
    """When a worker stops calling a tool that fails: the model is then told that it isn't available for now.

    A failure is an exception other than `ModelRetry` and `ToolFailed`, or a call that doesn't end in time.
    """

    failures: int = 5
    """Failures in a row, attempts of one call included, after which it opens."""
    reset_after: float | timedelta = 60.0
    """Time after which one call is let through, to see. It closes the breaker, or opens it for as long again."""

    def __post_init__(self) -> None:
        after = seconds(self.reset_after)
        if not whole(self.failures):
            raise DeclarationError(f"failures={self.failures!r} must be a whole number, at least 1")
        if not positive(after) or (after or 0.0) > LONGEST.total_seconds():
            raise DeclarationError(f"reset_after={self.reset_after!r} must be a finite time, more than 0 seconds")


@dataclass(frozen=True, kw_only=True)
class ToolPolicy:
    """How Temporal runs a tool. Times are seconds or `timedelta`.

    A policy belongs to the name the model sees, or to a pattern of `fnmatch` (`"crm_*"`); an exact name wins, then the
    first pattern that matches.
    """

    effect: Effect = "unsafe"
    """`unsafe`: runs once, and a lost attempt is reported to the model as "may or may not have run". `idempotent`:
    retried by Temporal with the same `current_call().idempotency_key`. `safe`: retried freely."""
    timeout: float | timedelta | None = None
    """The tool's own time in one attempt; `None`: as long as Temporal's clock allows, an hour."""
    on_timeout: OnTimeout | None = None
    """`report` (default of `unsafe`): outcome `unknown`, as a thread may still be running; `retry` (default of the
    others; refused for `unsafe`); `fail`: the run ends with `ToolTimeout`."""
    attempts: int | None = None
    """Attempts by Temporal, the first included. Default: 1 for `unsafe`, else 5."""
    backoff: float | timedelta = 1.0
    """The interval before the second attempt; doubles, at most 60 s."""
    heartbeat: float | timedelta = 30.0
    """After this much silence of the worker the attempt is lost. Shorter makes a server restart lose attempts."""
    schedule_to_start: float | timedelta | None = None
    """Time to find a worker that has room; `None` = waits. Set it where a queue of its own may have no worker."""
    cancel_grace: float | timedelta = 3.0
    """Time a cancelled tool has to end before it is given up."""
    task_queue: str | None = None
    """A queue of its own, declared with its limits in `App(task_queues=…)`; `None` = the run's."""
    breaker: Breaker | None = None
    """Stops calling the tool while it fails, on each worker by itself. Each tool of a pattern has its own."""
    max_result_bytes: int | None = None
    """Bytes that a result may have, as the model would read it. `None`: 1.5 MB as JSON. Up to 8 MB; more than 1.5 MB
    needs a payload store (`PERDURE_PAYLOADS`)."""
    on_large_result: Literal["fail", "truncate", "store"] = "fail"
    """What becomes of a larger one. `fail`: the model is told the sizes; `truncate`: it gets head and tail, and a note;
    `store`: it is kept in the payload store, and the model gets a reference, the beginning, and pages through it with
    `perdure.toolsets.read_result`. A result with files or images always fails: they are never cut."""
    approval: Approval | None = None
    """Gates the tool: no call of it runs without a recorded decision."""
    wait: float | timedelta | None = None
    """How long a result from outside is waited for; `None` = for ever. Then the model is told that none came; with
    `on_timeout="fail"` the run ends with `ToolTimeout`. A result that comes later is refused, and kept in the audit."""
    result: Any = None
    """What a result from outside must be: a type that Pydantic reads, or a JSON Schema. Others are refused."""
    dispatch: Callable[[ExternalCall], Awaitable[None]] | None = None
    """Hands a call that is made outside to who makes it: an async function, run as an activity with an idempotency key,
    30 s an attempt, repeated for 10 minutes; then the call fails. The result comes by `complete`, not from here."""

    def __post_init__(self) -> None:
        check_fields(self, own=("attempts", "max_result_bytes", "task_queue", *TIMES))
        if self.attempts is not None and not whole(self.attempts):
            raise DeclarationError(f"attempts={self.attempts!r} must be at least 1, a whole number")
        if self.effect == "unsafe" and (self.attempts or 1) > 1:
            raise DeclarationError(
                f"attempts={self.attempts!r} needs effect='idempotent' or 'safe': an unsafe tool never runs twice"
            )
        if self.effect == "unsafe" and self.on_timeout == "retry":
            raise DeclarationError("on_timeout='retry' needs effect='idempotent' or 'safe'")
        self._check_result()
        if self.task_queue is not None:
            check_name(self.task_queue, "task_queue")
        for name in TIMES:
            value = seconds(getattr(self, name))
            if value is not None and not (positive(value) and value <= LONGEST.total_seconds()):
                raise DeclarationError(f"{name}={value!r} must be a finite number of seconds, more than 0")

    def _check_result(self) -> None:
        most = self.max_result_bytes
        if most is not None and not (whole(most, MIN_RESULT) and most <= MAX_STORED):
            raise DeclarationError(f"max_result_bytes={most!r} must be from {MIN_RESULT} to {MAX_STORED}")

    @property
    def needs_store(self) -> bool:
        """Whether a worker needs a payload store to keep to the policy."""
        return self.on_large_result == "store" or (self.max_result_bytes or 0) > MAX_PAYLOAD

    def options(self, *, tool_timeout: float | None = None, sequential: bool = False) -> CallOptions:
        """The policy resolved for one call, as it goes into history.

        `tool_timeout` is Pydantic AI's own timeout of the tool, which answers the model with a retry.
        """
        timeout = seconds(self.timeout)
        inner = max((value for value in (timeout, tool_timeout) if value is not None), default=UNTIMED_START_TO_CLOSE)
        default_on_timeout: OnTimeout = "report" if self.effect == "unsafe" else "retry"
        return CallOptions(
            effect=self.effect,
            timeout=timeout,
            start_to_close=inner + (seconds(self.cancel_grace) or 0.0) + OUTER_MARGIN,
            heartbeat=seconds(self.heartbeat) or 30.0,
            schedule_to_start=seconds(self.schedule_to_start),
            attempts=self.attempts or (1 if self.effect == "unsafe" else 5),
            backoff=seconds(self.backoff) or 1.0,
            on_timeout=self.on_timeout or default_on_timeout,
            sequential=sequential,
            task_queue=self.task_queue,
            grace=seconds(self.cancel_grace) or 3.0,
            max_result_bytes=self.max_result_bytes,
            large_result="" if self.on_large_result == "fail" else self.on_large_result,
        )


def seconds(value: float | timedelta | None) -> float | None:
    """`value` in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else value


DEFAULT_POLICY = ToolPolicy()
READER = ToolPolicy(effect="safe")
"""That of `read_result`, `search_tools` and `load_capability`, where the agent has none for them."""
