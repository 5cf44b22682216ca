"""`by_namespace`: a strategy for Pydantic AI's `ToolSearch` that knows namespaces.

    Agent(…, toolsets=[namespace(…), …], capabilities=[ToolSearch(strategy=by_namespace, max_results=30)])

The default strategy counts words, and those of a namespace are in each of its tools: of many it can't tell which was
meant, and a word that another namespace uses too brings tools of that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition

from perdure.toolsets.namespace import DESCRIPTION, namespace_of, words_of

WORD = re.compile(r"[^\W_]+")

Words = frozenset[str]


def by_namespace(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
    """The names of the tools that the queries are about, best first, those that were found before last.

    A query that names a namespace, or that says nothing but its words, finds all its tools and no others. Any other
    finds the tools that share words with it, first those with most words, of these those with most of their own. Of
    several queries each has its turn. Runs in the activity of the search.
    """
    rows = zip_longest(*(_found(_words(query), tools) for query in queries))
    names = dict.fromkeys(name for row in rows for name in row if name is not None)
    return sorted(names, key=lambda name: name in ctx.discovered_tool_names)


def _found(asked: Words, tools: Sequence[ToolDefinition]) -> list[str]:
    if not asked:
        return []
    spaces = {space: _words(f"{space} {_description(tool)}") for tool in tools if (space := namespace_of(tool))}
    named = [space for space in spaces if _words(space) <= asked]
    meant = named or [space for space, words in spaces.items() if asked <= words]
    chosen = [tool for tool in tools if namespace_of(tool) in meant] if meant else tools
    scores = {tool.name: _score(asked, tool, spaces) for tool in chosen}
    kept = [name for name, score in scores.items() if meant or score[0]]
    return sorted(kept, key=lambda name: scores[name], reverse=True)


def _score(asked: Words, tool: ToolDefinition, spaces: Mapping[str, Words]) -> tuple[int, int]:
    """How many of the words the tool and its namespace have, and how many of them are the tool's own."""
    space = namespace_of(tool) or ""
    shared = words_of(space, _description(tool)).strip()
    own = _words(f"{tool.name.removeprefix(space)} {(tool.description or '').removesuffix(shared)}")
    return len(asked & (own | spaces.get(space, frozenset()))), len(asked & own)


def _description(tool: ToolDefinition) -> str:
    return (tool.metadata or {}).get(DESCRIPTION, "")


def _words(text: str) -> Words:
    return frozenset(WORD.findall(text.casefold()))
