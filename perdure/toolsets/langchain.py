"""`LangChainToolset`: tools of LangChain, run as they are. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.messages import ToolReturn

from perdure.contracts import Json
from perdure.errors import DeclarationError
from perdure.toolsets.foreign import each_of, foreign, refuse_arguments, refuse_generator, retry_unless_valid
from perdure.toolsets.misplaced import NoFunction
from perdure.typed import check_value

try:
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.tools import Tool as SingleInputTool

    from perdure.toolsets.langchain_arguments import (
        given,
        hidden_of,
        ids_of,
        model_of,
        names_of_hidden,
        refuse_async,
        validate,
    )
    from perdure.toolsets.langchain_results import result_of
except ImportError as error:
    raise ImportError("perdure.toolsets.langchain needs langchain-core: pip install 'perdure[langchain]'") from error

Inject = Callable[[RunContext[Any]], Any]
SYNC = (BaseTool, StructuredTool, SingleInputTool)
"""Their `_arun` runs the sync function in a thread of LangChain's, where there is no async one."""


class LangChainToolset(NoFunction, FunctionToolset[Any]):
    """Tools of LangChain: functions with `@tool`, `StructuredTool`, `Tool`, subclasses of `BaseTool`.

    Async where the tool is, else in a thread. Arguments are validated by its `args_schema` when the call is planned,
    and again when it runs. `inject` gives arguments that LangChain hides from the model: by name, a function of the
    `RunContext`, called on the worker once for the plan and once for the call; its values aren't written to history,
    and one that the tool refuses ends the run. `InjectedToolCallId` needs none.

    Raises:
        DeclarationError: for what isn't a tool, hidden arguments without `inject`, async functions in it,
            `return_direct`, and schemas of Pydantic v1.
    """

    def __init__(self, tools: Iterable[BaseTool], *, id: str, inject: Mapping[str, Inject] | None = None) -> None:
        ours = each_of(tools, BaseTool, id, "@langchain_core.tools.tool")
        check_value(inject, Mapping[str, Inject] | None, f"toolset {id!r}: inject")
        known = {name for tool in ours for name in hidden_of(tool)}
        if unknown := sorted(set(inject or {}) - known):
            raise DeclarationError(
                f"toolset {id!r}: no tool has the injected arguments {unknown}. Known: {sorted(known)}"
            )
        refuse_async(inject or {}, id)
        super().__init__([_adapted(tool, id, inject or {}) for tool in ours], id=id)


def _adapted(tool: BaseTool, id: str, inject: Mapping[str, Inject]) -> Tool[Any]:
    where = f"toolset {id!r}: tool {tool.name!r}"
    schema, ids, hidden = _schema(tool, where), ids_of(tool), hidden_of(tool)
    names = set(names_of_hidden(tool))
    _refuse(tool, hidden - ids - set(inject), where)

    def whole(ctx: RunContext[Any], args: Json) -> Json:
        if own := sorted(set(args) & names):
            refuse_arguments(f"{own} can't be given")
        injected = {name: given(tool.name, name, inject[name](ctx)) for name in hidden & set(inject)}
        found = args | dict.fromkeys(ids, ctx.tool_call_id) | injected
        validate(tool, found)
        return found

    def check(ctx: RunContext[Any], /, **args: Any) -> None:
        if model_of(tool) is None:
            retry_unless_valid(schema, args)
        whole(ctx, args)

    def made(ctx: RunContext[Any], args: Json) -> Any:
        return {"type": "tool_call", "id": ctx.tool_call_id, "name": tool.name, "args": whole(ctx, args)}

    body = _body(tool)

    async def call_async(ctx: RunContext[Any], /, **args: Any) -> ToolReturn[Any]:
        refuse_generator(body)
        return result_of(tool.name, await tool.ainvoke(made(ctx, args)))

    def call(ctx: RunContext[Any], /, **args: Any) -> ToolReturn[Any]:
        refuse_generator(body)
        return result_of(tool.name, tool.invoke(made(ctx, args)))

    adapted = foreign(tool.name, tool.description, schema, call_async if _is_async(tool) else call, check, where)
    adapted.defer_loading = bool((tool.extras or {}).get("defer_loading"))
    return adapted


def _refuse(tool: BaseTool, missing: set[str], where: str) -> None:
    if missing:
        raise DeclarationError(
            f"{where}: LangChain injects {sorted(missing)}, which nobody gives here: LangChainToolset(…, "
            f"inject={{{min(missing)!r}: lambda ctx: …}}). State and stores of LangGraph have no counterpart"
        )
    if tool.return_direct:
        raise DeclarationError(
            f"{where}: return_direct=True ends a run with the tool's result; here an output function does that: "
            "Agent(…, output_type=function)"
        )


def _schema(tool: BaseTool, where: str) -> Json:
    """The JSON Schema of what the model gives: without injected arguments."""
    if isinstance(tool, SingleInputTool) and tool.args_schema is None:
        return {"type": "object", "properties": tool.args, "required": list(tool.args), "additionalProperties": False}
    if tool.args_schema is not None and model_of(tool) is None and not isinstance(tool.args_schema, dict):
        raise DeclarationError(f"{where}: args_schema is a model of Pydantic v1. Make it one of Pydantic v2")
    shown: Any = tool.tool_call_schema
    schema: Json = dict(cast("Json", shown) if isinstance(shown, dict) else shown.model_json_schema())
    schema = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {"type": "object", "properties": {}, **schema}


def _body(tool: BaseTool) -> Any:
    """The function that runs: the tool's own, or the method of its class."""
    if _is_async(tool):
        return getattr(tool, "coroutine", None) or tool._arun  # pyright: ignore[reportPrivateUsage]
    return getattr(tool, "func", None) or tool._run  # pyright: ignore[reportPrivateUsage]


def _is_async(tool: BaseTool) -> bool:
    owner = next(kind for kind in type(tool).__mro__ if "_arun" in vars(kind))
    return getattr(tool, "coroutine", None) is not None or owner not in SYNC
