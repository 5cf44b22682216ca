"""Policies that turn out to apply to no tool, which for tools of a server only a run can tell.

A run isn't refused for it: a server's list may change at any time, and comes back. But a gate that isn't there has to
be seen: the worker logs it, once for each policy, and each run says it of a policy with an approval, in its warnings.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai import AgentRun

from perdure.activities.seam import Seam
from perdure.agent import DurableAgent
from perdure.checks.undecided import all_listed, no_effect, undecided
from perdure.contracts import cut
from perdure.toolsets.namespace import everything, lists_only

logger = logging.getLogger("perdure.policies")

GATE = "Its approval gates nothing."
MAX_WARNING = 500
MAX_TOLD = 10_000


class Unmatched:
    """Held by a worker for its life."""

    def __init__(self) -> None:
        self._undecided: dict[str, Mapping[str, list[str]]] = {}
        self._listed: set[str] = set()
        """The agents whose tools have all been listed once."""
        self._logged: set[tuple[str, str]] = set()
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The last runs that were told, by run id, and of what."""

    async def judge(self, durable: DurableAgent, run: AgentRun[Any, Any], seam: Seam, run_id: str) -> list[str]:
        """Look at the policies by what a step of a run lists. Returns what the run should warn of, each once."""
        if durable.name not in self._undecided:
            self._undecided[durable.name] = undecided(durable)
        patterns = self._undecided[durable.name]
        names = await self._names(durable, run, seam) if patterns else None
        if names is None:
            return []
        found = {pattern: why for pattern in patterns if (why := no_effect(durable, pattern, names))}
        gates = {pattern: f" {GATE}" for pattern in found if durable.policies[pattern].approval is not None}
        for pattern, why in found.items():
            if (durable.name, pattern) not in self._logged:
                self._logged.add((durable.name, pattern))
                logger.warning("agent %r: policy %r %s%s", durable.name, pattern, why, gates.get(pattern, ""))
        warnings = [f"policy {pattern!r} {cut(found[pattern], MAX_WARNING)}{gate}" for pattern, gate in gates.items()]
        return [warning for warning in warnings if self._is_new(run_id, warning)]

    def _is_new(self, run_id: str, warning: str) -> bool:
        if (run_id, warning) in self._told:
            return False
        self._told[run_id, warning] = None
        if len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)
        return True

    async def _names(self, durable: DurableAgent, run: AgentRun[Any, Any], seam: Seam) -> Iterable[str] | None:
        """The names of all tools of the agent; `None` where a toolset hasn't listed its own, or only a part of them.

        What is hidden is listed for this once in a worker's life, and then looked at when it is listed anyway.
        """
        if not all_listed(durable):
            return None
        manager, shown = run.ctx.deps.tool_manager, seam.tools
        if lists_only() and (durable.name in self._listed or manager.ctx is None):
            return None
        self._listed.add(durable.name)
        if manager.ctx is None or not lists_only():
            return list(shown)
        with everything():
            names = list(await manager.toolset.get_tools(manager.ctx))
        seam.tools = shown
        return names
