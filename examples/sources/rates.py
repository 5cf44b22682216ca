"""An MCP server over HTTP: exchange rates. `python -m examples.sources.rates PORT`."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("rates", log_level="ERROR")


@server.tool()
def rate(currency: str) -> float:
    """What one euro is worth in another currency."""
    return {"USD": 1.25, "SEK": 11.0}.get(currency, 1.0)


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
