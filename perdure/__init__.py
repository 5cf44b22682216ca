"""Durable Pydantic AI agents on Temporal, without workflow code.

Names are loaded when they are used: this module runs again in every workflow sandbox, and a client or the CLI shouldn't
pay for importing Pydantic AI.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.agent import DurableAgent
    from perdure.app import App
    from perdure.context import CurrentCall, current_call, progress
    from perdure.contracts import ExternalCall, Limits, Notification, Principal, RunRequest, RunResult, TokenUse
    from perdure.errors import DeclarationError, NotAllowed, PerdureError
    from perdure.policy import Approval, Breaker, ToolPolicy
    from perdure.queues import TaskQueue

__all__ = [
    "App",
    "Approval",
    "Breaker",
    "CurrentCall",
    "DeclarationError",
    "DurableAgent",
    "ExternalCall",
    "Limits",
    "NotAllowed",
    "Notification",
    "PerdureError",
    "Principal",
    "RunRequest",
    "RunResult",
    "TaskQueue",
    "TokenUse",
    "ToolPolicy",
    "current_call",
    "progress",
]

_HOMES = {
    "App": "app",
    "Approval": "policy",
    "Breaker": "policy",
    "CurrentCall": "context",
    "DeclarationError": "errors",
    "DurableAgent": "agent",
    "ExternalCall": "contracts",
    "Limits": "contracts",
    "NotAllowed": "errors",
    "Notification": "contracts",
    "Principal": "contracts",
    "PerdureError": "errors",
    "RunRequest": "contracts",
    "RunResult": "contracts",
    "TaskQueue": "queues",
    "TokenUse": "contracts",
    "ToolPolicy": "policy",
    "current_call": "context",
    "progress": "context",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"perdure.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'perdure' has no attribute {name!r}")
