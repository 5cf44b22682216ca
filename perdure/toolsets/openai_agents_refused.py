"""What of the OpenAI Agents SDK has no place in a toolset of functions. Imported by `openai_agents` alone."""

from __future__ import annotations

from typing import Any

import agents
from agents.tool import LocalShellTool, ToolOriginType, get_function_tool_origin

from perdure.errors import DeclarationError

TWINS: dict[type[Any], str] = {
    agents.WebSearchTool: "use pydantic_ai.native_tools.WebSearchTool",
    agents.FileSearchTool: "use pydantic_ai.native_tools.FileSearchTool",
    agents.CodeInterpreterTool: "use pydantic_ai.native_tools.CodeExecutionTool",
    agents.ImageGenerationTool: "use pydantic_ai.native_tools.ImageGenerationTool",
    agents.HostedMCPTool: "use pydantic_ai.native_tools.MCPServerTool",
    agents.ToolSearchTool: "use pydantic_ai.capabilities.ToolSearch",
    agents.ComputerTool: "computer use isn't carried: its screenshots and sessions outlive no worker",
    agents.ShellTool: "use perdure.toolsets.workspace.workspace",
    LocalShellTool: "use perdure.toolsets.workspace.workspace",
    agents.ApplyPatchTool: "use perdure.toolsets.apply_patch.patching",
    agents.CustomTool: "a call in raw text isn't carried: make it a function tool with one argument of text",
    agents.ProgrammaticToolCallingTool: "programs that OpenAI runs can't call a tool of a durable run",
}
"""Tools that the SDK or OpenAI runs, and what to do."""


def refuse(tool: Any, id: str) -> None:
    """Raise `DeclarationError` for what can't be carried. What is no tool at all is left to the caller."""
    where = f"toolset {id!r}: {type(tool).__name__}"
    for kind, instead in TWINS.items():
        if isinstance(tool, kind):
            raise DeclarationError(f"{where} {tool.name!r} is no function of yours: {instead}")
    if isinstance(tool, agents.FunctionTool):
        _refuse_function(tool, f"{where} {tool.qualified_name!r}")


def _refuse_function(tool: agents.FunctionTool, where: str) -> None:
    origin = get_function_tool_origin(tool)
    if origin is not None and origin.type is ToolOriginType.AGENT_AS_TOOL:
        raise DeclarationError(
            f"{where} is an agent of the SDK, whose steps would all be one activity: make it an agent of Pydantic AI, "
            "and give its tools here"
        )
    if origin is not None and origin.type is ToolOriginType.MCP:
        raise DeclarationError(
            f"{where} is a tool of an MCP server: give the agent that server, by perdure.toolsets.mcp.MCPServer"
        )
    if tool.allowed_callers is not None and "direct" not in tool.allowed_callers:
        raise DeclarationError(f"{where} may only be called by programs that OpenAI runs (allowed_callers)")
    if tool.custom_data_extractor is not None:
        raise DeclarationError(
            f"{where}: custom_data_extractor adds to items of the SDK, which there aren't here: return a ToolReturn "
            "with metadata from a function of Pydantic AI"
        )
