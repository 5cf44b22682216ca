"""`namespace`: a toolset whose tools are hidden until they are searched for, also by the words of their namespace.

Pydantic AI's own means: a prefix, metadata, deferred loading. The namespace's words become part of each description, so
that every strategy of its `ToolSearch` finds them, a provider's search and an embedding too.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, cast

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, PrefixedToolset, ToolsetTool

from perdure.errors import DeclarationError
from perdure.typed import check_arguments, shown

NAMESPACE = "namespace"
"""The key in a tool's metadata for the name of its namespace."""
DESCRIPTION = "namespace_description"
"""The key for what its namespace is for."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")

Tools = dict[str, ToolsetTool[Any]]

_ONLY: ContextVar[frozenset[str] | None] = ContextVar("only", default=None)


def namespace(toolset: AbstractToolset[Any], *, name: str, description: str, hidden: bool = True) -> Namespace:
    """The toolset as a namespace: `orders` becomes `billing_orders`, found by its own words and by the namespace's.

    Args:
        toolset: any toolset. Tools that never change (functions without `prepare`, external ones) are listed once.
        name: the prefix of the tools' names. Wire format: keep it once runs exist.
        description: what the tools are for, in the words that a model would search with.
        hidden: whether the model sees the tools only once they are found.

    Raises:
        DeclarationError: for a name that can't be the beginning of a tool's name, or nothing to search by.
    """
    check_arguments(namespace, locals(), f"namespace(name={name!r})")
    if not NAME.fullmatch(name):
        raise DeclarationError(
            f"namespace(name={name!r}) is not 1 to 40 of A-Z, a-z, 0-9, _ and -, from a letter or digit on"
        )
    if not description.strip():
        raise DeclarationError(f"namespace(name={name!r}, description={description!r}): say in words what it is for")
    return Namespace(toolset, name, description=description.strip(), hidden=hidden)


def namespaces(*parts: Namespace) -> Namespaces:
    """Many namespaces as one toolset. Pydantic AI asks each toolset of an agent four times in a step, each time in a
    task of its own; with twenty of them that is a fifth of a step."""
    for part in cast("tuple[Any, ...]", parts):
        if not isinstance(part, Namespace):
            listed = isinstance(part, list | tuple)
            what = "put a * before the list" if listed else "make it one, namespace(toolset, name=…, description=…)"
            raise DeclarationError(f"namespaces(…): {shown(part)} is no namespace: {what}")
    return Namespaces(list(parts))


@dataclass
class Namespace(PrefixedToolset[Any]):
    """What `namespace` makes. `prefix` is its name."""

    description: str = field(kw_only=True)
    hidden: bool = field(kw_only=True)
    _listed: tuple[Any, Tools] | None = field(default=None, init=False, repr=False, compare=False)
    """The tools as they were made last, and of what. With hundreds of tools making them is most of a step."""

    async def get_tools(self, ctx: RunContext[Any]) -> Tools:
        """The tools under their new names. Runs for each model request and each call."""
        source = _source(self.wrapped)
        if source is None:
            return _usable(await self._made(ctx), ctx)
        made_of = (ctx.max_retries, source)
        if self._listed is None or self._listed[0] != made_of:
            self._listed = made_of, await self._made(ctx)
        return _usable(self._listed[1], ctx)

    async def _made(self, ctx: RunContext[Any]) -> Tools:
        tools = await super().get_tools(ctx)
        return {name: replace(tool, tool_def=self.shown(tool.tool_def)) for name, tool in tools.items()}

    def shown(self, tool: ToolDefinition) -> ToolDefinition:
        """A definition, with its new name, as it is searched and shown."""
        words = words_of(self.prefix, self.description)
        return replace(
            tool,
            description=f"{tool.description}{words}" if tool.description else words.strip(),
            metadata={**(tool.metadata or {}), NAMESPACE: self.prefix, DESCRIPTION: self.description},
            defer_loading=self.hidden or tool.defer_loading,
            toolset_id=tool.toolset_id or self.id,
        )


@dataclass
class Namespaces(CombinedToolset[Any]):
    """What `namespaces` makes."""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """The parts as they are for one run."""
        return self._of([await part.for_run(ctx) for part in self.toolsets])

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """The parts as they are for one step."""
        return self._of([await part.for_run_step(ctx) for part in self.toolsets])

    def _of(self, parts: Sequence[AbstractToolset[Any]]) -> Namespaces:
        same = all(new is old for new, old in zip(parts, self.toolsets, strict=True))
        return self if same else replace(self, toolsets=parts)

    async def get_tools(self, ctx: RunContext[Any]) -> Tools:
        """The tools of all parts. Raises `UserError` where two have one name."""
        found: Tools = {}
        for part in self.toolsets:
            tools = await part.get_tools(ctx)
            if both := found.keys() & tools.keys():
                raise UserError(f"Two tools of namespaces are named {min(both)!r}. Rename one of them.")
            found |= tools
        return _usable(found, ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Let the part that has the tool call it."""
        return await tool.toolset.call_tool(name, tool_args, ctx, tool)


@contextmanager
def only(names: Iterable[str]) -> Generator[None]:
    """While entered, namespaces list of their hidden tools those that were found, and these."""
    token = _ONLY.set(frozenset(names))
    try:
        yield
    finally:
        _ONLY.reset(token)


@contextmanager
def everything() -> Generator[None]:
    """While entered, namespaces list all that they have, also within `only`."""
    token = _ONLY.set(None)
    try:
        yield
    finally:
        _ONLY.reset(token)


def _usable(tools: Tools, ctx: RunContext[Any]) -> Tools:
    """What of the tools is listed, see `only`, and a first hidden one, so that the search is offered."""
    names = _ONLY.get()
    if names is None:
        return dict(tools)
    wanted = names | ctx.discovered_tool_names
    hidden = (name for name, tool in tools.items() if tool.tool_def.defer_loading and name not in wanted)
    unlisted = frozenset(islice(hidden, 1, None))
    return {name: tool for name, tool in tools.items() if name not in unlisted}


def lists_only() -> bool:
    """Whether `only` is entered."""
    return _ONLY.get() is not None


def _source(toolset: AbstractToolset[Any]) -> list[Any] | None:
    """What the toolset's list is made of; `None` where only asking it tells, as it may be another one in each step."""
    if type(toolset) is ExternalToolset:
        return list(toolset.tool_defs)
    if type(toolset) is FunctionToolset and all(tool.prepare is None for tool in toolset.tools.values()):
        return list(toolset.tools.values())
    return None


def words_of(name: str, description: str) -> str:
    """What a namespace adds to the description of its tools."""
    return f"\n\nPart of {name}: {description}"


def namespace_of(tool: ToolDefinition) -> str | None:
    """The namespace a tool is in."""
    return (tool.metadata or {}).get(NAMESPACE)
