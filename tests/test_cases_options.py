"""Case L1: every option of an agent either works in the durable run as in a plain one, or is refused when declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, ModelRetry, PromptedOutput, RunContext, Tool, ToolOutput
from pydantic_ai.capabilities import Hooks, ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, TextPart, ToolCallPart
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from temporalio.client import Client

from perdure import App, DeclarationError
from tests.harness import working
from tests.scripts import Script, Turn

Context = RunContext[object]


class City(BaseModel):
    name: str
    people: int = 0


@dataclass
class Trace:
    """What options were asked to do; equal in a plain and in a durable run where they are asked once per step."""

    ran: list[Any] = field(default_factory=list[Any])


Build = Callable[[Script, Trace], Agent[Any, Any]]
TURNS: tuple[Turn, ...] = ({"look": {"at": "Rome"}}, "done")
FINAL: tuple[Turn, ...] = ({"look": {"at": "Rome"}}, {"final_result": {"name": "Rome"}})


def agent(script: Script, trace: Trace, **options: Any) -> Agent[Any, Any]:
    """An agent with one tool and some options."""

    def look(at: str) -> str:
        trace.ran.append(at)
        if at == "nowhere":
            raise ModelRetry("look somewhere")
        return f"a view of {at}"

    return Agent(script.model, name="options", tools=[Tool(look)], **options)


def with_options(**options: Any) -> Build:
    return lambda script, trace: agent(script, trace, **options)


def with_functions(script: Script, trace: Trace) -> Agent[Any, Any]:
    built = agent(script, trace)

    @built.instructions
    def instruct(ctx: Context) -> str:
        return f"step {ctx.run_step}"

    @built.system_prompt
    def prompt(ctx: Context) -> str:
        return f"asked {ctx.prompt}"

    _ = instruct, prompt
    return built


def with_validator(script: Script, trace: Trace) -> Agent[Any, Any]:
    built = agent(script, trace, retries=2)

    @built.output_validator
    def validate(ctx: Context, output: str) -> str:
        trace.ran.append(("validated", output, ctx.retry))
        if output == "done":
            raise ModelRetry("say more")
        return output.upper()

    _ = validate
    return built


def with_toolsets(script: Script, trace: Trace) -> Agent[Any, Any]:
    def look(at: str) -> str:
        trace.ran.append(at)
        return f"seen {at}"

    def secret() -> str:
        raise AssertionError("filtered out")

    tools = FunctionToolset[object]([look, secret], id="own")
    shown = tools.filtered(lambda _, tool: tool.name != "secret").prefixed("my").renamed({"peek": "my_look"})
    return Agent(script.model, name="options", toolsets=[shown])


async def only_first(ctx: Context, definition: ToolDefinition) -> ToolDefinition | None:
    return definition if ctx.run_step <= 1 else None


def with_prepared(script: Script, trace: Trace) -> Agent[Any, Any]:
    def look(at: str) -> str:
        trace.ran.append(at)
        return "prepared"

    return Agent(script.model, name="options", tools=[Tool(look, prepare=only_first)])


def louder(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Changes what is sent, each time anew."""
    first = messages[0]
    parts = [replace(part, content="GO") if part.part_kind == "user-prompt" else part for part in first.parts]
    return [replace(first, parts=parts), *messages[1:]]  # pyright: ignore[reportArgumentType]


def with_hooks(script: Script, trace: Trace) -> Agent[Any, Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.before_tool_execute
    async def before(ctx: Any, *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]) -> dict[str, Any]:
        trace.ran.append(("before", call.tool_name))
        return {"at": args["at"].upper()}

    @hooks.on.after_tool_execute
    async def after(ctx: Any, *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any) -> Any:
        return f"{result}!"

    _ = before, after
    return agent(script, trace, capabilities=[hooks])


def settings(ctx: Context) -> ModelSettings:
    return ModelSettings(temperature=0.5, max_tokens=100 + ctx.run_step)


