"""The activity `check_result`: whether a result from outside is what its tool says it is."""

from __future__ import annotations

from temporalio import activity

from perdure.activities.runtime import Runtime
from perdure.contracts import ResultCheck, ResultInput
from perdure.schemas import problems


class CheckResult:
    """Holds what the worker has opened; its method is the activity. Short: 10 s, 3 attempts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="check_result")
    async def check_result(self, input: ResultInput) -> ResultCheck:
        """By the type or schema of its `ToolPolicy(result=…)`, else by the schema that came with the call."""
        policy = self._runtime.app.agent(input.agent).policy(input.tool)
        declared = input.result_schema if policy.result is None else policy.result
        return ResultCheck(problem=problems(declared, input.result[0]))
