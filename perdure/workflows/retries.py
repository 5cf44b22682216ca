"""How often the model was asked to mend something. Pure; the caps are checked in the activity, which knows them."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import CallOutcome, RetryState, StepRetries


def next_retries(state: RetryState, step: StepRetries, outcomes: Iterable[CallOutcome]) -> RetryState:
    """The counts after a step, by Pydantic AI's rule (`ToolManager.for_run_step`).

    A tool that returned is forgotten; a tool of which any call was charged a retry is then counted once more, however
    many of its calls failed in the step.
    """
    done = list(outcomes)
    returned = {outcome.tool for outcome in done if outcome.kind == "returned"}
    failed = {*step.failed, *(outcome.tool for outcome in done if outcome.kind == "retried" and outcome.charged)}
    tools = {name: count for name, count in state.tools.items() if name not in returned}
    tools |= {name: state.tools.get(name, 0) + 1 for name in sorted(failed)}
    refused = sorted({*state.refused, *step.refused})
    return RetryState(tools=tools, output=state.output + step.output, refused=refused)
