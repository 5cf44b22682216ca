"""One call of a function tool of the OpenAI Agents SDK, and what it is told. Imported by `openai_agents` alone."""

from __future__ import annotations

import copy
import inspect
import json
from typing import Any, NoReturn, cast

from agents import FunctionTool, RunContextWrapper, ToolTimeoutError, Usage
from agents.exceptions import ModelBehaviorError, UserError
from agents.tool import (
    default_tool_error_function,
    default_tool_timeout_error_message,
    invoke_function_tool,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext
from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrailData, ToolOutputGuardrailData
from agents.util._approvals import (  # pyright: ignore[reportPrivateUsage]
    evaluate_function_tool_approval,  # the SDK's own rule, which is stricter than asking `needs_approval`
)
from openai.types.responses import ResponseFunctionToolCall
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from temporalio.exceptions import ApplicationError

from perdure.contracts import Json
from perdure.toolsets.foreign import SAID, is_repeated, log_fault
from perdure.toolsets.openai_agents_results import result_of


class NotGiven(list[Any]):
    """The items of the turn, which are the SDK's own and don't exist here: looked at, it raises."""

    def _raise(self, *_: Any) -> NoReturn:
        raise UserError("turn_input isn't known in a durable run: it holds items of the SDK's own runs")

    __iter__ = __len__ = __getitem__ = __contains__ = _raise  # pyright: ignore[reportAssignmentType]


class CallContext(ToolContext[Any]):
    """What a tool gets: deps as `context`, usage, name, id and arguments. `agent` and `run_config` are `None`, as in
    the SDK where they aren't available; what would be empty and isn't raises."""

    def __init__(self, ctx: RunContext[Any], tool: FunctionTool, arguments: str) -> None:
        id = ctx.tool_call_id or ""
        asked = ResponseFunctionToolCall(type="function_call", call_id=id, name=tool.name, arguments=arguments)
        super().__init__(ctx.deps, usage_of(ctx), tool.name, id, arguments, asked, tool_namespace=namespace_of(tool))
        self.turn_input = NotGiven()

    def approve_tool(self, *_args: Any, **_options: Any) -> NoReturn:
        """Not from within a call."""
        raise UserError("a call is approved by the update `approve` of its run, not in a tool")

    def reject_tool(self, *_args: Any, **_options: Any) -> NoReturn:
        """Not from within a call."""
        raise UserError("a call is denied by the update `deny` of its run, not in a tool")


class NamedAgent:
    """The agent of guardrails and `is_enabled`: it has a name, and is none of the SDK's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        raise AttributeError(f"agent {self.name!r} is one of Pydantic AI: it has a name, and no {attribute!r}")


def agent_of(ctx: RunContext[Any]) -> Any:
    """The agent, as far as the SDK's callbacks can have it."""
    return NamedAgent((ctx.agent.name if ctx.agent is not None else None) or "")


def usage_of(ctx: RunContext[Any]) -> Usage:
    """What the run has used so far."""
    usage = ctx.usage
    return Usage(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
    )


def wrapper_of(ctx: RunContext[Any]) -> RunContextWrapper[Any]:
    """The context of callbacks that are asked before there is a call."""
    wrapper = RunContextWrapper(ctx.deps, usage_of(ctx))
    wrapper.turn_input = NotGiven()
    return wrapper


def namespace_of(tool: FunctionTool) -> str | None:
    """The namespace of `tool_namespace(…)`; `None`: it has none."""
    return tool.qualified_name.removesuffix(tool.name).removesuffix(".") or None


async def must_be_approved(tool: FunctionTool, ctx: RunContext[Any], args: Json) -> bool:
    """Whether the call is gated by `needs_approval`. A function that raises gates it.

    As in the SDK, arguments that it would convert (dates, models, defaults) are gated without asking the function.
    """
    if isinstance(tool.needs_approval, bool):
        return tool.needs_approval
    context = CallContext(ctx, tool, json.dumps(args))
    try:
        decided = await evaluate_function_tool_approval(tool, context, context.tool_arguments, context.tool_call_id)
    except Exception as error:
        log_fault(tool.qualified_name, error)
        return True
    return decided.outcome == "require_approval"


class Invocation:
    """Runs the calls of one tool."""

    def __init__(self, tool: FunctionTool) -> None:
        self._tool = tool
        bare = set_function_tool_failure_error_function(copy.copy(tool), None)
        bare.timeout_behavior = "raise_exception"
        self._bare = bare
        """The tool, with faults and timeouts raised, so that they are known for what they are."""

    async def run(self, ctx: RunContext[Any], args: Json) -> Any:
        """The result for the model. What the tool says of a fault is raised as `ToolFailed`."""
        context = CallContext(ctx, self._tool, json.dumps(args))
        await self._guard_input(context, agent_of(ctx))
        try:
            output = await invoke_function_tool(
                function_tool=self._bare, context=context, arguments=context.tool_arguments
            )
        except SAID:
            raise
        except ToolTimeoutError as error:
            await self._late(context, error)
        except ModelBehaviorError as error:
            raise ModelRetry(await self._own_words(context, error) or error.message) from None
        except Exception as error:
            await self._fault(context, error)
        return result_of(self._tool, await self._guarded_output(context, agent_of(ctx), output))

    async def _late(self, context: CallContext, error: ToolTimeoutError) -> NoReturn:
        """By `timeout_behavior`: the model is told, or the run fails."""
        if self._tool.timeout_behavior == "raise_exception":
            raise ApplicationError(str(error), type="ToolTimeout", non_retryable=True) from None
        words = self._tool.timeout_error_function
        if words is None:
            text = default_tool_timeout_error_message(tool_name=error.tool_name, timeout_seconds=error.timeout_seconds)
        else:
            text = await _answer(words(context, error))
        raise ToolFailed(text) from None

    async def _fault(self, context: CallContext, error: Exception) -> NoReturn:
        """An exception: Temporal repeats it as the policy says; in the last attempt the tool's own words are told."""
        words = resolve_function_tool_failure_error_function(self._tool, context)
        if words is None or is_repeated():
            raise error
        log_fault(self._tool.qualified_name, error)
        raise ToolFailed(await _answer(words(context, error))) from None

    async def _own_words(self, context: CallContext, error: Exception) -> str | None:
        """What the tool's own function says of bad arguments; the SDK's default hides what is wrong with them."""
        words = resolve_function_tool_failure_error_function(self._tool, context)
        return None if words in (None, default_tool_error_function) else await _answer(words(context, error))

    async def _guard_input(self, context: CallContext, agent: Any) -> None:
        """Ask the input guardrails: here, so that a gated call is looked at after its approval."""
        for guardrail in self._tool.tool_input_guardrails or []:
            said = _said(await guardrail.run(ToolInputGuardrailData(context, agent)), "ToolInputGuardrail", context)
            if said is not None:
                raise ToolFailed(said)

    async def _guarded_output(self, context: CallContext, agent: Any, output: Any) -> Any:
        for guardrail in self._tool.tool_output_guardrails or []:
            found = await guardrail.run(ToolOutputGuardrailData(context, agent, output))
            said = _said(found, "ToolOutputGuardrail", context)
            output = output if said is None else said
        return output


def _said(found: ToolGuardrailFunctionOutput, kind: str, context: CallContext) -> str | None:
    """The words of a guardrail that rejects; `None`: it allows. One that raises ends the run."""
    behavior = found.behavior
    if behavior["type"] == "raise_exception":
        message = f"a guardrail of tool {context.tool_name!r} ended the run"
        raise ApplicationError(message, type=f"{kind}TripwireTriggered", non_retryable=True)
    return behavior["message"] if behavior["type"] == "reject_content" else None


async def _answer(words: Any) -> str:
    return cast("str", await words if inspect.isawaitable(words) else words)
