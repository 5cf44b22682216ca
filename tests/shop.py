"""The shop: an agent with a plain tool and three that wait for a person."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, ApprovalRequired, FunctionToolset, RunContext

from perdure import App, Approval, DurableAgent, ToolPolicy
from tests.scripts import Script


def shop(script: Script, ran: list[Any], approval: Approval | None = None, **options: Any) -> App:
    """Plain, gated by policy, gated by Pydantic AI, and gated by itself."""
    tools = FunctionToolset[None](id="shop")

    @tools.tool_plain
    def look(n: int) -> str:
        """Harmless."""
        ran.append(("look", n))
        return f"saw {n}"

    @tools.tool
    def refund(ctx: RunContext[None], n: int, note: str = "none") -> str:
        """Gated by the policy."""
        assert ctx.tool_call_approved
        ran.append(("refund", n))
        return f"refunded {n}"

    @tools.tool_plain(requires_approval=True)
    def delete(n: int) -> str:
        """Gated by Pydantic AI."""
        ran.append(("delete", n))
        return f"deleted {n}"

    @tools.tool
    def asks(ctx: RunContext[None], n: int) -> str:
        """Asks for itself."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "large"})
        ran.append(("asks", ctx.tool_call_metadata))
        return f"asked {n}"

    policies = {"refund": ToolPolicy(approval=approval or Approval())}
    return App(agents=[DurableAgent(Agent(script.model, name="shop", toolsets=[tools]), policies=policies)], **options)
