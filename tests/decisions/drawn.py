"""How scenarios are drawn. Simple things come first in every list: Hypothesis shrinks towards them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.decisions.scenario import Call, Closing, Event, Kind, Op, Scenario, Step, Wave

USUAL: list[Kind] = [
    "policy", "quorum", "plain", "quorum", "when", "required", "asks", "external", "defers", "bad",
    "bad_external", "unknown",
]  # fmt: skip
EXPIRING: list[Kind] = ["brief", "brief_external", "escalates", "fails"]
EDITS = ["", "", "", "", '{"n": 7}', '{"n": "8", "note": "mine"}', '{"n": "many"}', '{"m": 1}']
PEOPLE = ["ann", "ann", "ann", "bob", "bob", "eve", "mallory", ""]


def calls(kinds: list[Kind]) -> st.SearchStrategy[Call]:
    """Calls of these kinds."""
    return st.builds(
        Call,
        kind=st.sampled_from(kinds),
        n=st.sampled_from([1, 2, 50, -1]),
        id=st.sampled_from(["own", "own", "empty", "equal", "reused"]),
        alone=st.sampled_from([False, False, False, True]),
    )


ops = st.builds(
    Op,
    do=st.sampled_from(["allow", "allow", "refuse", "other"]),
    via=st.sampled_from(["update", "signal"]),
    target=st.integers(0, 5),
    by=st.sampled_from(PEOPLE),
    edit=st.sampled_from(EDITS),
    aim=st.sampled_from(["newest", "newest", "newest", "planned"]),
    flaw=st.one_of(st.just(""), st.just(""), st.just(""), st.sampled_from([
        "no argument", "two arguments", "no object", "no call", "unknown field", "too much", "nothing", "long name",
        "short", "nobody's",
    ])),
)  # fmt: skip


@st.composite
def disputes(draw: st.DrawFn) -> list[Op]:
    """Two or three people who decide one call, each with the right to."""
    right = st.builds(
        Op,
        do=st.sampled_from(["allow", "refuse"]),
        via=st.sampled_from(["signal", "update"]),
        target=st.just(draw(st.integers(0, 5))),
        by=st.sampled_from(["ann", "bob"]),
        edit=st.sampled_from(["", "", '{"n": 7}', '{"n": 8}']),
    )
    return draw(st.lists(right, min_size=2, max_size=3))


def waves(most: int, together: st.SearchStrategy[bool]) -> st.SearchStrategy[Wave]:
    """Up to so many messages at one time, of any kind or about one call."""
    sent = st.one_of(st.lists(ops, max_size=most), disputes())
    return st.builds(Wave, ops=sent.map(tuple), together=together)


def steps(
    kinds: list[Kind], *, together: st.SearchStrategy[bool], last: list[Kind] | None = None
) -> st.SearchStrategy[Step]:
    """A step of one to five calls; `last`: kinds of which its last call is."""
    several = st.lists(calls(kinds), min_size=1 if last is None else 0, max_size=5 if last is None else 4)
    whole = several if last is None else st.tuples(several, calls(last)).map(lambda pair: [*pair[0], pair[1]])
    later = st.lists(waves(4, together), max_size=2)
    return st.builds(Step, calls=whole.map(tuple), early=waves(2, together), waves=later.map(tuple))


closings = st.lists(
    st.builds(Closing, allow=st.sampled_from([True, True, False]), via=st.sampled_from(["update", "signal"])),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def scenarios(draw: st.DrawFn, events: list[Event], *, together: bool = True) -> Scenario:
    """A run of one or two steps, with one of these events; `together`: whether things may be sent at once."""
    at_once = st.booleans() if together else st.just(False)
    event = draw(st.sampled_from(events))
    expiring = steps([*USUAL, *EXPIRING], together=at_once, last=EXPIRING)
    usual = steps(USUAL, together=at_once)
    first = draw(expiring if event == "expiry" else usual)
    more = draw(st.lists(usual, max_size=1))
    return Scenario((first, *more), event, draw(st.sampled_from([0, 0, 1])), draw(closings))
