"""Types that a tool may have or not, and an App that is given such a tool."""

from __future__ import annotations

import queue
import threading
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, InstanceOf
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import ExternalToolset

from perdure import App, DurableAgent

Lock = type(threading.Lock())


class Small(BaseModel):
    n: int


class Locked(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    lock: InstanceOf[queue.Queue[int]]


class Left(BaseModel):
    shown: int
    gone: int = Field(1, exclude=True)


def declared(*tools: Any, policies: Any = None, **options: Any) -> App:
    """An App whose one agent has these tools or toolsets."""
    toolsets: list[Any] = [tool for tool in tools if isinstance(tool, FunctionToolset | ExternalToolset)]
    make: Any = Agent
    functions = [tool for tool in tools if tool not in toolsets]
    agent = make(TestModel(), name="small", tools=functions, toolsets=toolsets)
    return App(agents=[DurableAgent(agent, policies=policies or {}, **options)])
