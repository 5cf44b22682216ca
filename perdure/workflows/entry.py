"""The wrappers around every entry point of the workflow.

A plain exception in workflow code fails the workflow *task*, which Temporal retries for ever: the run hangs and shows
no error. So nothing but these wrappers is an entry point: each turns every exception into a typed end of the run, a
typed answer, or a row in `rejected`. `failure_exception_types` stays empty: with `Exception` in it, one bad deploy's
nondeterminism would end every run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import Sent, cut, validation_problems
    from perdure.errors import InternalError, InvalidRequest, PerdureError

T = TypeVar("T")
Model = TypeVar("Model", bound="Sent")


async def typed(work: Awaitable[T]) -> T:
    """Await `work`; whatever it raises becomes a failure that ends the run or answers the update."""
    try:
        return await work
    except FailureError:
        raise
    except Exception as error:
        raise as_failure(error) from None


def refusal(check: Callable[..., None], *args: Any) -> None:
    """Run a validator; whatever it raises becomes the refusal, cut: one over 2 MB would fail the workflow task."""
    try:
        check(*args)
    except FailureError:
        raise
    except Exception as error:
        raise as_failure(error) from None


def as_failure(error: Exception) -> ApplicationError:
    """`error` as the non-retryable failure it has in history."""
    if not isinstance(error, PerdureError):
        error = InternalError(f"{type(error).__name__}: {error}")
    return ApplicationError(cut(str(error)), type=error.type, non_retryable=True)


def one_argument(raw: tuple[Any, ...], model: type[Model]) -> Model:
    """The one JSON argument of a handler as `model`. Raises `InvalidRequest`, naming the fields.

    Handlers are declared `(self, *raw)` since the Web UI's form sends no argument at all for an empty box, which a
    declared parameter can't meet.
    """
    known = ", ".join(repr(name) for name in model.model_fields)
    if len(raw) != 1 or not isinstance(raw[0], dict):
        got = f"{len(raw)} arguments" if len(raw) != 1 else f"{type(raw[0]).__name__}: {cut(repr(raw[0]), 200)}"
        raise InvalidRequest(f"expected one JSON object with the fields {known}; got {got}")
    try:
        return model.model_validate(raw[0])
    except ValueError as error:
        raise InvalidRequest(f"{validation_problems(error, 'request')}. Known fields: {known}") from error
