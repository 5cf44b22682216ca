"""The equality table: scripts that `agent.run` and perdure must run alike. Importing this registers all cases."""

from tests.equality_cases import retries, tools, toolsets
from tests.equality_cases.base import CASES, Case, Ran

__all__ = ["CASES", "Case", "Ran", "retries", "tools", "toolsets"]
