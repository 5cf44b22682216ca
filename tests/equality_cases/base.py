"""What a case of the equality table is, and the register of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.equality_cases.plain import seen_by_model
from tests.scripts import Script, Turn

NATIVE = {"supports_json_schema_output": True, "supports_json_object_output": True}
"""A profile with which `NativeOutput` may be asked for."""


class Recording(Script):
    """A script that notes what the model function saw, at once, so that nobody can change it afterwards."""

    def __init__(self, *turns: Turn, profile: Any = None, settings: Any = None) -> None:
        super().__init__(*turns)
        self.seen: list[Any] = []
        self._profile, self._settings = profile, settings

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(seen_by_model(messages, info))
        return super().__call__(messages, info)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._function, profile=self._profile, settings=self._settings)


@dataclass
class Ran:
    """What is compared of a run."""

    saw: list[Any]
    """What tools and hooks noted, in order."""
    requests: list[Any]
    """What the model saw, request by request."""
    messages: list[Any]
    usage: Mapping[str, Any]
    output: Any = None
    output_type: str | None = None
    error: tuple[str, str] | None = None
    """Type and message of what ended the run."""

    @property
    def answers(self) -> list[Any]:
        """The parts of the last request."""
        return self.messages[-1]["parts"]


@dataclass(kw_only=True)
class Case:
    """One script, to be run by `agent.run` and by perdure."""

    agent: Agent[Any, Any]
    scripts: Sequence[Recording]
    prompt: Any = "go"
    deps: Any = None
    """What `agent.run` gets; perdure gets it by `durable["deps"]` or `request["params"]`."""
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the `RunRequest`."""
    durable: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of `DurableAgent`."""
    saw: list[Any] = field(default_factory=list[Any])
    differs: Callable[[Ran, Ran], None] | None = None
    """Where equality can't hold by design: asserts the exact difference, given `agent.run`'s and perdure's."""

    def model(self) -> Model | None:
        """The model a run asks for by key."""
        return self.durable["models"][self.request["model"]] if "model" in self.request else None


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    """Register a function that builds a fresh case."""
    assert build.__name__ not in CASES, f"two cases are named {build.__name__}"
    CASES[build.__name__] = build
    return build


def simple(*turns: Turn, saw: list[Any] | None = None, profile: Any = None, **options: Any) -> Case:
    """A case of one script. Options are those of `Agent`, and of `Case` where it has such a field."""
    script = Recording(*turns, profile=profile)
    own = {name: options.pop(name) for name in ("prompt", "deps", "request", "durable", "differs") if name in options}
    return Case(
        agent=Agent(script.model, name="agent", **options), scripts=[script], saw=[] if saw is None else saw, **own
    )


def call(name: str, args: Any = None, id: str | None = None) -> ToolCallPart:
    """A tool call; without `id` it gets the place of the call in the script."""
    args = {} if args is None else args
    return ToolCallPart(name, args) if id is None else ToolCallPart(name, args, tool_call_id=id)


def calls(*parts: ModelResponsePart | str) -> list[ModelResponsePart]:
    """A turn of several parts; a string is text."""
    return [TextPart(part) if isinstance(part, str) else part for part in parts]
