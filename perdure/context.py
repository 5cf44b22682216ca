"""What a tool can ask about the call it is running in: `current_call()` and `progress()`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CurrentCall:
    """The tool call that is running. Only in tools, sync or async, on a worker."""

    key: str
    """`step.call-digest`, unique in the run."""
    attempt: int
    """Temporal's attempt, from 1. `RunContext.retry` is something else: the model's count."""
    attempts: int
    """How many attempts Temporal makes of this call at most. In the last one nothing is repeated any more."""
    idempotency_key: str
    """The same for every attempt of this call, also after a reset of the workflow. Hand it to the outside."""
    agent: str
    workflow_id: str
    run_id: str
    """The first run id of the workflow's chain."""
    metadata: dict[str, Any]
    """`RunRequest.metadata`."""
    approved_by: list[str]
    """Who approved it, where it was gated; claims, unless the app has a verifier."""
    _live: Live = field(repr=False)
    _read: Callable[[str], Awaitable[str | None]] = field(repr=False)

    async def read_result(self, ref: str) -> str | None:
        """A large result that an earlier call of this run has kept, by its reference; `None`: there is none."""
        return await self._read(ref)


MAX_LIVE = 20_000
"""Characters of live text, the latest: a reader polls it."""


class Live:
    """The text that the next heartbeat carries. Written from any thread, sent by the activity's own task."""

    def __init__(self) -> None:
        self.text = ""

    def set(self, text: str) -> None:
        """Replace the text. Only its end is kept: more isn't sent."""
        self.text = text[-MAX_LIVE:]


_current: ContextVar[CurrentCall] = ContextVar("perdure_current_call")


def current_call() -> CurrentCall:
    """The tool call this code runs in. Raises `LookupError` outside one, as in a plain `agent.run`."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("current_call() is only known inside a tool that perdure runs") from None


def call_or_none() -> CurrentCall | None:
    """The tool call this code runs in; `None` outside one, as in a plain `agent.run`."""
    return _current.get(None)


def progress(text: str) -> None:
    """Show `text` as what this tool is doing. Costs no history: it rides the next heartbeat, the last text wins.

    May be called from threads. Raises `LookupError` outside a tool that perdure runs.
    """
    current_call()._live.set(text)  # pyright: ignore[reportPrivateUsage]


@dataclass
class Binding:
    """Whether the run of a call has a session on this worker; for toolsets that hold some."""

    had: bool
    """The run had one, here or elsewhere."""
    holds: bool = False
    """It has one here now."""


_binding: ContextVar[Binding | None] = ContextVar("perdure_binding", default=None)


def binding() -> Binding | None:
    """That of the running call; `None` outside one."""
    return _binding.get()


def enter_binding(had: bool) -> Binding:
    """Make a new one the current one in this context, and in tasks that are made in it."""
    made = Binding(had)
    _binding.set(made)
    return made


def enter_call(call: CurrentCall) -> None:
    """Make `call` the current one in this context."""
    _current.set(call)
