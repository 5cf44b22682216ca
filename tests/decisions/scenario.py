"""What is drawn: the calls of a run, what people send meanwhile, and what happens to the worker. Plain data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "plain", "policy", "quorum", "when", "required", "asks", "external", "defers", "bad", "bad_external", "unknown",
    "brief", "brief_external", "escalates", "fails",
]  # fmt: skip
"""A tool's name, but for `bad` and `bad_external`: arguments that the tools `policy` and `external` don't take."""
Event = Literal["none", "restart", "cold", "cache 0", "cancel", "expiry"]
"""`restart`: the worker is stopped, and a new one started when everything is sent; `cold`: before that."""
Verb = Literal["approve", "deny", "complete"]
Flaw = Literal[
    "", "no argument", "two arguments", "no object", "no call", "unknown field",
    "too much", "nothing", "long name", "short", "nobody's",
]  # fmt: skip
"""`too much`: a reason that is too long, or a result and an error. `nothing`: null for a reason, or neither of the two.
`short`: a key without its digest."""
MAX_NAME, MAX_REASON = 200, 10_000
TIMED: tuple[Kind, ...] = ("brief", "brief_external", "escalates", "fails")
"""What nobody has to decide, since it expires soon."""
OUTSIDE: tuple[Kind, ...] = ("external", "defers", "brief_external")
"""What waits for a result."""
BROKEN: tuple[Kind, ...] = ("bad", "bad_external", "unknown")
"""What goes back to the model; nobody is asked."""


@dataclass(frozen=True)
class Call:
    """A call of the scripted model."""

    kind: Kind = "policy"
    n: int = 1
    id: Literal["own", "empty", "equal", "reused"] = "own"
    alone: bool = False
    """Whether the tool is `sequential`."""

    @property
    def tool(self) -> str:
        name = {"bad": "policy", "bad_external": "external"}.get(self.kind, self.kind)
        return f"{name}_alone" if self.alone and self.kind != "unknown" else name

    @property
    def sent_args(self) -> Any:
        """As the model writes them."""
        if self.kind in ("bad", "bad_external"):
            return {"n": "many"} if self.n > 1 else '{"n": 1'
        return {"n": str(self.n)} if self.kind == "when" else {"n": self.n}

    @property
    def args(self) -> dict[str, Any]:
        """As they must be shown and run: validated, with defaults. External tools have no function to validate with."""
        return {"n": self.n} if self.kind in ("external", "brief_external") else {"n": self.n, "note": "none"}

    @property
    def asks_itself(self) -> bool:
        """Whether its tool begins to run before anybody has to decide."""
        return self.kind in ("asks", "defers")

    @property
    def waits(self) -> bool:
        """Whether it may not simply run."""
        return self.kind not in ("plain", *BROKEN) and not (self.kind == "when" and 0 <= self.n <= 10)


@dataclass(frozen=True)
class Op:
    """What somebody sends. `other` is a verb of the wrong kind."""

    do: Literal["allow", "refuse", "other"] = "allow"
    via: Literal["update", "signal"] = "update"
    target: int = 0
    """Which call of the whole run, counted round."""
    by: str = "ann"
    edit: str = ""
    """JSON of other arguments."""
    aim: Literal["newest", "planned"] = "newest"
    """Under which key: the one that was shown last, or the one from before all edits."""
    flaw: Flaw = ""


@dataclass(frozen=True)
class Wave:
    """What is sent while the run stands at one place: one after the other, or all at once."""

    ops: tuple[Op, ...] = ()
    together: bool = False


@dataclass(frozen=True)
class Step:
    """One response of the model."""

    calls: tuple[Call, ...]
    early: Wave = Wave()
    """Sent before the model has answered: the calls of this step don't exist yet."""
    waves: tuple[Wave, ...] = ()
    """One at each pause of the step; what is left over comes late, while the model is asked again."""


