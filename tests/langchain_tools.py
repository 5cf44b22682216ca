"""Tools of LangChain, and an agent with them."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    tool,
)
from pydantic import BaseModel, Field, model_validator

from perdure import App, ToolPolicy
from perdure.toolsets.langchain import LangChainToolset
from tests.foreign import RAN, clerk
from tests.scripts import Script


def an_app(script: Script, *tools: BaseTool, inject: Any = None, **policies: ToolPolicy) -> App:
    """One agent with these tools."""
    return clerk(script, LangChainToolset(tools, id="chain", inject=inject), **policies)


class Shout(BaseTool):
    """A class without a schema of its own."""

    name: str = "shout"
    description: str = "Shouts."

    def _run(self, text: str) -> str:
        return text.upper()


def search(**args: Any) -> dict[str, Any]:
    """Returns what it got."""
    return args


lookup = StructuredTool.from_function(
    search,
    name="lookup",
    args_schema={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
)


@tool
def whose(key: str, user: Annotated[str, InjectedToolArg], call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Whose it is."""
    return f"{user}'s {key} by {call_id}"


class Range(BaseModel):
    """Arguments with a rule that JSON Schema doesn't know."""

    low: int = Field(ge=0)
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Range:
        """Low first."""
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


def ranged(name: str, handle: Any = False) -> BaseTool:
    """A tool with arguments of `Range`, and words of its own for bad ones."""

    def run(low: int, high: int) -> int:
        RAN.append((low, high))
        return high - low

    return StructuredTool.from_function(
        run, name=name, description="Ranges.", args_schema=Range, handle_validation_error=handle
    )


def failing(name: str, error: Exception, handle: Any = False) -> BaseTool:
    """A tool that raises."""

    def run(key: str) -> str:
        RAN.append(key)
        raise error

    return StructuredTool.from_function(run, name=name, description="Fails.", handle_tool_error=handle)
