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

from perdure.activities.reported import Reported
from perdure.contracts import Fault, bounded_details, cut
from perdure.errors import (
    AnswerLost,
    DeclarationError,
    InternalError,
    PayloadStoreError,
    PerdureError,
    ServerUnreachable,
    UnknownAgent,
)

PERMANENT = (ModelRequestRejectedError, ModelQuotaExceededError, ModelRequestTimeout)
"""Errors of a provider that another attempt doesn't mend: Pydantic AI's own list for durable execution."""
PERMANENT_STATUS = {400, 401, 403, 404, 405, 410, 413, 415, 422}
MAX_RETRY_AFTER = 300.0
MAX_LINE = 2_000
"""Characters of one line in the log: the text of a provider's error has its whole answer."""
UNKNOWN_AGENT_RETRY = timedelta(seconds=60)
"""An old worker in a rolling deploy may not know an agent yet: five attempts take four minutes."""


@contextmanager
def provider_errors() -> Generator[None]:
    """Around a model request: raise what Temporal should make of each error.

    Temporal owns the retries; the provider client's own are off. `Retry-After` becomes the delay of the next attempt.
    Nothing is chained: the text of a cause would go into history, and may hold a secret or a whole response body.
    """
    try:
        yield
    except (ApplicationError, asyncio.CancelledError):
        raise
    except UnknownAgent as error:
        log_error("before the model was asked", error)
        raise Reported(str(error), type=error.type, next_retry_delay=UNKNOWN_AGENT_RETRY) from None
    except Exception as error:
        log_error("before the model answered", error)
        raise as_application_error(error) from None


def as_application_error(error: Exception) -> ApplicationError:
    """`error` under its own name, retryable or not, with the provider's `Retry-After` as the next delay."""
    retry_after = retry_after_of(error)
    return Reported(
        text_of(error),
        type=type_of(error),
        non_retryable=permanent(error),
        next_retry_delay=None if retry_after is None else timedelta(seconds=min(retry_after, MAX_RETRY_AFTER)),
    )


def text_of(error: BaseException) -> str:
    """What history says of an error. The text of one that isn't Pydantic AI's or ours may hold a secret: its name."""
    if isinstance(error, ApplicationError):
        return writable(cut(error.message))
    if isinstance(error, PerdureError | UserError | AgentRunError | FallbackExceptionGroup):
        return writable(cut(str(error))) or type(error).__name__
    return f"{type(error).__name__} was raised; its text is in the worker's log"


def permanent(error: BaseException) -> bool:
    """Whether another attempt would only fail again."""
    if isinstance(error, FallbackExceptionGroup):
        return all(permanent(member) for member in error.exceptions)
    if isinstance(error, ModelHTTPError):
        return isinstance(error, PERMANENT) or error.status_code in PERMANENT_STATUS
    if isinstance(error, ModelAPIError):
        return isinstance(error, PERMANENT)
    if isinstance(error, PayloadStoreError | ServerUnreachable | AnswerLost):
        return False  # it may be there again
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
        type = writable(error.type or "ApplicationError")
        return Fault(type=type, message=text_of(error) or type, details=bounded_details(error.details))
    return Fault(type=type_of(error), message=text_of(error))


def type_of(error: BaseException) -> str:
    """The name an error has in history."""
    return "ModelFailed" if isinstance(error, FallbackExceptionGroup) else type(error).__name__


def writable(text: str) -> str:
    """`text` as history can hold it: half of a pair of surrogates, which UTF-8 doesn't know, as its code."""
    return text.encode("utf-8", "backslashreplace").decode()


def log_error(what: str, error: BaseException) -> None:
    """The whole error goes to the worker's log; the model and history get a redacted text.

    With a trace where a program is at fault; else it is one line, since what counts is in its text and its notes.
    """
    if not foreseen(error):
        activity.logger.error("%s: %s", what, error, exc_info=error)
        return
    text = " ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])
    activity.logger.warning("%s: %s: %s", what, type(error).__name__, " ".join(cut(text, MAX_LINE).split()))


def foreseen(error: BaseException) -> bool:
    """Whether it is no fault of a program: something is away, a provider refuses, a value is too large."""
    if isinstance(error, FallbackExceptionGroup):
        return all(foreseen(member) for member in error.exceptions)
    if isinstance(error, InternalError | DeclarationError):
        return False
    return isinstance(error, PerdureError | AgentRunError)
