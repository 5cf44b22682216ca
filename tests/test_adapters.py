"""What the adapters of other libraries have in common: when they are imported, and what they leave alone."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.command import python

EXTRAS = {
    "smolagents": ("smolagents", "smolagents"),
    "openai_agents": ("agents", "openai-agents"),
    "langchain": ("langchain_core", "langchain"),
}
"""By module of perdure: the library, and the extra that brings it."""


async def test_nothing_else_imports_the_libraries() -> None:
    libraries = [library for library, _ in EXTRAS.values()]
    code = (
        "import sys, perdure, perdure.worker, perdure.app, perdure.cli; perdure.App; perdure.DurableAgent;"
        f"sys.exit(', '.join(set(sys.modules) & set({libraries})) or 0)"
    )
    assert await python("-c", code) == (0, "")


@pytest.mark.parametrize("module", EXTRAS)
async def test_a_missing_library_is_told_with_the_extra(module: str) -> None:
    library, extra = EXTRAS[module]
    code = f"import sys; sys.modules[{library!r}] = None; import perdure.toolsets.{module}"
    status, error = await python("-c", code)
    assert status == 1
    assert f"pip install 'perdure[{extra}]'" in error.splitlines()[-1]


QUIET = """
import asyncio, sys
found = []
OUT = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: found.append((event, args)) if event in OUT else None)

from agents import function_tool
from langchain_core.tools import tool as chain_tool
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from smolagents import tool

from perdure.toolsets.langchain import LangChainToolset
from perdure.toolsets.openai_agents import OpenAIAgentsToolset
from perdure.toolsets.smolagents import SmolagentsToolset

@tool
def smol(x: int) -> int:
    '''Smol.

    Args:
        x: A number.
    '''
    return x + 1

@function_tool
def sdk(x: int) -> int:
    '''SDK.'''
    return x + 2

@function_tool
def fails(x: int) -> int:
    '''SDK.'''
    raise ValueError

@chain_tool
def chain(x: int) -> int:
    '''Chain.'''
    return x + 3

toolsets = [
    SmolagentsToolset([smol], id="smol"),
    OpenAIAgentsToolset([sdk, fails], id="sdk"),
    LangChainToolset([chain], id="chain"),
]
result = asyncio.run(Agent(TestModel(), toolsets=toolsets).run("go"))
assert not found, found
print(result.output, file=sys.stderr, end="")
"""


async def test_a_file_that_hides_the_sdk_is_named(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_text("")
    (tmp_path / "main.py").write_text("import perdure.toolsets.openai_agents")
    status, error = await python(str(tmp_path / "main.py"))
    assert status == 1
    assert "a file agents.py of yours hides it" in error.splitlines()[-1]


async def test_an_sdk_that_has_moved_what_is_needed_is_told_with_its_version() -> None:
    code = (
        "import agents.util._approvals as moved; del moved.evaluate_function_tool_approval;"
        "import perdure.toolsets.openai_agents"
    )
    status, error = await python("-c", code)
    assert status == 1
    last = error.splitlines()[-1]
    assert f"the OpenAI Agents SDK of version {version('openai-agents')}" in last
    assert "evaluate_function_tool_approval" in last
    assert "pip install" not in last


async def test_without_perdure_the_tools_run_too_and_nothing_is_connected_to(tmp_path: Path) -> None:
    """As toolsets of any agent. None of the libraries sends anything anywhere by itself."""
    (tmp_path / "quiet.py").write_text(QUIET)
    status, output = await python(str(tmp_path / "quiet.py"))
    log = "An error occurred while running the tool. Please try again."
    assert status == 0, output
    assert output.endswith(f'{{"smol":1,"sdk":2,"fails":"{log}","chain":"3"}}')
