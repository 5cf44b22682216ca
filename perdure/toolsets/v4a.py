"""V4A diffs, by OpenAI's own library, where it would change something else than the diff says. For `apply_patch`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.toolsets.foreign import no_sdk

try:
    from agents.apply_diff import apply_diff
except ImportError as error:
    raise ImportError(no_sdk("perdure.toolsets.apply_patch")) from error

HEADER = re.compile(r"^(?=@@ )", re.M)
SIGN = re.compile(r"^([+-])(.*)$", re.M)
END = re.compile(r"\r?\n")
NEW, OLD = "\0", "\1"
"""Before a line of the result, while it is made: it is added; it is one of the file's that is removed."""


def created(diff: str) -> str:
    """The text of a new file. Raises `ValueError`."""
    return apply_diff("", diff, mode="create")


def changed(text: str, diff: str) -> str:
    """The text after a change, each line with the end it had. Raises `ValueError` where the diff doesn't fit."""
    ends = END.findall(text)
    if len(set(ends)) < 2:
        return apply_diff(text, _strict(diff))
    if NEW in text or OLD in text:
        raise ValueError("the file has lines that end in CR LF and in LF, and control characters: it can't be patched")
    marked = apply_diff(END.sub("\n", text), SIGN.sub(_marked, _strict(END.sub("\n", diff))))
    return _joined(list(_with_ends(marked, ends)))


def _strict(diff: str) -> str:
    """The diff with a bare "@@" before each header: the library passes over a line after "@@" that isn't in the file,
    and changes the first place that fits, unless it comes with another."""
    return HEADER.sub("@@\n", diff)


def _marked(line: re.Match[str]) -> str:
    sign, rest = line.groups()
    return f"+{NEW}{rest}" if sign == "+" else f"-{rest}\n+{OLD}{rest}"


def _with_ends(marked: str, ends: list[str]) -> Iterator[tuple[str, str]]:
    """The lines that stay, each with its end; an added one has that of the line before it, or of the first."""
    old, end = iter(ends), ends[0]
    for line in marked.split("\n"):
        if not line.startswith(NEW):
            end = next(old, end)
        if not line.startswith(OLD):
            yield line.removeprefix(NEW), end


def _joined(lines: list[tuple[str, str]]) -> str:
    """The text. What is behind the last end is no line, or one without an end."""
    return "".join(line + end for line, end in lines[:-1]) + "".join(line for line, _ in lines[-1:])
