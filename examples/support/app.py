"""The one file of the example that knows perdure: `perdure worker examples.support.app:app`.

`PERDURE_SUPPORT_MODEL=openai:…` answers with a real model instead of the offline one.
"""

import os
from datetime import timedelta
from typing import Any

from perdure import App, Approval, DurableAgent, ToolPolicy

from .agent import Deps, support
from .store import Store

ASK_ABOVE = 10_000
"""Cents that are refunded without asking anybody."""


def is_large(ctx: Any, args: dict[str, Any]) -> bool:
    """Whether a person has to approve a refund."""
    return args["cents"] > ASK_ABOVE


def make_deps(params: Any, resources: Any) -> Deps:
    """Built on the worker for each activity; nothing of it is written to history."""
    return Deps(store=Store.open())


if chosen := os.environ.get("PERDURE_SUPPORT_MODEL"):
    support.model = chosen

large_refunds = Approval(when=is_large, allow_edit=True, expires_after=timedelta(days=3))

app = App(
    agents=[
        DurableAgent(
            support,
            version="1",
            deps=make_deps,
            policies={
                "lookup_order": ToolPolicy(effect="safe"),
                "search_orders": ToolPolicy(effect="safe"),
                "add_note": ToolPolicy(effect="idempotent"),
                "refund": ToolPolicy(effect="idempotent", timeout=30, heartbeat=3, approval=large_refunds),
            },
        )
    ]
)
