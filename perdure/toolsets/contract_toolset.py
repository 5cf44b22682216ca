"""`ContractToolset`: the tools of contracts, and what serves each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from pydantic_ai import CallDeferred, FunctionToolset, RunContext
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import Tool, ToolPrepareFunc

from perdure.contracts import Target
from perdure.errors import DeclarationError
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.handler import Handler, handler_of
from perdure.toolsets.misplaced import NoFunction
from perdure.toolsets.target import check_target
from perdure.typed import check_arguments, check_options, check_value

Function = TypeVar("Function", bound=Callable[..., Any])


class ToolOptions(TypedDict, total=False):
    """What Pydantic AI's `Tool` takes beside a function, with the same meaning."""

    max_retries: int | None
    prepare: ToolPrepareFunc[Any] | None
    strict: bool | None
    sequential: bool
    requires_approval: bool
    metadata: dict[str, Any] | None
    timeout: float | None
    defer_loading: bool


class ContractToolset(NoFunction, FunctionToolset[Any]):
    """Tools by contract. Each contract is served once: by a function, by an external system, or by another target.

    Args:
        contracts: those that are served, and no others; an `App` refuses the toolset while one isn't. None: any.
        id: as of every toolset. Wire format: keep it once runs exist.
    """

    def __init__(self, contracts: Sequence[ToolContract] = (), *, id: str) -> None:
        check_arguments(ContractToolset.__init__, locals(), "ContractToolset(…)")
        super().__init__(id=id)
        self.contracts: dict[str, ToolContract] = {}
        self._promised = list(contracts)
        names = [contract.name for contract in self._promised]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DeclarationError(f"ContractToolset {id!r}: {twice} name more than one contract each")

    @property
    def unserved(self) -> list[str]:
        """The names of the contracts that nothing serves yet."""
        return [contract.name for contract in self._promised if contract.name not in self.contracts]

    @overload
    def handle(self, contract: ToolContract, **options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...

    @overload
    def handle(self, contract: ToolContract, function: Function, **options: Unpack[ToolOptions]) -> Function: ...

    def handle(self, contract: ToolContract, function: Any = None, **options: Unpack[ToolOptions]) -> Any:
        """Serve a contract by a function, sync or async; without one this is a decorator.

        The function takes a `RunContext` first, if its annotation says so, and then either the input model or a
        parameter for each of its fields. Its result is checked on the worker: one that breaks the contract ends the run
        with `ToolContractViolation`. Raises `DeclarationError` where function and contract don't agree.
        """
        self._check(contract, options)
        if function is None:
            return partial(self.handle, contract, **options)
        self._add(contract, _serving(handler_of(contract, function)), options)
        return function

    def external(self, contract: ToolContract, **options: Unpack[ToolOptions]) -> None:
        """Serve a contract from outside: its calls wait, with no open activity, for the update or signal `complete`.

        A result that breaks the contract is refused to whoever sent it, and the call goes on waiting.
        """
        self._check(contract, options)
        schema = contract.output_schema

        def wait(ctx: RunContext[Any], /, **args: Any) -> None:
            raise CallDeferred(metadata={"result_schema": schema})

        self._add(contract, wait, options, validator=wait)

    def target(self, contract: ToolContract, target: Target, **options: Unpack[ToolOptions]) -> None:
        """Serve a contract by what the agent's workflow schedules itself, an activity of another worker, say.

        It gets the arguments as JSON: as one object, or those that `target.positional` names, in that order.
        """
        self._check(contract, options)
        check_value(target, Target, f"contract {contract.name!r}: target")
        check_target(target, f"contract {contract.name!r}: its target")
        if unknown := sorted(set(target.positional) - set(contract.fields)):
            raise DeclarationError(
                f"contract {contract.name!r}: its target takes {unknown}, which the contract doesn't have. "
                f"Known arguments: {sorted(contract.fields)}"
            )
        self._add(contract, _never, options, target=target)

    def _check(self, contract: ToolContract, options: ToolOptions) -> None:
        """Raise `DeclarationError` for a contract that isn't one, or isn't of this toolset, and for its options."""
        check_value(contract, ToolContract, f"toolset {self.id!r}: contract")
        if self._promised and contract not in self._promised:
            raise DeclarationError(
                f"contract {contract.name!r} is none of those of toolset {self.id!r}: put it into "
                f"ContractToolset([…]). Its contracts: {[known.name for known in self._promised]}"
            )
        known = ToolOptions.__annotations__
        if unknown := sorted(options.keys() - known.keys()):
            raise DeclarationError(
                f"contract {contract.name!r}: options {unknown} are unknown. Known options: {sorted(known)}"
            )
        check_options(options, ToolOptions, f"contract {contract.name!r}")

    def _add(
        self,
        contract: ToolContract,
        function: Callable[..., Any],
        options: ToolOptions,
        *,
        validator: Callable[..., Any] | None = None,
        target: Target | None = None,
    ) -> None:
        if contract.name in self.contracts:
            raise DeclarationError(
                f"contract {contract.name!r} is served already, in toolset {self.id!r}: once is enough"
            )
        tool: Tool[Any] = Tool.from_schema(
            function, contract.name, contract.description, contract.input_schema, True, args_validator=validator
        )
        tool.function_schema = replace(
            tool.function_schema, validator=contract.args_validator, return_schema=contract.output_schema
        )
        tool.include_return_schema = contract.include_return_schema
        for name, value in options.items():
            setattr(tool, name, value)
        tool.metadata = {**(options.get("metadata") or {}), **contract.metadata(target)}
        self.add_tool(tool)
        self.contracts[contract.name] = contract


def _never(ctx: RunContext[Any], /, **args: Any) -> Any:
    """In place of a function that nobody calls: the workflow makes the call."""
    raise NotImplementedError("only a run of AgentWorkflow can make this call, and it schedules it itself")


def _serving(handler: Handler) -> Callable[..., Any]:
    """The handler as Pydantic AI calls it: sync ones in a thread."""

    async def serve(ctx: RunContext[Any], /, **args: Any) -> Any:
        return _checked(handler.contract, await handler.call(ctx, args))

    def serve_in_thread(ctx: RunContext[Any], /, **args: Any) -> Any:
        return _checked(handler.contract, handler.call(ctx, args))

    return serve if handler.is_async else serve_in_thread


def _checked(contract: ToolContract, result: Any) -> Any:
    """A result that keeps to the contract, also one that a `ToolReturn` wraps. Raises `ToolContractViolation`."""
    if not isinstance(result, ToolReturn):
        return contract.checked_output(result)
    wrapped = cast("ToolReturn[Any]", result)
    return replace(wrapped, return_value=contract.checked_output(wrapped.return_value))
