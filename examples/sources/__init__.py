"""Tools from seven sources in one agent: a function, a contract, an activity of another worker (as one in Go or
TypeScript would be), another agent, MCP servers over stdio and over HTTP, a tool of smolagents.

`python -m examples.sources` runs it all, with a Temporal server of its own; a person approves the order.
"""
