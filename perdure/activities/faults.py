"""What an exception means: retried by Temporal, a typed end of the run, or a line in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from pydantic_ai.exceptions import (
    AgentRunError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    UserError,
)
from temporalio import activity
from temporalio.exceptions import ApplicationError

from perdure.contracts import Fault
from perdure.errors import PerdureError, UnknownAgent

PERMANENT = (ModelRequestRejectedError, ModelQuotaExceededError, ModelRequestTimeout)
"""Errors of a provider that another attempt doesn't mend: Pydantic AI's own list for durable execution."""
PERMANENT_STATUS = {400, 401, 403, 404, 405, 410, 413, 415, 422}
MAX_RETRY_AFTER = 300.0
MAX_TEXT = 20_000
"""Characters of an error in history. Providers put whole response bodies into theirs."""
UNKNOWN_AGENT_RETRY = timedelta(seconds=60)
"""An old worker in a rolling deploy may not know an agent yet: five attempts take four minutes."""


@contextmanager
def provider_errors() -> Generator[None]:
    """Around a model request: raise what Temporal should make of each error.

    Temporal owns the retries; the provider client's own are off. `Retry-After` becomes the delay of the next attempt.
    """
    try:
        yield
    except (ApplicationError, asyncio.CancelledError):
        raise
    except UnknownAgent as error:
        raise ApplicationError(str(error), type=error.type, next_retry_delay=UNKNOWN_AGENT_RETRY) from error
    except (PerdureError, UserError, AgentRunError, FallbackExceptionGroup) as error:
        raise as_application_error(error) from error


def as_application_error(error: Exception) -> ApplicationError:
    """`error` under its own name, retryable or not, with the provider's `Retry-After` as the next delay."""
    retry_after = retry_after_of(error)
    return ApplicationError(
        str(error)[:MAX_TEXT],
        type=type_of(error),
        non_retryable=permanent(error),
        next_retry_delay=None if retry_after is None else timedelta(seconds=min(retry_after, MAX_RETRY_AFTER)),
    )


def permanent(error: BaseException) -> bool:
    """Whether another attempt would only fail again."""
    if isinstance(error, FallbackExceptionGroup):
        return all(permanent(member) for member in error.exceptions)
    if isinstance(error, ModelHTTPError):
        return isinstance(error, PERMANENT) or error.status_code in PERMANENT_STATUS
    if isinstance(error, ModelAPIError):
        return isinstance(error, PERMANENT)
    return isinstance(error, PerdureError | UserError | AgentRunError)


def retry_after_of(error: BaseException) -> float | None:
    """Seconds the provider asked to wait; of a fallback group, the least of its members that can be retried."""
    if isinstance(error, FallbackExceptionGroup):
        asked = [retry_after_of(member) for member in error.exceptions if not permanent(member)]
        return min((value for value in asked if value is not None), default=None)
    return getattr(error, "retry_after", None)


def fault_of(error: BaseException) -> Fault:
    """`error` as the data that ends a run."""
    if isinstance(error, ApplicationError):
        return Fault(type=error.type or "ApplicationError", message=error.message, details=list(error.details))
    return Fault(type=type_of(error), message=str(error)[:MAX_TEXT] or type(error).__name__)


def type_of(error: BaseException) -> str:
    """The name an error has in history."""
    return "ModelFailed" if isinstance(error, FallbackExceptionGroup) else type(error).__name__


def log_error(what: str, error: BaseException) -> None:
    """The whole error goes to the worker's log; the model and history get a redacted text."""
    activity.logger.error("%s: %s", what, error, exc_info=error)
