"""The activity `check_result`: whether a result from outside is what its tool says it is."""

from __future__ import annotations

from temporalio import activity

from perdure.activities.runtime import Runtime
from perdure.checks.known import declared_result
from perdure.contracts import ResultCheck, ResultInput
from perdure.schemas import problems


class CheckResult:
    """Holds what the worker has opened; its method is the activity. Short: 10 s, 3 attempts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="check_result")
    async def check_result(self, input: ResultInput) -> ResultCheck:
        """By the type or schema of its `ToolPolicy(result=…)`, else of the tool, else by what came with the call."""
        durable = self._runtime.app.agent(input.agent)
        own = durable.policy(input.tool).result
        declared = own if own is not None else declared_result(durable, input.tool)
        if declared is None:
            declared = input.result_schema
        return ResultCheck(problem=problems(declared, input.result[0]))
