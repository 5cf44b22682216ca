"""What the adapters share: a tool of another library as a tool of Pydantic AI."""

from __future__ import annotations

import base64
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn, TypeVar, cast

from pydantic import ValidationError
from pydantic_ai import ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_core import SchemaValidator, core_schema
from temporalio.exceptions import ApplicationError

from perdure.context import call_or_none
from perdure.contracts import Json
from perdure.errors import DeclarationError
from perdure.schemas import check_schema, problems
from perdure.toolsets.callables import code_of
from perdure.typed import check_value, shown

LOG = logging.getLogger("perdure")
ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
SAID = (ModelRetry, ToolFailed, ApprovalRequired, CallDeferred, ApplicationError)
"""What a tool raises to say something to the model, or to the run: never taken for a fault."""
Kind = TypeVar("Kind")


def foreign(
    name: str, description: str, schema: Json, call: Callable[..., Any], check: Callable[..., Any], where: str
) -> Tool[Any]:
    """A tool with arguments of any JSON, as the other library takes them.

    `check(ctx, /, **args)` looks at them once, when the call is planned, and raises `ModelRetry`;
    `call(ctx, /, **args)` runs it. Both take `ctx` by position alone, since an argument may have any name. Of a
    `ValidationError` that one of them raises the model is told the name, as of other exceptions.
    """
    check_schema(schema, where)
    shown, checked = _by_name(name, call), _by_name(name, check)
    tool: Tool[Any] = Tool.from_schema(shown, name, description, schema, takes_ctx=True, args_validator=checked)
    tool.function_schema = replace(tool.function_schema, validator=ANY_OBJECT)
    return tool


def _by_name(tool: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of whose `ValidationError` the model isn't told more than of another exception."""
    if inspect.iscoroutinefunction(function):

        async def run_async(ctx: RunContext[Any], /, **args: Any) -> Any:
            with _validation_is_a_fault(tool):
                return await function(ctx, **args)

        return run_async

    def run(ctx: RunContext[Any], /, **args: Any) -> Any:
        with _validation_is_a_fault(tool):
            return function(ctx, **args)

    return run


@contextmanager
def _validation_is_a_fault(tool: str) -> Generator[None]:
    """Pydantic AI takes a `ValidationError` for one of the arguments, and shows the model its text and its input.

    One that a tool's own body raises is about values that the model hasn't given, and that may be secrets.
    """
    try:
        yield
    except ValidationError as error:
        log_fault(tool, error)
        raise ApplicationError(f"tool {tool!r} raised ValidationError", type="ValidationError") from None


def several(tools: Iterable[Any], kind: type[Any], id: str) -> list[Any]:
    """The tools as a list. Raises `DeclarationError` for one that isn't in a list."""
    check_value(id, str, "id of a toolset")
    if isinstance(tools, kind | str) or not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DeclarationError(f"toolset {id!r}: {shown(tools)} isn't a list of tools: put it into one, […]")
    return list(tools)


def each_of(tools: Iterable[Any], kind: type[Kind], id: str, decorator: str) -> list[Kind]:
    """The tools, if each is of that type and has a name of its own. Raises `DeclarationError`; `decorator` is the
    library's own for functions."""
    given = several(tools, kind, id)
    for tool in given:
        if not isinstance(tool, kind):
            hint = _instead(tool, kind, decorator)
            raise DeclarationError(f"toolset {id!r}: {shown(tool)} is no {kind.__module__}.{kind.__name__}{hint}")
    found = cast("list[Kind]", given)
    twice = [name for name, count in Counter(map(_name, found)).items() if count > 1]
    if twice:
        raise DeclarationError(f"toolset {id!r} has several tools of the same name: {twice}")
    return found


def _instead(tool: Any, kind: type[Any], decorator: str) -> str:
    """What to do with what is no tool, as far as it can be guessed."""
    if type(tool) in (list, tuple) and all(isinstance(one, kind) for one in tool):
        return ": it is a list of them, so put a * before it"
    if isinstance(tool, type):
        return f": it is a class; make one, {tool.__name__}(…)" if issubclass(tool, kind) else ""
    if inspect.isroutine(tool):
        return f": put {decorator} before the function, or give it to a FunctionToolset of Pydantic AI as it is"
    return ""


def _name(tool: Any) -> str:
    """The name of a tool, with its namespace where the library knows those."""
    return getattr(tool, "qualified_name", None) or tool.name


def retry_unless_valid(schema: Json, args: Json) -> None:
    """Ask the model again, naming what is wrong with the arguments by their schema."""
    if wrong := problems(schema, args):
        refuse_arguments(wrong)


def refuse_arguments(wrong: str) -> NoReturn:
    """Ask the model again, in the words in which perdure refuses arguments."""
    raise ModelRetry(f"The arguments are not valid: {wrong}")


def refuse_generator(function: Callable[..., Any]) -> None:
    """Raise `ToolFailed` for a function of which a library makes the text of a generator, without running it."""
    code = code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise ToolFailed("The tool was not run: it is a generator, and can be read once only; return a list.")


def from_base64(tool: str, data: str) -> bytes:
    """The bytes of an image or a file that a tool returned. Raises `ToolFailed` where it isn't base64: Python's own
    reading passes over what it doesn't know, and a model would get an empty file."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise ToolFailed(f"The tool {tool!r} ran, but the data of an image or file it returned isn't base64.") from None


def is_repeated() -> bool:
    """Whether Temporal repeats this call where it raises now. Not in a plain `agent.run`, which has no attempts."""
    call = call_or_none()
    return call is not None and call.attempt < call.attempts


def version_of(distribution: str) -> str:
    """The version that is installed, for a message."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def no_sdk(module: str) -> str:
    """What a module says that needs the OpenAI Agents SDK, and can't import it."""
    return (
        f"{module} needs the OpenAI Agents SDK, imported as `agents`: pip install 'perdure[openai-agents]'; "
        "if it is installed, a file agents.py of yours hides it"
    )


def log_fault(tool: str, error: Exception) -> None:
    """Write the whole error to the worker's log, where the model is told in other words."""
    LOG.error("tool %r: %s", tool, error, exc_info=error)


def one_or_list(items: Sequence[Any]) -> Any:
    """What a tool returns: a single item as it is."""
    return items[0] if len(items) == 1 else list(items)
