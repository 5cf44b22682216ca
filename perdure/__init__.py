"""Durable Pydantic AI agents on Temporal, without workflow code.

Names are loaded when they are used: this module runs again in every workflow sandbox, and a client or the CLI shouldn't
pay for importing Pydantic AI.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.agent import Approval, DurableAgent, ToolPolicy
    from perdure.app import App
    from perdure.context import CurrentCall, current_call, progress
    from perdure.contracts import Limits, RunRequest, RunResult
    from perdure.errors import DeclarationError, PerdureError

__all__ = [
    "App",
    "Approval",
    "CurrentCall",
    "DeclarationError",
    "DurableAgent",
    "Limits",
    "PerdureError",
    "RunRequest",
    "RunResult",
    "ToolPolicy",
    "current_call",
    "progress",
]

_HOMES = {
    "App": "app",
    "Approval": "agent",
    "CurrentCall": "context",
    "DeclarationError": "errors",
    "DurableAgent": "agent",
    "Limits": "contracts",
    "PerdureError": "errors",
    "RunRequest": "contracts",
    "RunResult": "contracts",
    "ToolPolicy": "agent",
    "current_call": "context",
    "progress": "context",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"perdure.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'perdure' has no attribute {name!r}")
