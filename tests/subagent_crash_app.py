"""A worker to be killed while a run below goes on: `python -m tests.subagent_crash_app ADDRESS QUEUE FOLDER [GRACE]`.

The agent `above` asks the agent of `tests.crash_app`, with its own prompt.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent

from perdure import App
from perdure.toolsets.agent import agent_tool
from tests.crash_app import crash_app, serve
from tests.scripts import Script


def subagent_crash_app(folder: Path) -> App:
    """One agent above, one below."""
    script = Script({"ask_crash": {"prompt": "safe"}}, "above is done")
    above = Agent(script.model, name="above", tools=[agent_tool("crash")])
    return App(agents=[above, *crash_app(folder).agents.values()])


if __name__ == "__main__":
    asyncio.run(serve(subagent_crash_app, *sys.argv[1:]))
