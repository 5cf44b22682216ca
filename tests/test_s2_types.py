"""Tool types of the OpenAI Agents SDK that need no code of perdure's own."""

from __future__ import annotations

from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App
from tests.harness import working
from tests.scripts import Script

PATCH = '*** Begin\n+"quoted" \\n {json?}\n\u2028 \U0001f600'


async def test_s2_type_06_a_custom_tool_is_a_function_of_one_text(client: Client, cache: int) -> None:
    """The raw text reaches the tool as it was, over the activity's JSON. A grammar for it can't be given."""
    read: list[str] = []

    def run_sql(input: str) -> str:
        """Takes raw text."""
        read.append(input)
        return input

    script = Script({"run_sql": {"input": PATCH}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="raw", tools=[run_sql])]), cache=cache) as runs:
        assert (await runs.run("raw", "go"))["output"] == "done"
    assert read == [PATCH]