@dataclass(frozen=True)
class Closing:
    """How what still waits is decided in the end."""

    allow: bool = True
    via: Literal["update", "signal"] = "update"


@dataclass(frozen=True)
class Scenario:
    """A run from start to end."""

    steps: tuple[Step, ...]
    event: Event = "none"
    pause: int = 0
    """At which pause of the run the event happens."""
    closing: tuple[Closing, ...] = (Closing(),)

    def calls(self) -> Iterator[tuple[str, Call]]:
        """Every call of the run with its key."""
        for step in range(len(self.steps)):
            yield from self.step_calls(step)

    def step_calls(self, step: int) -> list[tuple[str, Call]]:
        """The calls of a step with their keys, in order."""
        return [(key_of(step, index, call), call) for index, call in enumerate(self.steps[step].calls)]


def key_of(step: int, index: int, call: Call) -> str:
    """The key a call has to have before it is edited."""
    return bound_key(f"{step + 1}.{index + 1}", call.tool, call.args)


def bound_key(place: str, tool: str, args: Any) -> str:
    """The key of a call at a place: bound to its tool and arguments by a digest."""
    text = json.dumps([tool, args], sort_keys=True, separators=(",", ":"))
    return f"{place}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def place_of(key: str) -> str:
    """Step and number of a call: the same however often it was edited."""
    return re.split("[+-]", key)[0]


@dataclass(frozen=True)
class Sent:
    """An `Op` as it goes over the wire."""

    op: Op
    verb: Verb
    raw: tuple[Any, ...]
    tag: str
    """Its name in the audit: the reason of a decision, who sent a result."""
    key: str | None
    """The call it is for, by its planned key; `None` where no call is named rightly."""
    address: str
    """The key it is sent to: of the call as it was planned, or as it was edited."""

    @property
    def by(self) -> str:
        """Who sends it."""
        return self.tag if self.verb == "complete" else self.op.by


def sent(op: Op, tag: str, scenario: Scenario, newest: Mapping[str, str]) -> Sent:
    """The message that an `Op` stands for; `newest`: by planned key, the one that was shown last."""
    calls = list(scenario.calls())
    key, call = calls[op.target % len(calls)]
    outside = (call.kind in OUTSIDE) != (op.do == "other")
    verb: Verb = "complete" if outside else "deny" if op.do == "refuse" else "approve"
    address = newest[key] if op.aim == "newest" else key
    body: dict[str, Any] = {"call": {"short": place_of(key), "nobody's": "9.9-00000000"}.get(op.flaw, address)}
    body |= _completion(op, tag) if verb == "complete" else _decision(op, tag)
    body |= {"by": "x" * (MAX_NAME + 1)} if op.flaw == "long name" else {}
    unnamed = op.flaw in ("no argument", "two arguments", "no object", "no call", "unknown field", "short", "nobody's")
    return Sent(op, verb, _shaped(body, op.flaw), tag, None if unnamed else key, address)


def _completion(op: Op, tag: str) -> dict[str, Any]:
    both = {"error": tag, "result": tag}
    given = {"too much": ["error", "result"], "nothing": []}.get(op.flaw, ["error" if op.do == "refuse" else "result"])
    return {"by": tag} | {name: both[name] for name in given}


def _decision(op: Op, tag: str) -> dict[str, Any]:
    reason = {"too much": tag + "x" * MAX_REASON, "nothing": None}.get(op.flaw, tag)
    return {"by": op.by, "reason": reason} | ({"args": json.loads(op.edit)} if op.edit else {})


def _shaped(body: dict[str, Any], flaw: Flaw) -> tuple[Any, ...]:
    match flaw:
        case "no argument":
            return ()
        case "two arguments":
            return body, body
        case "no object":
            return (body["call"],)
        case "no call":
            return ({name: value for name, value in body.items() if name != "call"},)
        case "unknown field":
            return ({**body, "cal": body["call"]},)
        case _:
            return (body,)
