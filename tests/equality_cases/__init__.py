"""The equality table: scripts that `agent.run` and perdure must run alike. Importing this registers all cases."""

from tests.equality_cases import (
    capabilities,
    endings,
    hidden,
    histories,
    outputs,
    prompts,
    responses,
    retries,
    searches,
    tools,
    toolsets,
    types,
)
from tests.equality_cases.base import CASES, Case, Ran

__all__ = [
    "CASES",
    "Case",
    "Ran",
    "capabilities",
    "endings",
    "hidden",
    "histories",
    "outputs",
    "prompts",
    "responses",
    "retries",
    "searches",
    "tools",
    "toolsets",
    "types",
]
