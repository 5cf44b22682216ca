"""An MCP server over stdio: who sells what. `python -m examples.sources.suppliers`."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("suppliers", log_level="ERROR")
SUPPLIERS = {"keyboard": "Acme", "headphones": "Globex"}


@server.tool()
def supplier_of(item: str) -> str:
    """Who sells an item."""
    return SUPPLIERS.get(item, "nobody")


if __name__ == "__main__":
    server.run("stdio")
