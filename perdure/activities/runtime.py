"""What a worker holds for its life: resources, open agents, models, transcripts."""

from __future__ import annotations

import inspect
import logging
from contextlib import AsyncExitStack
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.models import Model, infer_model
from temporalio.exceptions import ApplicationError

from perdure.activities.breaker import Circuits
from perdure.activities.cache import Transcripts
from perdure.activities.reported import Reported
from perdure.activities.unmatched import Unmatched
from perdure.agent import DurableAgent
from perdure.app import App
from perdure.contracts import Json, validation_problems
from perdure.errors import InvalidRequest
from perdure.toolsets.bound import any_bound

logger = logging.getLogger("perdure.worker")


class Runtime:
    """Entered once per worker, as an async context manager. The activities share it."""

    def __init__(self, app: App, circuits: Circuits | None = None) -> None:
        self.app = app
        self.circuits = circuits or Circuits()
        self.queue = ""
        """The worker's own task queue, for calls that need a session which it holds; empty where no tool does."""
        self.transcripts = Transcripts()
        self.unmatched = Unmatched()
        self._stack = AsyncExitStack()
        self._resources: Any = None
        self._models: dict[tuple[str, str | None], Model] = {}

    @property
    def holds_sessions(self) -> bool:
        """Whether a toolset of the app holds sessions of runs."""
        return any(any_bound(toolset) for durable in self.app.agents.values() for toolset in durable.agent.toolsets)

    async def __aenter__(self) -> Runtime:
        """Open the resources and the agents. An agent whose server can't be reached is opened by its first call."""
        async with AsyncExitStack() as stack:  # what is open is closed again, should opening the rest be cancelled
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def _open(self, stack: AsyncExitStack) -> None:
        if self.app.resources is not None:
            self._resources = await stack.enter_async_context(self.app.resources())
        for durable in self.app.agents.values():
            try:
                await stack.enter_async_context(durable.agent)
            except Exception as error:
                logger.warning(
                    "agent %r: not everything could be opened, its calls will try again: %s", durable.name, error
                )

    async def __aexit__(self, *exc_info: Any) -> None:
        await self._stack.__aexit__(*exc_info)

    def model(self, durable: DurableAgent, key: str | None) -> Model:
        """The model of a run, built once per worker. Raises `InvalidRequest` for an unknown key."""
        known = (durable.name, key)
        if known not in self._models:
            self._models[known] = self._build_model(durable, key)
        return self._models[known]

    def _build_model(self, durable: DurableAgent, key: str | None) -> Model:
        if key is None:
            model = durable.agent.model
            if model is None:
                raise InvalidRequest(
                    f"agent {durable.name!r} has no model of its own: choose one of {sorted(durable.models)}"
                )
        elif key in durable.models:
            model = durable.models[key]
        else:
            known = sorted(durable.models) or "none beside its own, which is used when no model is named"
            raise InvalidRequest(f"agent {durable.name!r} has no model {key!r}. Known models: {known}")
        return model if isinstance(model, Model) else infer_model(model)

    def params(self, durable: DurableAgent, raw: Any) -> Any:
        """`raw` as the agent's `params_type`. Raises `InvalidRequest`, naming the fields."""
        if durable.params_type is None:
            if raw is not None and durable.deps is None:
                raise InvalidRequest(
                    f"agent {durable.name!r} takes no params: it has neither params_type nor deps to read them"
                )
            return raw
        if raw is None:
            schema = TypeAdapter(durable.params_type).json_schema()
            needed = schema.get("required", [])
            if needed:
                raise InvalidRequest(f"agent {durable.name!r} needs params with the fields {needed}; none were given")
            raw = {} if schema.get("type") == "object" else None
        try:
            return TypeAdapter(durable.params_type).validate_python(raw)
        except ValidationError as error:
            raise InvalidRequest(f"agent {durable.name!r}: {validation_problems(error, 'params')}") from error

    async def deps(self, durable: DurableAgent, start: Json) -> Any:
        """The deps of one activity. They exist only on the worker."""
        params = self.params(durable, start.get("params"))
        if durable.deps is None:
            return params
        made = durable.deps(params, self._resources)
        return await made if inspect.isawaitable(made) else made


def not_run(error: Exception, attempt: int) -> ApplicationError:
    """What a tool activity raises when it failed before the tool began, so that nobody has to wonder.

    Of a later attempt that isn't said: an earlier one may have run.
    """
    kind = "NotRun" if attempt == 1 else type(error).__name__
    return Reported(f"The call was not run: {type(error).__name__}.", type=kind)
