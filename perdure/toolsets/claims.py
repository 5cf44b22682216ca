"""What an MCP server claims of its tools (`annotations`), and what of it counts.

A claim may tighten: a tool that calls itself destructive waits for an approval. It makes a call `safe` or `idempotent`
only where the app says that it trusts the server. What the app's own policies say goes before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai.tools import ToolDefinition

from perdure.contracts import Effect
from perdure.policy import Approval, ToolPolicy

TRUSTED = "perdure_trusted"
"""The key in a tool's metadata that says that its annotations count. The app's side sets it, no server can."""


def with_claims(policy: ToolPolicy, rule: str, tool: ToolDefinition) -> ToolPolicy:
    """The policy of a tool with what is claimed of it.

    `rule` is the name or pattern the policy is for, empty for the default. A policy for the tool's own name is the
    last word; one for a pattern says what the effect is and who approves, but doesn't let a destructive tool run
    undecided: its `when` doesn't count. Of claims that contradict each other the stricter counts: a tool that calls
    itself destructive is neither `safe` nor ungated because it says that it only reads too.
    """
    metadata = tool.metadata or {}
    claimed = metadata.get("annotations")
    if rule == tool.name or not isinstance(claimed, dict):
        return policy
    claims, trusted = cast("dict[str, Any]", claimed), metadata.get(TRUSTED) is True
    if trusted and not rule:
        policy = replace(policy, effect=_effect(claims))
    if claims.get("destructiveHint") is True:
        approval = Approval() if policy.approval is None else replace(policy.approval, when=None)
        policy = replace(policy, approval=approval)
    return policy


def _effect(claims: dict[str, Any]) -> Effect:
    if claims.get("readOnlyHint") is True and claims.get("destructiveHint") is not True:
        return "safe"
    return "idempotent" if claims.get("idempotentHint") is True else "unsafe"
