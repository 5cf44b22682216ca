"""The activity `prepare_run`: what the worker knows of the agent, before anything is done."""

from __future__ import annotations

from pydantic_ai.models import Model
from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from perdure.activities.check_content import content_problem
from perdure.activities.results import result_store
from perdure.activities.room import stores
from perdure.activities.runtime import Runtime
from perdure.agent import DurableAgent
from perdure.contracts import KEYWORD_LISTS, SEARCH_ATTRIBUTES, RunPlan, RunRequest
from perdure.errors import InvalidRequest, PerdureError
from perdure.native import native_problem
from perdure.policy import seconds

TYPES = (IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST)
BENIGN = ApplicationErrorCategory.BENIGN
"""A wrong request is its sender's business: no traceback in the worker's log."""
PART_OF_WINDOW = 0.8
"""How much of a model's window may be used before the conversation is compacted: the next answers need room."""


class PrepareRun:
    """Holds what the worker has opened; its method is the activity. Short: 10 s, 3 attempts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @activity.defn(name="prepare_run")
    async def prepare_run(self, request: RunRequest) -> RunPlan:
        """Look the agent up and check the request. Raises, not retried, `UnknownAgent` and `InvalidRequest`."""
        try:
            durable = self._runtime.app.agent(request.agent)
            self._check(durable, request)
            model = self._runtime.model(durable, request.model)
            if problem := native_problem(durable.agent, model):
                raise InvalidRequest(f"model {model.model_id!r}: {problem}")
        except PerdureError as error:
            raise ApplicationError(str(error), type=error.type, non_retryable=True, category=BENIGN) from None
        attributes, warnings = await self._search_attributes()
        above = compact_above(durable, model)
        return RunPlan(
            agent=durable.name,
            version=durable.version,
            model=model.model_id,
            models=_model_ids(durable),
            limits=durable.limits,
            on_limit=durable.on_limit,
            limit_terms=durable.limit_terms,
            deadline_pauses=not durable.deadline_counts_waiting,
            max_parallel_calls=durable.max_parallel_calls,
            search_attributes=attributes,
            model_timeout=seconds(durable.model_timeout) or 600.0,
            model_attempts=durable.model_attempts,
            compact_above=above,
            compact_keep=(above or 0) if durable.compact_keep is None else durable.compact_keep,
            compact_with=durable.compact_with,
            verifies=self._runtime.app.verifier is not None,
            encrypts=activity.client().data_converter.payload_codec is not None,
            notifies=self._runtime.app.notifier is not None,
            stores=stores(),
            warnings=warnings,
        )

    def _check(self, durable: DurableAgent, request: RunRequest) -> None:
        self._runtime.params(durable, request.params)
        needing = [name for name, policy in durable.policies.items() if policy.needs_store]
        if needing and result_store() is None:
            raise InvalidRequest(
                f"the policies {needing} keep or carry large results, and this worker has no payload store: "
                "start it with PERDURE_PAYLOADS"
            )
        gates = {name: policy.approval for name, policy in durable.policies.items()}
        gates["limit_approval"] = durable.limit_approval
        own = [name for name, approval in gates.items() if approval is not None and approval.forbid_self]
        if own and not request.by:
            raise InvalidRequest(
                f"say who starts the run in 'by': the policies {own} let nobody approve their own calls"
            )
        if request.prompt is None:
            return
        if problem := content_problem(request.prompt, "prompt"):
            raise InvalidRequest(problem)

    async def _search_attributes(self) -> tuple[list[str], list[str]]:
        """The attributes that may be upserted, and why others may not. An upsert of an unknown one hangs the run."""
        declared = self._runtime.app.search_attributes
        wanted = SEARCH_ATTRIBUTES if declared is None else declared
        if not wanted:
            return [], []
        namespace = activity.info().namespace
        try:
            answer = await activity.client().operator_service.list_search_attributes(
                ListSearchAttributesRequest(namespace=namespace)
            )
        except RPCError as error:
            return [], [f"search attributes are off: {error.message}"]
        known = [name for name in wanted if answer.custom_attributes.get(name) == TYPES[name in KEYWORD_LISTS]]
        missing = [name for name in declared or () if name not in known]
        return known, [f"search attributes {missing} are not registered: run `perdure setup`"] if missing else []


def _model_ids(durable: DurableAgent) -> dict[str, str]:
    """The agent's models by key, its own under the empty one. None is built for it: it may need a key of a provider."""
    own = {} if durable.agent.model is None else {"": durable.agent.model}
    every = {**own, **durable.models}
    return {key: model.model_id if isinstance(model, Model) else model for key, model in every.items()}


def compact_above(durable: DurableAgent, model: Model) -> int | None:
    """The tokens above which a run with this model is compacted; `None` = never."""
    if durable.compact_above == 0:
        return None
    window = model.context_window
    bounds = [durable.compact_above, None if window is None else int(window * PART_OF_WINDOW)]
    return min((bound for bound in bounds if bound is not None), default=None)
