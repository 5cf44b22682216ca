"""How the definition of a tool says that something else than a worker of the agent runs its calls."""

from __future__ import annotations

from typing import Any

from pydantic_ai.tools import ToolDefinition

from perdure.contracts import Target
from perdure.errors import DeclarationError
from perdure.names import check_name
from perdure.policy import ToolPolicy

TARGET = "perdure_target"
"""The key in a tool's metadata. The model never sees metadata; wrappers (prefixes, filters) keep it."""
SERVED = ("activity", "workflow", "nexus")
"""The kinds of targets that aren't agents."""
RESULT = "perdure_result"
"""The key of the type or JSON Schema that its results are checked by. It stays in the worker."""


def metadata_of(target: Target, result: Any = None) -> dict[str, Any]:
    """The metadata of a tool whose calls go to `target`, and whose results are of the type `result`."""
    return {TARGET: target.model_dump(mode="json")} | ({} if result is None else {RESULT: result})


def target_of(tool: ToolDefinition) -> Target | None:
    """What runs the calls of a tool; `None` = a worker of the agent, as any function."""
    raw = (tool.metadata or {}).get(TARGET)
    return None if raw is None else Target.model_validate(raw)


def runs_elsewhere(tool: ToolDefinition) -> bool:
    """Whether no worker of the agent runs the calls: somebody outside does, or what `target_of` says."""
    return tool.kind == "external" or target_of(tool) is not None


def result_of(tool: ToolDefinition) -> Any:
    """The type or JSON Schema of a tool's results; `None` = anything."""
    return (tool.metadata or {}).get(RESULT)


def served_by(target: Target) -> str:
    """What runs the calls, in words."""
    if target.kind == "nexus":
        return f"Nexus operation {target.service}.{target.name} at {target.endpoint}"
    queue = f" on the queue {target.task_queue}" if target.task_queue else ""
    return f"{target.kind} {target.name}{queue}"


def check_target(target: Target, where: str) -> None:
    """Raise `DeclarationError` for a target that no contract and no tool can have, or that no server takes."""
    if target.kind in ("agent", "handoff"):
        raise DeclarationError(
            f"{where}: kind={target.kind!r} is what agent_tool(…) and handoff_tool(…) make: Agent(…, tools=[…]). Here "
            f"it is one of {SERVED}"
        )
    names = {"name": target.name, "task_queue": target.task_queue}
    if target.kind == "nexus":
        names = {"name": target.name, "service": target.service, "endpoint": target.endpoint}
    for what, name in names.items():
        if name is not None:
            check_name(name, f"{where}: {what}")
    if target.kind == "nexus" and len(target.positional) > 1:
        raise DeclarationError(f"{where}: a Nexus operation takes one argument, not {target.positional}")


def check_policy(target: Target, policy: ToolPolicy, where: str) -> None:
    """Raise `DeclarationError` for a policy that can't be kept where somebody else runs the calls."""
    if policy.on_large_result != "fail":
        raise DeclarationError(
            f"{where}: on_large_result={policy.on_large_result!r} needs a worker of the agent that has the result "
            "first; what somebody else returns can only fail where it is too large"
        )
    if target.kind in ("activity", "workflow") and target.task_queue is None and policy.task_queue is None:
        raise DeclarationError(
            f"{where}: the {target.kind} {target.name!r} has no task queue, and would go to that of the run, whose "
            "workers serve agents alone: give task_queue=…, where it is served, or ToolPolicy(task_queue=…)"
        )
    if target.kind == "nexus" and policy.effect == "unsafe":
        raise DeclarationError(
            f"{where}: Temporal begins a Nexus operation again, with the same request id, where it doesn't know "
            "whether it was begun. Say with ToolPolicy(effect='idempotent') or 'safe' that this does no harm"
        )
