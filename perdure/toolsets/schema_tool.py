"""`schema_tool`: a tool from a function and a JSON Schema, whose arguments are checked by that schema.

For a source that has its schemas from elsewhere: a table, a file, another system. Pydantic AI's `Tool.from_schema`
shows the model the schema, and runs whatever the model sends.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from pydantic_ai import RunContext, Tool

from perdure.contracts import Json
from perdure.toolsets.callables import code_of
from perdure.toolsets.foreign import foreign, retry_unless_valid


def schema_tool(
    function: Callable[..., Any],
    name: str,
    description: str,
    schema: Json,
    takes_ctx: bool = False,
    sequential: bool = False,
) -> Tool[Any]:
    """As `Tool.from_schema`, but arguments that the schema doesn't allow are told to the model, and nothing runs.

    They are looked at once, when the call is planned: a missing argument, one of another type, and one that isn't in
    `properties` where the schema says `additionalProperties: false`. Of a `ValidationError` that the function raises
    the model is told the name only, as of other exceptions.

    Args:
        function: What runs, sync (then in a thread) or async. It gets the arguments by name, as JSON has them.
        name: What the model calls it.
        description: What the model reads of it.
        schema: The JSON Schema of the arguments, an object.
        takes_ctx: Whether the function takes the `RunContext` first, by its place.
        sequential: As Pydantic AI's: no other call runs beside it.

    Raises:
        DeclarationError: where `schema` is no JSON Schema.
    """
    held = copy.deepcopy(schema)

    def check(_ctx: RunContext[Any], /, **args: Any) -> None:
        retry_unless_valid(held, args)

    tool = foreign(name, description, held, _with_ctx(function, takes_ctx), check, f"schema_tool({name!r})")
    tool.sequential = sequential
    return tool


def _with_ctx(function: Callable[..., Any], takes_ctx: bool) -> Callable[..., Any]:
    """The function as one that is async where it is, and takes the context."""
    if inspect.iscoroutinefunction(code_of(function)):

        async def call_async(ctx: RunContext[Any], /, **args: Any) -> Any:
            return await (function(ctx, **args) if takes_ctx else function(**args))

        return call_async

    def call(ctx: RunContext[Any], /, **args: Any) -> Any:
        return function(ctx, **args) if takes_ctx else function(**args)

    return call
