"""What has changed between two exports of an App's contracts, and which of it breaks what is running or waiting.

A change breaks where a call that was made by the old contract isn't taken by the new one (it may wait for an approval
for weeks, and goes to whatever worker is there then), or where a result by the new one isn't what the old one said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perdure.contracts import Json
from perdure.toolsets.compare import Comparison

FORMAT = 1
"""Of an export: the value of its key `perdure_contracts`."""
TOOL: Json = {
    "type": "object",
    "properties": {
        "version": {"type": "string"},
        "description": {"type": "string"},
        "input": {"type": "object"},
        "output": {"type": "object"},
    },
}
EXPORT: Json = {
    "type": "object",
    "properties": {
        "perdure_contracts": {"const": FORMAT},
        "agents": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"tools": {"type": "object", "additionalProperties": TOOL}},
                "required": ["tools"],
            },
        },
    },
    "required": ["perdure_contracts", "agents"],
}
"""What an export is, as JSON Schema."""


@dataclass(frozen=True)
class Change:
    """One change of one tool, or of an agent (`tool` is empty then)."""

    agent: str
    tool: str
    at: str
    """Where in the tool: `arguments`, `result`, with the path of names in it; empty = all of it."""
    what: str
    breaking: bool


def changes(old: Json, new: Json) -> list[Change]:
    """What has changed from one export to another, the breaking ones first."""
    found = list(_agents(old.get("agents", {}), new.get("agents", {})))
    return sorted(found, key=lambda change: not change.breaking)


def _agents(old: Json, new: Json) -> Iterator[Change]:
    for agent in sorted(old.keys() | new.keys()):
        if agent not in new or agent not in old:
            yield Change(agent, "", "", "is gone" if agent in old else "is new", agent in old)
            continue
        before, after = old[agent]["tools"], new[agent]["tools"]
        for tool in sorted(before.keys() | after.keys()):
            if tool in before and tool in after:
                yield from _tool(agent, tool, before[tool], after[tool])
            else:
                yield Change(agent, tool, "", "is gone" if tool in before else "is new", tool in before)


def _tool(agent: str, tool: str, old: Json, new: Json) -> Iterator[Change]:
    found = [
        *_part(agent, tool, old.get("input"), new.get("input"), arguments=True),
        *_part(agent, tool, old.get("output"), new.get("output"), arguments=False),
    ]
    yield from found
    for name in ("version", "description"):
        before, after = old.get(name) or "", new.get(name) or ""
        if before != after:
            said = f"version was {before or 'none'}, is {after or 'none'}" if name == "version" else "other description"
            yield Change(agent, tool, "", said, False)
    if found and old.get("version") and old["version"] == new.get("version"):
        yield Change(agent, tool, "", f"version is still {new['version']}", False)


def _part(agent: str, tool: str, old: Any, new: Any, *, arguments: bool) -> Iterator[Change]:
    """The differences that break, then those that don't: what the new ones allow beyond the old."""
    where = "arguments" if arguments else "result"
    old, new = old or {}, new or {}
    if old == new:
        return
    broken = _differences(old, new, arguments=arguments, breaking=True)
    more = _differences(old, new, arguments=arguments, breaking=False)
    for at, what in broken:
        yield Change(agent, tool, f"{where}.{at}" if at else where, what, True)
    for at, what in more:
        if at not in {place for place, _ in broken}:
            yield Change(agent, tool, f"{where}.{at}" if at else where, what, False)
    if not broken and not more:
        yield Change(agent, tool, where, "other words or defaults", False)


def _differences(old: Json, new: Json, *, arguments: bool, breaking: bool) -> list[tuple[str, str]]:
    inner_is_old = arguments == breaking
    inner, outer = (old, new) if inner_is_old else (new, old)
    found = Comparison(inner, outer, inner_is_old=inner_is_old, arguments=arguments).differences()
    return [(difference.at, difference.what) for difference in found]
