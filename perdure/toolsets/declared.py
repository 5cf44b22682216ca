"""What was declared about a tool that is served elsewhere, checked, as Temporal and Pydantic AI know it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypedDict, cast, runtime_checkable

from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import Tool, ToolPrepareFunc

from perdure.contracts import Target
from perdure.errors import DeclarationError
from perdure.schemas import check_type
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.signature import of_function, of_model

OWN = ("name", "description", "signature", "input_model", "output_model", "contract", "tells_errors", "metadata")
"""Options that Pydantic AI's `Tool` doesn't take, or that are made here."""


@runtime_checkable
class Contract(Protocol):
    """What a tool is to who calls it, apart from who serves it: a `ToolContract`, say."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_model(self) -> Any: ...
    @property
    def output_model(self) -> Any: ...


class Options(TypedDict, total=False):
    """What every kind of tool takes, beside what serves it."""

    name: str
    """What the model calls it. Absent: the name of the activity's function or of the signature, else the type or
    operation."""
    description: str
    signature: Callable[..., Any]
    """A function whose parameters and docstring are the tool's, which is never called."""
    input_model: Any
    """In place of a signature: a model, dataclass or TypedDict, sent as one object."""
    output_model: Any
    """What it returns: a type or a JSON Schema. Every result is checked, by an activity of the agent's worker."""
    contract: Contract
    """In place of name, description and models."""
    tells_errors: bool
    """Whether the model is told the messages of its errors. Else only their types."""
    sequential: bool
    requires_approval: bool
    max_retries: int
    strict: bool
    prepare: ToolPrepareFunc[Any]
    args_validator: Callable[..., Any]
    defer_loading: bool
    include_return_schema: bool
    metadata: dict[str, Any] | None


def definition(declared: Any, kind: str) -> tuple[str, Callable[..., Any] | None]:
    """The type of an activity or workflow, and the function that shows what it takes; `None` where only a type was
    given. Raises `DeclarationError`."""
    if isinstance(declared, str):
        return declared, None
    found = getattr(declared, f"__temporal_{kind}_definition", None)
    if found is None:
        article = "an" if kind == "activity" else "a"
        raise DeclarationError(f"{declared!r} is neither the type of {article} {kind} nor has it @{kind}.defn")
    if found.name is None:
        raise DeclarationError(f"{declared!r} is dynamic: give the type that is meant, and a signature or input_model")
    function = declared if kind == "activity" else found.run_fn
    method = kind == "workflow" or (inspect.isfunction(declared) and next(iter(_parameters(declared)), "") == "self")
    stub = of_function(function, f"{kind} {found.name!r}", bound=method)
    if kind == "workflow":
        stub.__name__, stub.__doc__ = found.name, stub.__doc__ or inspect.getdoc(declared)
    return found.name, stub


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def tool(target: Target, function: Callable[..., Any] | None, options: Options, where: str) -> Tool[Any]:
    """The tool as Pydantic AI has it. Raises `DeclarationError`."""
    contract, shown = options.get("contract"), options.get("signature") or function
    name = options.get("name") or (contract.name if contract else "") or (shown.__name__ if shown else target.name)
    stub = _stub(function, options, name, where)
    more = cast("dict[str, Any]", {key: value for key, value in options.items() if key not in OWN})
    description = options.get("description") or (contract.description if contract else None)
    try:
        return Tool(stub, name=name, description=description, takes_ctx=None, **more)
    except (UserError, TypeError) as error:
        raise DeclarationError(f"{where}: {error}") from None


def _stub(function: Callable[..., Any] | None, options: Options, name: str, where: str) -> Callable[..., Any]:
    contract, signature, model = options.get("contract"), options.get("signature"), options.get("input_model")
    given = [key for key in ("contract", "signature", "input_model") if options.get(key) is not None]
    if contract is not None and options.get("output_model") is not None:
        raise DeclarationError(f"{where}: its contract says what it returns: leave output_model out")
    if len(given) > 1:
        raise DeclarationError(f"{where}: {' and '.join(given)} say the same: give one of them")
    if signature is not None:
        return of_function(signature, where)
    if contract is not None or model is not None:
        taken = (
            contract.arguments if isinstance(contract, ToolContract) else contract.input_model if contract else model
        )
        return of_model(taken, result(options, where), name, where)
    if function is None:
        raise DeclarationError(
            f"{where}: nothing says what it takes: give signature=…, a function with its parameters, or input_model=…"
        )
    return function


def mark(options: Options) -> dict[str, Any]:
    """What the tool's definition says of its contract, where it has one."""
    contract = options.get("contract")
    return contract.metadata() if isinstance(contract, ToolContract) else {}


def result(options: Options, where: str) -> Any:
    """The type or JSON Schema that results are checked by. Raises `DeclarationError`."""
    contract = options.get("contract")
    declared = contract.output_model if contract else options.get("output_model")
    if declared is not None:
        check_type(declared, f"{where}: output_model")
    return declared
