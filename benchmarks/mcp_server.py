"""A small MCP server over stdio, a process of its own: `python -m benchmarks.mcp_server`."""

from mcp.server.mcpserver import MCPServer

orders = MCPServer("orders", log_level="ERROR")


@orders.tool()
def act(order: str, cents: int) -> str:
    """Act on an order."""
    return f"{order}: {cents}"


if __name__ == "__main__":
    orders.run("stdio")