WORKING: dict[str, tuple[Build, tuple[Turn, ...]]] = {
    "instructions": (with_options(instructions=["Be brief.", lambda: "Be kind."]), TURNS),
    "system_prompt": (with_options(system_prompt=["One.", "Two."]), TURNS),
    "functions": (with_functions, TURNS),
    "output_validator": (with_validator, (*TURNS, "more")),
    "output_tool": (with_options(output_type=City), FINAL),
    "output_union": (
        with_options(output_type=[ToolOutput(City, name="city"), ToolOutput(int, name="number")]),
        (TURNS[0], {"number": {"response": 3}}),
    ),
    "output_native": (with_options(output_type=PromptedOutput(City)), (TURNS[0], '{"name": "Rome", "people": 3}')),
    "output_function": (with_options(output_type=lambda: None), (TURNS[0], {"final_result": {}})),
    "output_retry": (with_options(output_type=City, retries=2), ({"final_result": {}}, *FINAL)),
    "retries": (with_options(retries=2), ({"look": {"at": "nowhere"}}, {"look": {"at": "Rome"}}, "done")),
    "bad_arguments": (with_options(), ({"look": {"on": 1}}, {"look": {"at": "Rome"}}, "done")),
    "unknown_tool": (with_options(), ({"gaze": {}}, {"look": {"at": "Rome"}}, "done")),
    "early": (with_options(output_type=City, end_strategy="early"), ({**FINAL[0], **FINAL[1]},)),  # type: ignore[dict-item]
    "graceful": (with_options(output_type=City, end_strategy="graceful"), ({**FINAL[0], **FINAL[1]},)),  # type: ignore[dict-item]
    "exhaustive": (with_options(output_type=City, end_strategy="exhaustive"), ({**FINAL[0], **FINAL[1]},)),  # type: ignore[dict-item]
    "text_beside_calls": (with_options(), ([TextPart("Looking."), ToolCallPart("look", {"at": "Rome"})], "done")),
    "settings": (with_options(model_settings=settings), TURNS),
    "tool_timeout": (with_options(tool_timeout=5), TURNS),
    "toolsets": (with_toolsets, ({"peek": {"at": "Rome"}}, "done")),
    "prepared": (with_prepared, TURNS),
    "history": (with_options(capabilities=[ProcessHistory(louder)]), (TURNS[0], TURNS[0], "done")),
    "hooks": (with_hooks, TURNS),
}


def seen(script: Script) -> list[Any]:
    """What the model saw at each request. Instructions are those of the request: those of the past aren't kept."""
    requests = [ModelMessagesTypeAdapter.dump_python(request, mode="json") for request in script.requests]
    infos = [(info.instructions, sorted(t.name for t in info.function_tools)) for info in script.infos]
    return [_timeless(requests), infos, [_own(info.model_settings) for info in script.infos]]


def _own(given: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(given or {}).items() if name != "max_retries"}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        items: Sequence[tuple[str, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        left_out = ("timestamp", "run_id", "conversation_id", "instructions")
        return {name: _timeless(item) for name, item in items if name not in left_out and item is not None}
    return [_timeless(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("name", list(WORKING))
async def test_case_l1_an_option_works_as_in_a_plain_run(client: Client, cache: int, name: str) -> None:
    build, turns = WORKING[name]
    plain_script, plain = Script(*turns), Trace()
    expected = await build(plain_script, plain).run("go")
    script, trace = Script(*turns), Trace()
    async with working(client, App(agents=[build(script, trace)]), cache=cache) as runs:
        result = await runs.run("options", "go")
    output = expected.output
    assert result["output"] == (output.model_dump() if isinstance(output, BaseModel) else output)
    assert seen(script) == seen(plain_script)
    assert trace.ran == plain.ran
    assert (result["usage"]["requests"], result["usage"].get("tool_calls", 0)) == (
        expected.usage.requests,
        expected.usage.tool_calls,
    )


async def before_run(ctx: RunContext[Any]) -> None: ...


async def before_node(ctx: RunContext[Any], *, node: Any) -> Any:
    return node


REFUSED: dict[str, dict[str, Any]] = {
    "no name": {"name": None},
    "toolset without id": {"toolsets": [FunctionToolset[object]()]},
    "run hook": {"capabilities": [Hooks(before_run=before_run)]},
    "node hook": {"capabilities": [Hooks(before_node_run=before_node)]},
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_case_l1_what_can_not_work_is_refused_when_declared(name: str) -> None:
    options: dict[str, Any] = {"name": "refused", **REFUSED[name]}
    with pytest.raises(DeclarationError):
        App(agents=[Agent(Script("done").model, **options)])
