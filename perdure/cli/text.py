"""Lines for people: a transcript's entries as labelled text, safe to print on a terminal."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TextIO, cast

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perdure.contracts import Json, visible

STYLES = {
    "user": "bold cyan",
    "model": "bold green",
    "call": "bold yellow",
    "returned": "green",
    "failed": "bold red",
    "unknown": "bold red",
    "retried": "yellow",
    "done": "bold green",
}
WIDTH = 10
"""Columns of the label."""
PIPED = 100_000
"""Columns of a table that nobody looks at."""
UNBROKEN = 40
"""Columns of a name that is kept in one piece."""
NARROW = 10
"""Columns that any other text has at least."""
OUTCOMES = {"success": "returned", "interrupted": "cancelled"}

Line = tuple[str, str]
"""Label and text."""


def console(stream: TextIO) -> Console:
    """A console that wraps nothing, so that what is piped keeps its lines. Without a terminal a table has all the room
    that it needs: a line for each row."""
    width = None if stream.isatty() else PIPED
    return Console(file=stream, highlight=False, soft_wrap=True, markup=False, emoji=False, width=width)


def table(
    headers: Sequence[str], rows: Collection[Sequence[str]], names: Collection[str], *, box: Box | None = None
) -> Table:
    """A table for `console`. Of the columns `names`, which people copy from, nothing is cut or broken, but what is
    long; the others are folded where there is no room."""
    made = Table(box=box, pad_edge=box is not None, show_lines=box is not None)
    for number, header in enumerate(headers):
        widest = max(cell_len(line) for cell in (header, *(row[number] for row in rows)) for line in cell.split("\n"))
        if header in names and widest <= UNBROKEN:
            made.add_column(header, no_wrap=True, min_width=widest)
        else:
            made.add_column(header, overflow="fold", min_width=min(widest, NARROW))
    for row in rows:
        made.add_row(*map(printable, row))
    return made


def styled(label: str, text: str) -> Text:
    """A line with its label; further lines of `text` are indented."""
    body = printable(text).strip().replace("\n", "\n" + " " * WIDTH)
    return Text.assemble((label.ljust(WIDTH), STYLES.get(label, "bold")), body)


def printable(text: str) -> str:
    """`text` with what a terminal would obey, or what turns or hides text, as its code; new lines and tabs stay."""
    return visible(text.replace("\r\n", "\n"), keep="\n\t")


def plain(value: Any) -> str:
    """Text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def audit_line(row: Json) -> Line:
    """What happened, of which call, when and by whom, and all else that is known of it."""
    known = ("at", "event", "call", "tool", "by", "claimed", "verified", "claimed_by", "via")
    who = row.get("by") or row.get("claimed_by")
    how = "verified" if row.get("verified") else "claimed"
    by = f"by {json.dumps(who, ensure_ascii=False)} ({how}) " if who else ""
    via = f"via {row['via']} " if "via" in row else ""
    rest = " ".join(f"{name}={plain(value)}" for name, value in row.items() if name not in known)
    label = str(row.get("event", row.get("left_out", "")))
    return label, f"{row.get('call', '')} {row.get('tool', '')} {row.get('at', '')[:19]} {by}{via}{rest}"


def entry_lines(entry: Json) -> Iterator[Line]:
    """What a transcript's entry says. An entry of a newer version of perdure is named, not shown."""
    match entry.get("kind"):
        case "start":
            yield from ((name, plain(entry[name])) for name in ("params", "metadata") if name in entry)
        case "user":
            yield "user", _content(entry["content"])
        case "response":
            for part in entry["response"]["parts"]:
                yield from _response_lines(part)
            if entry["response"].get("state") == "interrupted":
                yield "stopped", "interrupted here"
        case "outcomes":
            for outcome in entry.get("outcomes", []):
                yield outcome["kind"], f"{outcome['tool']} → {_answer(outcome)}"
            for part in entry.get("parts", []):
                yield from _request_lines(part)
        case "handoff":
            yield "handoff", f"{entry['from']} → {entry['agent']}"
        case "request":
            return
        case "note" if "keep" in entry:
            yield "note", f"the first {entry['upto']} entries go to the model as this summary, by {entry['model']}"
            yield from (("summary", part["content"]) for part in entry["parts"] if part["part_kind"] == "compaction")
        case _:
            yield str(entry.get("kind")), plain(entry.get("text", ""))


def _response_lines(part: Json) -> Iterator[Line]:
    match part["part_kind"]:
        case "text":
            yield "model", str(part["content"])
        case "thinking":
            if part.get("content"):
                yield "thinking", str(part["content"])
        case "tool-call" | "builtin-tool-call":
            yield "call", f"{part['tool_name']} {plain(part.get('args') or {})}"
        case kind:
            yield "model", f"[{kind}]"


def _request_lines(part: Json) -> Iterator[Line]:
    """Answers that needed no call: refused arguments, output tools, feedback."""
    name, content = part.get("tool_name"), _content(part.get("content", ""))
    match part["part_kind"]:
        case "tool-return":
            outcome: str = part.get("outcome", "success")
            yield OUTCOMES.get(outcome, outcome), f"{name} → {content}"
        case "retry-prompt" | "retry-feedback":
            yield "retried", f"{name} → {content}" if name else content
        case "user-prompt":
            yield "user", content
        case _:
            return


def _answer(outcome: Json) -> str:
    parts = cast("list[Json]", outcome.get("parts", []))
    answers = [_content(part["content"]) for part in parts if "content" in part]
    from_outside = [plain(outcome["content"])] if "content" in outcome else []
    return "\n".join([*answers, *from_outside]) or str(outcome.get("text", ""))


def _content(content: Any) -> str:
    """User or tool content: text, or a list of text and parts, of which binary ones are only named."""
    if not isinstance(content, list):
        return plain(content)
    items = cast("list[Any]", content)
    return " ".join(_item(item) for item in items)


def _item(item: Any) -> str:
    if isinstance(item, dict) and "kind" in item:
        fields = cast("Json", item)
        return f"[{fields['kind']} {fields.get('url') or fields.get('media_type') or ''}]".replace(" ]", "]")
    return plain(item)
