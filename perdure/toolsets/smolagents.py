"""`SmolagentsToolset`: tools of Hugging Face's smolagents, run as they are. Needs the extra `smolagents`."""

from __future__ import annotations

import inspect
import io
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import BinaryContent, FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from perdure.contracts import Json
from perdure.errors import DeclarationError
from perdure.schemas import check_schema
from perdure.toolsets.foreign import SAID, each_of, foreign, is_repeated, log_fault, retry_unless_valid
from perdure.toolsets.misplaced import NoFunction

try:
    from PIL.Image import Image
    from smolagents.agent_types import AgentImage, AgentType  # pyright: ignore[reportMissingTypeStubs]
    from smolagents.default_tools import (  # pyright: ignore[reportMissingTypeStubs]
        FinalAnswerTool,
        UserInputTool,
    )
    from smolagents.tools import Tool as SmolTool  # pyright: ignore[reportMissingTypeStubs]
    from smolagents.tools import validate_tool_arguments  # pyright: ignore[reportMissingTypeStubs]
except ImportError as error:
    raise ImportError("perdure.toolsets.smolagents needs smolagents: pip install 'perdure[smolagents]'") from error

INSTEAD: dict[type[Any], str] = {
    UserInputTool: "reads the terminal of the worker: use perdure.toolsets.ask_user, which waits with no activity",
    FinalAnswerTool: "ends no run of Pydantic AI: the agent's output_type does",
}
"""Tools that make sense in smolagents' own agents alone."""
LOCKS: WeakKeyDictionary[SmolTool, threading.Lock] = WeakKeyDictionary()
"""Of each tool, for its `setup()`: one tool may be in several toolsets."""
NO_JSON = ("image", "audio")
"""Types of smolagents that a model can't write as JSON."""


class SmolagentsToolset(NoFunction, FunctionToolset[Any]):
    """Tools of smolagents: subclasses of `smolagents.Tool`, functions with `@smolagents.tool`, its default tools.

    Arguments are checked by smolagents' own rules and by the JSON Schema they come to. `setup()` runs once per tool and
    worker, before its first call. Of an exception the model is told the name only, unlike in smolagents.

    Raises:
        DeclarationError: for what isn't a tool, and for an argument or result that JSON can't hold.
    """

    def __init__(self, tools: Iterable[SmolTool], *, id: str) -> None:
        super().__init__([_adapted(tool, id) for tool in each_of(tools, SmolTool, id, "@smolagents.tool")], id=id)


def _adapted(tool: SmolTool, id: str) -> Tool[Any]:
    where = f"toolset {id!r}: tool {tool.name!r}"
    _refuse(tool, where)
    schema = _schema(tool)
    ready = _Ready(tool)

    def check(_ctx: RunContext[Any], /, **args: Any) -> None:
        try:
            validate_tool_arguments(tool, args)
        except (TypeError, ValueError) as error:
            raise ModelRetry(str(error)) from None
        retry_unless_valid(schema, args)

    def call(_ctx: RunContext[Any], /, **args: Any) -> Any:
        ready.wait()
        return _result(tool, tool(**_with_nulls(tool, args)))

    adapted = foreign(tool.name, tool.description, schema, call, check, where)
    if tool.output_schema:
        check_schema(tool.output_schema, f"{where}: output_schema")
        adapted.function_schema = replace(adapted.function_schema, return_schema=tool.output_schema)
        adapted.include_return_schema = True
    return adapted


def _refuse(tool: SmolTool, where: str) -> None:
    """Raise `DeclarationError` for what can't be carried."""
    for kind, instead in INSTEAD.items():
        if isinstance(tool, kind):
            raise DeclarationError(f"{where} {instead}")
    for name, content in tool.inputs.items():
        if bad := [one for one in _types(content) if one in NO_JSON]:
            raise DeclarationError(
                f"{where}: the argument {name!r} is of type {bad[0]!r}, which a model can't write as JSON. "
                "Take a reference (a path, a URL), and load it in the tool"
            )
    if tool.output_type == "audio":
        raise DeclarationError(f"{where}: output_type='audio' isn't carried. Return smolagents' 'string' or 'object'")
    if inspect.iscoroutinefunction(_forward(tool)):
        raise DeclarationError(f"{where}: forward() is async, which smolagents doesn't await: make it a plain function")


def _forward(tool: SmolTool) -> Callable[..., Any]:
    """What the tool does."""
    return cast("Callable[..., Any]", getattr(tool, "forward", None))


def _types(content: Json) -> list[str]:
    declared = content["type"]
    return [declared] if isinstance(declared, str) else list(declared)


def _schema(tool: SmolTool) -> Json:
    """The JSON Schema of the arguments. In smolagents `nullable` means "may be null or left out"."""
    required = [name for name, content in tool.inputs.items() if not content.get("nullable")]
    properties = {name: _property(content) for name, content in tool.inputs.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _property(content: Any) -> Any:
    """A type of smolagents as JSON Schema: without its `any`, and with null where it is `nullable`."""
    if isinstance(content, list):
        return [_property(item) for item in cast("list[Any]", content)]
    if not isinstance(content, dict):
        return content
    given = cast("Json", content)
    schema = {key: _property(value) for key, value in given.items() if (key, type(value)) != ("nullable", bool)}
    if schema.get("type") == "any" or (isinstance(schema.get("type"), list) and "any" in schema["type"]):
        del schema["type"]
    if given.get("nullable") is True and "type" in schema:
        description = {"description": schema.pop("description")} if "description" in schema else {}
        return {"anyOf": [schema, {"type": "null"}], **description}
    return schema


class _Ready:
    """That a tool's `setup()` has run: once, whatever number of threads waits for it."""

    def __init__(self, tool: SmolTool) -> None:
        self._tool = tool
        self._lock = LOCKS.setdefault(tool, threading.Lock())

    def wait(self) -> None:
        """Run `setup()` unless it has run. One that fails runs again: by Temporal's next attempt or the next call.

        `is_initialized` is set here, since a `setup()` of a user's need not: smolagents would then call it every time.
        """
        with self._lock:
            if getattr(self._tool, "is_initialized", False):
                return
            try:
                self._tool.setup()
            except Exception as error:
                if isinstance(error, SAID) or is_repeated():
                    raise
                log_fault(self._tool.name, error)
                raise ToolFailed(f"The tool was not run: its setup failed with {type(error).__name__}.") from error
            self._tool.is_initialized = True


def _with_nulls(tool: SmolTool, args: Json) -> Json:
    """The arguments, with null for what is nullable, was left out, and has no default in `forward`."""
    parameters = inspect.signature(_forward(tool)).parameters
    needed = [name for name in tool.inputs if name not in args and name in parameters]
    return {**args, **{name: None for name in needed if parameters[name].default is inspect.Parameter.empty}}


def _result(tool: SmolTool, value: Any) -> Any:
    """The result as a model can read it: smolagents' own wrappers taken off, an image as a PNG."""
    if tool.output_type == "image":
        value = AgentImage(value)  # smolagents takes a path and bytes for one, too
    if isinstance(value, AgentType):
        unwrap = cast("Callable[[], Any]", value.to_raw)
        value = unwrap()
    if isinstance(value, Image):
        png = io.BytesIO()
        value.save(png, format="PNG")
        return BinaryContent(png.getvalue(), media_type="image/png")
    return str(value) if tool.output_type == "string" and not isinstance(value, str) else value
