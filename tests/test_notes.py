"""Notes: a conversation is the same without the entries that a note stands for. Pure: see also test_compaction."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    CapabilityLoadDeltaPart,
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolAvailabilityDeltaPart,
    UserPromptPart,
)

from perdure.activities.cache import digest_after
from perdure.activities.note import cover
from perdure.activities.parsing import message_bytes
from perdure.activities.recount import MAX_RESULT, pieces
from perdure.activities.transcript import Conversation
from perdure.cli.text import entry_lines
from perdure.contracts import Json, Mark
from tests.harness import check_answers
from tests.transcripts import AT, RUN, START, answered, built, called, compacted, delta, user


def said(text: str, **more: Any) -> Json:
    part = {"part_kind": "text", "content": text}
    return {"kind": "response", "response": {"kind": "response", "parts": [part], "timestamp": AT}, **more}


def without(entries: list[Json], upto: int) -> Conversation:
    """The conversation from the entries after `upto` alone."""
    base = Mark(length=upto, digest=digest_after(Mark(), entries[:upto]))
    return Conversation(mark=base).extended(entries[upto:])


def texts(message: ModelMessage) -> list[Any]:
    """What the parts of a message say."""
    return [getattr(part, "content", None) for part in message.parts]


def check_sendable(messages: tuple[ModelMessage, ...]) -> None:
    """What every provider takes: a request first, requests and responses in turn, calls and answers in pairs."""
    assert isinstance(messages[0], ModelRequest)
    assert all(isinstance(one, ModelRequest) is isinstance(two, ModelResponse) for one, two in pairwise(messages))
    assert isinstance(messages[-1], ModelResponse)
    check_answers(messages[:-1])


def test_older_messages_give_way_to_the_summary_and_the_prompt() -> None:
    entries = compacted(RUN)
    conversation = built(entries)
    summary, kept = conversation.messages
    assert [type(part) for part in summary.parts] == [CompactionPart, UserPromptPart]
    assert texts(summary) == ["what was", "Look at it."]
    assert isinstance(kept, ModelResponse)
    assert [call.tool_call_id for call in kept.tool_calls] == ["c"]
    assert [part["tool_call_id"] for part in conversation.pending] == ["c"]
    assert conversation.start == START
    assert conversation.prompt() == "Look at it."
    assert entries[-1]["upto"] == 6
    assert without(entries, 6) == conversation


def test_as_much_is_kept_as_fits_but_the_last_response_in_any_case() -> None:
    conversation = built(RUN)
    last, three = message_bytes(conversation.messages[-1:]), message_bytes(conversation.messages[-3:])
    sizes = (0, last, three - 9, three + 9)
    assert [part.keep for size in sizes if (part := cover(conversation, size))] == [1, 1, 1, 3]
    assert cover(conversation, 1_000_000) is None
    assert cover(built(RUN[:4]), 0) is None, "a prompt alone is no conversation"
    assert cover(Conversation(), 0) is None


def test_a_prompt_that_is_kept_is_not_said_twice() -> None:
    turns = [START, user("One."), said("1"), user("Two."), said("2"), user("Three."), called("a"), answered("a")]
    entries = compacted(turns, message_bytes(built(turns).messages[3:]))
    conversation = built(entries)
    assert [part.part_kind for part in conversation.messages[0].parts] == ["compaction"]
    assert conversation.prompt() == "Three."
    assert without(entries, entries[-1]["upto"]) == conversation


def test_a_second_compaction_covers_the_first() -> None:
    once = compacted(RUN, summary="first")
    twice = compacted([*once, called("d"), answered("d"), called("e"), answered("e")], summary="second")
    conversation = built(twice)
    assert texts(conversation.messages[0]) == ["second", "Look at it."]
    assert "first" in "".join(pieces(cover_of(twice[:-1]), 100_000))
    assert without(twice, twice[-1]["upto"]) == conversation
    assert without(twice, once[-1]["upto"]) == conversation


def cover_of(entries: list[Json]) -> tuple[ModelMessage, ...]:
    covered = cover(built(entries), 0)
    assert covered is not None
    return covered.messages


def test_standing_system_prompts_stay() -> None:
    prompts = [{"part_kind": "system-prompt", "content": text, "timestamp": AT} for text in ("Be brief.", "Be kind.")]
    sent = [*prompts, {"part_kind": "user-prompt", "content": "Look at it.", "timestamp": AT}]
    run = [*RUN[:2], called("a", request_parts=sent), *RUN[3:]]
    twice = compacted([*compacted(run), called("d"), answered("d"), called("e")])
    first = built(twice).messages[0]
    assert [part.content for part in first.parts if isinstance(part, SystemPromptPart)] == ["Be brief.", "Be kind."]
    assert "Be brief." not in "".join(pieces(cover_of(run), 100_000))


def test_tools_and_capabilities_that_were_found_are_shown_again() -> None:
    found: list[Json] = [
        {
            "part_kind": "tool-return",
            "tool_kind": "tool-search",
            "tool_name": "search_tools",
            "tool_call_id": "s",
            "content": {"discovered_tools": [{"name": "add", "description": "Adds."}]},
            "timestamp": AT,
        },
        {"part_kind": "capability-load-delta", "loaded": ["maths"]},
        delta("root"),
    ]
    search = {"kind": "outcomes", "step": 1, "at": AT, "parts": found}
    run = [START, user("Add."), called("s", tool="search_tools"), search, called("b"), answered("b"), called("c")]
    entries = compacted(run)
    first = built(entries).messages[0]
    deltas = [part for part in first.parts if isinstance(part, ToolAvailabilityDeltaPart)]
    assert [part.tools_added for part in deltas] == [["add", "root"]]
    assert [part.loaded for part in first.parts if isinstance(part, CapabilityLoadDeltaPart)] == [["maths"]]
    again = compacted([*entries, answered("c"), called("d"), answered("d"), called("e")])
    assert built(again).messages[0].parts[1:] == first.parts[1:]


def test_long_results_are_cut_and_pieces_are_bounded() -> None:
    long = "é" * 30_000
    run = [START, user(long), called("a"), answered("a", text=long), called("b")]
    made = pieces(cover_of(run), 7_001)
    assert max(len(piece.encode()) for piece in made) <= 7_001
    assert "".join(made).replace("\n", "").count("é") == 30_000 + MAX_RESULT
    assert len(made) == 9 + 2


def test_a_note_is_shown_beside_what_it_stands_for() -> None:
    lines = [line for entry in compacted(RUN) for line in entry_lines(entry)]
    assert ("returned", "look → seen a") in lines
    assert lines[-2:] == [
        ("note", "the first 6 entries go to the model as this summary, by m"),
        ("summary", "what was"),
    ]


names = st.sampled_from(["add", "root", "sine"])


@st.composite
def transcripts(draw: st.DrawFn) -> list[Json]:
    """Turns of calls, answers, reveals, changed requests, and compactions between steps."""
    entries, asked = [START, user("turn 0")], True
    for number in range(1, draw(st.integers(3, 13))):
        more: dict[str, Any] = {"established": draw(st.lists(names, unique=True))} if draw(st.booleans()) else {}
        if asked and draw(st.booleans()):
            more["request_parts"] = [*built(entries).pending, delta(draw(names))]
        if draw(st.integers(0, 3)) == 0:
            entries += [said(f"answer {number}", **more), user(f"turn {number}")]
            asked = True
        else:
            ids = [f"c{number}.{index}" for index in range(draw(st.integers(1, 3)))]
            reveals = tuple(draw(st.lists(names, unique=True, max_size=2)))
            entries += [called(*ids, **more), answered(*ids[:1], reveals=reveals)]
            if ids[1:]:
                entries[-1]["more"] = True
                entries.append(answered(*ids[1:], reveals=reveals))
            asked = False
        if draw(st.integers(0, 4)) == 0:
            entries.append({"kind": "request", "request_parts": [*built(entries).pending, delta(draw(names))]})
        if draw(st.integers(0, 2)) == 0:
            entries = compacted(entries, draw(st.sampled_from([0, 600, 1200, 2400])), f"summary {number}")
    return entries


@settings(deadline=None, max_examples=200)
@given(entries=transcripts())
def test_a_conversation_is_the_same_without_what_a_note_stands_for(entries: list[Json]) -> None:
    whole = built(entries)
    check_sendable(whole.messages)
    for entry in entries:
        if entry["kind"] == "note":
            assert without(entries, entry["upto"]) == whole
