"""`LangChainToolset`: tools of LangChain, run as they are. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ToolReturn

from perdure.contracts import Json, validation_problems
from perdure.errors import DeclarationError
from perdure.toolsets.foreign import each_of, foreign, refuse_arguments, retry_unless_valid

try:
    from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
    from langchain_core.tools import Tool as SingleInputTool

    from perdure.toolsets.langchain_results import result_of
except ImportError as error:
    raise ImportError("perdure.toolsets.langchain needs langchain-core: pip install 'perdure[langchain]'") from error

Inject = Callable[[RunContext[Any]], Any]
SYNC = (BaseTool, StructuredTool, SingleInputTool)
"""Their `_arun` runs the sync function in a thread of LangChain's, where there is no async one."""


class LangChainToolset(FunctionToolset[Any]):
    """Tools of LangChain: functions with `@tool`, `StructuredTool`, `Tool`, subclasses of `BaseTool`.

    Async where the tool is, else in a thread. Arguments are validated by its `args_schema` when the call is planned,
    and by LangChain again when it runs. `inject` gives arguments that LangChain hides from the model: by name, a
    function of the `RunContext`, called on the worker once for the plan and once for the call; its values aren't
    written to history. `InjectedToolCallId` needs none.

    Raises:
        DeclarationError: for what isn't a tool, hidden arguments without `inject`, `return_direct`, and schemas of
            Pydantic v1.
    """

    def __init__(self, tools: Iterable[BaseTool], *, id: str, inject: Mapping[str, Inject] | None = None) -> None:
        given = each_of(tools, BaseTool, id)
        known = {name for tool in given for name in _hidden(tool)}
        if unknown := sorted(set(inject or {}) - known):
            raise DeclarationError(
                f"toolset {id!r}: no tool has the injected arguments {unknown}. Known: {sorted(known)}"
            )
        super().__init__([_adapted(tool, id, inject or {}) for tool in given], id=id)


def _adapted(tool: BaseTool, id: str, inject: Mapping[str, Inject]) -> Tool[Any]:
    where = f"toolset {id!r}: tool {tool.name!r}"
    schema, hidden = _schema(tool, where), _hidden(tool)
    _refuse(tool, hidden - _of_the_call(tool) - set(inject), where)

    def injected(ctx: RunContext[Any], args: Json) -> Json:
        if own := sorted(set(args) & hidden):
            refuse_arguments(f"{own} can't be given")
        ids = dict.fromkeys(_of_the_call(tool), ctx.tool_call_id)
        return args | ids | {name: inject[name](ctx) for name in hidden & set(inject)}

    def check(ctx: RunContext[Any], /, **args: Any) -> None:
        whole = injected(ctx, args)
        if _model(tool) is None:
            retry_unless_valid(schema, args)
        else:
            _validate(tool, whole, hidden)

    def made(ctx: RunContext[Any], args: Json) -> Any:
        return {"type": "tool_call", "id": ctx.tool_call_id, "name": tool.name, "args": injected(ctx, args)}

    async def call_async(ctx: RunContext[Any], /, **args: Any) -> ToolReturn[Any]:
        return result_of(tool.name, await tool.ainvoke(made(ctx, args)))

    def call(ctx: RunContext[Any], /, **args: Any) -> ToolReturn[Any]:
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


def _model(tool: BaseTool) -> type[BaseModel] | None:
    """The tool's own model of its arguments; `None`: it has none, or JSON Schema, and LangChain validates nothing."""
    declared: Any = tool.args_schema
    return declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None


def _schema(tool: BaseTool, where: str) -> Json:
    """The JSON Schema of what the model gives: without injected arguments."""
    if isinstance(tool, SingleInputTool) and tool.args_schema is None:
        return {"type": "object", "properties": tool.args, "required": list(tool.args), "additionalProperties": False}
    if tool.args_schema is not None and _model(tool) is None and not isinstance(tool.args_schema, dict):
        raise DeclarationError(f"{where}: args_schema is a model of Pydantic v1. Make it one of Pydantic v2")
    shown: Any = tool.tool_call_schema
    schema: Json = dict(cast("Json", shown) if isinstance(shown, dict) else shown.model_json_schema())
    schema = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {"type": "object", "properties": {}, **schema}


def _hidden(tool: BaseTool) -> set[str]:
    """The arguments that LangChain injects, by its own reckoning: those of the schema that the model isn't shown, and
    those of the function alone."""
    hidden = set(tool._injected_args_keys)  # pyright: ignore[reportPrivateUsage]
    if (model := _model(tool)) is not None:
        shown = cast("type[BaseModel]", tool.tool_call_schema)
        hidden |= set(model.model_fields) - set(shown.model_fields)
    return hidden


def _of_the_call(tool: BaseTool) -> set[str]:
    """Those that are the id of the call, which is known here as there."""
    model = _model(tool)
    fields = model.model_fields if model is not None else {}
    marked = {name for name, field in fields.items() if any(map(_is_id, field.metadata))}
    return marked | ({"tool_call_id"} & _hidden(tool))


def _is_id(mark: Any) -> bool:
    return mark is InjectedToolCallId or isinstance(mark, InjectedToolCallId)


def _validate(tool: BaseTool, whole: Json, hidden: set[str]) -> None:
    """Ask the model again where the tool's model refuses its arguments, in the tool's words if it has some."""
    model = _model(tool)
    assert model is not None
    try:
        model.model_validate(whole)
    except ValidationError as error:
        if any(row["loc"] and row["loc"][0] in hidden for row in error.errors()):
            raise
        told = tool.handle_validation_error
        if callable(told):
            raise ModelRetry(told(error)) from None
        if isinstance(told, str):
            raise ModelRetry(told) from None
        refuse_arguments(validation_problems(error, "$"))


def _is_async(tool: BaseTool) -> bool:
    owner = next(kind for kind in type(tool).__mro__ if "_arun" in vars(kind))
    return getattr(tool, "coroutine", None) is not None or owner not in SYNC
