"""`read_result`: the tool with which the model pages through a result that was kept outside the conversation."""

from __future__ import annotations

from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition

from perdure.context import current_call

MARK = {"perdure": "read_result"}
"""The metadata of the tool, by which it is known under whatever name the model sees."""
MOST = 50_000
"""Characters of one page."""

read_result = FunctionToolset[object](id="perdure_results")
"""Add it to an agent whose policies say `on_large_result="store"`: `Agent(…, toolsets=[read_result])`. It is `safe`,
and reads only what calls of the same run have kept."""


@read_result.tool_plain(name="read_result", metadata=MARK)
async def _read_result(ref: str, start: int = 0, length: int = 10_000) -> str:
    """Read a part of a large result that was kept, by the reference that its tool call was answered with.

    Args:
        ref: The reference, as it was given.
        start: The first character to read, counted from 0.
        length: How many characters to read, at most 50,000.
    """
    text = await current_call().read_result(ref)
    if text is None:
        raise ToolFailed(f"There is no kept result {ref[:100]!r} in this run. Use a reference as it was given.")
    start, length = max(0, start), min(max(1, length), MOST)
    page = text[start : start + length]
    end = start + len(page)
    more = f"read on with start={end}" if end < len(text) else "that is the end"
    return f"[characters {start} to {end} of {len(text)}; {more}]\n{page}"


def is_reader(tool: ToolDefinition) -> bool:
    """Whether a tool is `read_result`, whatever it is called."""
    return (tool.metadata or {}).get("perdure") == MARK["perdure"]
