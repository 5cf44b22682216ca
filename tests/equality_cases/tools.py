"""Function tools as people write them: S0-01 to S0-08, S1."""

from __future__ import annotations

from typing import Any

from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed, ToolReturn
from pydantic_ai.messages import BinaryContent, ImageUrl
from pydantic_ai.tools import ToolDefinition

from tests.equality_cases.base import Case, call, calls, case, simple

PIXEL = BinaryContent(data=b"\x89PNG\r\n", media_type="image/png")


@case
def s0_02_tools_with_and_without_context_sync_and_async() -> Case:
    saw: list[Any] = []
    tools = FunctionToolset[Any](id="tools")

    @tools.tool
    def with_context(ctx: RunContext[Any], x: int) -> str:
        """With context."""
        saw.append((ctx.tool_name, ctx.tool_call_id, x))
        return f"with {x}"

    @tools.tool
    async def with_context_async(ctx: RunContext[Any], x: int) -> str:
        saw.append((ctx.tool_name, ctx.tool_call_id, x))
        return f"with async {x}"

    @tools.tool_plain
    def without(x: int) -> str:
        """Without context."""
        return f"without {x}"

    @tools.tool_plain
    async def without_async(x: int, y: int = 5) -> str:
        return f"without async {x} {y}"

    turns = [
        {"with_context": {"x": 1}},
        {"with_context_async": {"x": 2}},
        {"without": {"x": "3"}, "without_async": {"x": 4}},
    ]
    return simple(*turns, "done", saw=saw, toolsets=[tools])


@case
def s0_03_required_optional_variadic_and_keyword_arguments() -> Case:
    saw: list[Any] = []

    def many(a: int, b: str = "b", *rest: int, flag: bool = False, **more: int) -> str:
        saw.append((a, b, rest, flag, more))
        return f"{a} {b} {rest} {flag} {more}"

    return simple({"many": {"a": 1, "rest": [2, 3], "x": 4}}, {"many": {"b": "missing"}}, "done", saw=saw, tools=[many])


@case
def s0_05_agent_decorators() -> Case:
    case = simple({"one": {}, "two": {"n": 2}}, "done")

    @case.agent.tool
    def one(ctx: RunContext[Any]) -> int:
        """One."""
        return 1

    @case.agent.tool_plain(name="two", description="Twice n")
    def twice(n: int) -> int:
        return 2 * n

    return case


@case
def s0_06_tool_objects() -> Case:
    def shout(text: str) -> str:
        """Shout.

        Args:
            text: What to shout.
        """
        return text.upper()

    options: dict[str, Any] = {"strict": True, "metadata": {"team": "x"}, "sequential": True}
    return simple(
        {"shout": {"text": "a"}, "loud": {"text": "b"}},
        "done",
        tools=[Tool(shout), Tool(shout, name="loud", description="Loudly", takes_ctx=False, **options)],
    )


@case
def s0_04_docstring_formats() -> Case:
    def google(a: int) -> int:
        """Google.

        Args:
            a: An int.

        Returns:
            The same.
        """
        return a

    def numpy(a: int) -> int:
        """Numpy.

        Parameters
        ----------
        a : int
            An int.
        """
        return a

    def sphinx(a: int) -> int:
        """Sphinx.

        :param a: An int.
        """
        return a

    tools = [Tool(google), Tool(numpy, docstring_format="numpy"), Tool(sphinx, docstring_format="sphinx")]
    return simple({"google": {"a": 1}, "numpy": {"a": 2}, "sphinx": {"a": 3}}, "done", tools=tools)


@case
def s0_07_tool_timeout_asks_for_a_retry() -> Case:
    import asyncio

    async def slow(n: int) -> int:
        await asyncio.sleep(n)
        return n

    return simple({"slow": {"n": 5}}, {"slow": {"n": 0}}, "done", tools=[Tool(slow, timeout=0.05)])


@case
def s0_08_model_retry_then_success_counts_attempts() -> Case:
    saw: list[Any] = []

    def picky(ctx: RunContext[Any], n: int) -> str:
        saw.append((n, ctx.retry, ctx.max_retries, ctx.last_attempt))
        if n < 2:
            raise ModelRetry(f"{n} is too small")
        return "ok"

    turns = [{"picky": {"n": n}} for n in (0, 1, 2, 0, 2)]
    return simple(*turns, "done", saw=saw, tools=[Tool(picky, max_retries=3)])


@case
def s0_34_tool_failed_uses_no_retry() -> Case:
    saw: list[Any] = []

    def broken(ctx: RunContext[Any]) -> str:
        saw.append(ctx.retry)
        raise ToolFailed("out of paper")

    return simple({"broken": {}}, {"broken": {}}, {"broken": {}}, "done", saw=saw, tools=[broken])


@case
def s1_10_tool_return_with_text_images_and_metadata() -> Case:
    def look(what: str) -> ToolReturn[str]:
        content: list[Any] = ["see ", ImageUrl(url="https://example.com/a.png"), PIXEL]
        return ToolReturn(f"looked at {what}", content=content if what == "all" else what, metadata={"seen": [1, 2]})

    turn = calls(call("look", {"what": "all"}), call("look", {"what": "some"}))
    return simple(turn, "done", tools=[look])


@case
def s1_14_prepare_hides_and_changes_a_tool_by_step() -> Case:
    async def late(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        from dataclasses import replace

        return None if ctx.run_step < 2 else replace(definition, description=f"step {ctx.run_step}")

    def now() -> str:
        return "now"

    def later() -> str:
        return "later"

    return simple({"now": {}}, {"later": {}}, "done", tools=[now, Tool(later, prepare=late)])


@case
def s1_11_context_as_tools_see_it() -> Case:
    saw: list[Any] = []

    def look(ctx: RunContext[Any], n: int) -> str:
        usage = ctx.usage
        saw.append(
            {
                "deps": ctx.deps,
                "retry": (ctx.retry, ctx.max_retries, ctx.last_attempt, dict(ctx.retries)),
                "call": (ctx.tool_call_id, ctx.tool_name, ctx.tool_call_approved, ctx.tool_call_metadata),
                "step": ctx.run_step,
                "usage": (usage.requests, usage.input_tokens, usage.output_tokens),
                "prompt": ctx.prompt,
                "messages": [type(message).__name__ for message in ctx.messages],
                "parts": [type(part).__name__ for message in ctx.messages for part in message.parts],
                "model": ctx.model.model_id,
                "partial": ctx.partial_output,
                "agent": ctx.agent.name if ctx.agent else None,
                "metadata": ctx.metadata,
            }
        )
        if n == 1:
            raise ModelRetry("again")
        return str(n)

    return simple(
        {"look": {"n": 0}},
        {"look": {"n": 1}},
        {"look": {"n": 2}},
        "done",
        saw=saw,
        tools=[Tool(look, max_retries=4)],
        prompt="What do you see?",
        deps="the deps",
        deps_type=str,
        durable={"params_type": str},
        request={"params": "the deps"},
    )


@case
def s1_11_usage_of_earlier_calls_as_tools_see_it() -> Case:
    saw: list[Any] = []

    def count(ctx: RunContext[Any]) -> int:
        saw.append(ctx.usage.tool_calls)
        return ctx.usage.tool_calls

    return simple({"count": {}}, {"count": {}}, {"count": {}}, "done", saw=saw, tools=[count])


@case
def no_tools_at_all() -> Case:
    return simple("Hello.")
