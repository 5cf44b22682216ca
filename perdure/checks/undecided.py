"""Which policies can be judged only in a run, and by the tools of which toolsets: MCP servers, dynamic toolsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    PrefixedToolset,
    RenamedToolset,
    WrapperToolset,
)

from perdure.agent import DurableAgent
from perdure.checks.known import static_tools
from perdure.listing import every, kept, shown
from perdure.searching import lookups

WILD = re.compile(r"[*?[]")
CLOSE = 3
"""How many names of tools are named that a policy may have been meant for."""


class Open(NamedTuple):
    """A toolset that may show tools in a run that aren't known before."""

    label: str
    prefix: str
    """What their names begin with."""


def open_toolsets(durable: DurableAgent) -> list[Open]:
    """The toolsets of an agent whose tools only a run knows."""
    return [found for toolset in durable.agent.toolsets for found in _open(toolset, "", True)]


def _open(toolset: AbstractToolset[Any], prefix: str, exact: bool) -> Iterator[Open]:
    """`exact`: whether the names get here as they are inside, apart from `prefix`."""
    match toolset:
        case CombinedToolset():
            for part in toolset.toolsets:
                yield from _open(part, prefix, exact)
        case PrefixedToolset():
            yield from _open(toolset.wrapped, f"{prefix}{toolset.prefix}_" if exact else prefix, exact)
        case RenamedToolset():
            yield from _open(toolset.wrapped, prefix, False)
        case WrapperToolset() if kept(toolset)[1]:
            yield from _open(toolset.wrapped, prefix, exact)
        case _:
            if not shown(toolset).complete:
                yield Open(toolset.label, prefix)


def undecided(durable: DurableAgent) -> dict[str, list[str]]:
    """The policies that apply to no tool that is known without a run, each with the toolsets that may have one."""
    known = [*static_tools(durable)[0], *lookups(durable)]
    ruling = {durable.rule(name) for name in known}
    found = open_toolsets(durable)
    return {
        pattern: [at.label for at in found if may_match(pattern, at.prefix)]
        for pattern in durable.policies
        if pattern not in ruling
    }


def all_listed(durable: DurableAgent) -> bool:
    """Whether no toolset of the agent still waits for its first list: an optional server that couldn't be reached."""
    parts = (part for toolset in durable.agent.toolsets for part in every(toolset))
    return all(getattr(part, "has_listed", True) for part in parts)


def may_match(pattern: str, prefix: str) -> bool:
    """Whether a policy may be for a tool whose name begins with `prefix`."""
    head = WILD.split(pattern, maxsplit=1)[0]
    return pattern.startswith(prefix) if head == pattern else head.startswith(prefix) or prefix.startswith(head)


def no_effect(durable: DurableAgent, pattern: str, names: Iterable[str]) -> str:
    """Why a policy applies to none of these tools, and what it may have been meant for; empty where it does."""
    listed = list(names)
    matched = [name for name in listed if fnmatchcase(name, pattern)]
    rules: Mapping[str, str] = {name: durable.rule(name) for name in matched}
    if pattern in rules.values():
        return ""
    if matched:
        return f"never applies: {matched[:CLOSE]} have {sorted(set(rules.values()))}."
    return f"matches none of the tools that the agent's toolsets list.{did_you_mean(pattern, listed)}"


def did_you_mean(pattern: str, names: Iterable[str]) -> str:
    """The names that a policy may have been meant for, as a question; empty where none is close."""
    close = get_close_matches(WILD.sub("", pattern), list(names), CLOSE)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
