"""`TemporalTools`: tools whose handlers are activities, workflows or Nexus operations that are there, in any language.

The workflow of the run schedules them itself, under their own type and queue; no worker of the agent takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import UserError

from perdure.contracts import Target
from perdure.errors import DeclarationError
from perdure.names import check_name
from perdure.toolsets import declared
from perdure.toolsets.declared import Options
from perdure.toolsets.misplaced import NoFunction
from perdure.toolsets.signature import shape_of
from perdure.toolsets.target import check_target, metadata_of
from perdure.typed import check_options, check_value


class TemporalTools(NoFunction, FunctionToolset[Any]):
    """Tools that are activities, workflows or Nexus operations. A policy applies to them as to any tool.

    Args:
        id: the toolset's name; wire format, as of any toolset.
        task_queue: of its activities and workflows, where neither they nor their policy name one. One is needed.
        more: what a `FunctionToolset` takes for all of its tools.

    Raises:
        DeclarationError: for whatever is wrong, when the tool is declared.
    """

    def __init__(self, id: str, *, task_queue: str | None = None, **more: Any) -> None:
        check_value(id, str, "TemporalTools(…): id")
        super().__init__(id=id, **more)
        self.task_queue: str | None = None
        self.task_queue = self._queue(task_queue)

    def activity(
        self,
        activity: Callable[..., Any] | str,
        *,
        task_queue: str | None = None,
        heartbeats: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Add a tool that is an activity: a function with `@activity.defn`, or its type where it is written elsewhere.

        `heartbeats`: it sends some, so that after `ToolPolicy(heartbeat=…)` of silence it counts as lost.
        Its activity id is the call's idempotency key: the same for each attempt and after a reset, used for no other.
        """
        type, function = declared.definition(activity, "activity")
        target = Target(kind="activity", name=type, task_queue=self._queue(task_queue), heartbeats=heartbeats)
        self._add(target, function, options)

    def workflow(self, workflow: type[Any] | str, *, task_queue: str | None = None, **options: Unpack[Options]) -> None:
        """Add a tool that is a workflow, run as a child: a class with `@workflow.defn`, or its type.

        Its id is `<id of the run>/<key of the call>`. It is cancelled with the run or its turn.
        """
        type, function = declared.definition(workflow, "workflow")
        self._add(Target(kind="workflow", name=type, task_queue=self._queue(task_queue)), function, options)

    def nexus(self, operation: str, *, service: str, endpoint: str, **options: Unpack[Options]) -> None:
        """Add a tool that is a Nexus operation. Its policy can't be `unsafe`: Temporal may begin it more than once."""
        for what, name in (("operation", operation), ("service", service), ("endpoint", endpoint)):
            check_value(name, str, f"TemporalTools({self.id!r}).nexus: {what}")
        target = Target(kind="nexus", name=operation, service=service, endpoint=endpoint)
        self._add(target, None, options)

    def _queue(self, task_queue: str | None) -> str | None:
        """The queue that is given, else that of all. Raises `DeclarationError` for one that can't be."""
        if task_queue is None:
            return self.task_queue
        check_name(task_queue, f"TemporalTools({self.id!r}): task_queue")
        return task_queue

    def _add(self, target: Target, function: Callable[..., Any] | None, options: Options) -> None:
        where = f"TemporalTools({self.id!r}): {target.kind} {target.name!r}"
        check_target(target, where)
        check_options(options, Options, where)
        tool = declared.tool(target, function, options, where)
        shape = shape_of(tool, where)
        if target.kind == "nexus" and len(shape.positional) > 1:
            raise DeclarationError(f"{where}: a Nexus operation takes one argument, not {shape.positional}")
        target = target.model_copy(
            update={
                "positional": shape.positional,
                "no_arguments": shape.no_arguments,
                "tells_errors": options.get("tells_errors", False),
            }
        )
        own = declared.mark(options) | metadata_of(target, declared.result(options, where))
        tool.metadata = (options.get("metadata") or {}) | own
        try:
            self.add_tool(tool)
        except UserError as error:
            raise DeclarationError(f"{where}: {error}") from None
