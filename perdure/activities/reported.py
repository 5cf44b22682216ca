"""Failures of an activity that are in the worker's log when it ends, so that Temporal needn't log them once more.

Temporal logs each with a trace of thirty lines, in which the one line that says what is wrong is lost. The category
`BENIGN` would end that, but keep the failure out of Temporal's metrics too, where a provider or a server that is down
has to show. So a filter of the worker's process leaves those lines out.
"""

from __future__ import annotations

import logging

from temporalio.exceptions import ApplicationError


class Reported(ApplicationError):
    """A failure that `log_error` has told of. In history it is an `ApplicationError` like any other."""


def report_once() -> None:
    """Leave Temporal's own line for a `Reported` out of the log. For a program whose log is ours: `perdure worker`."""
    logger = logging.getLogger("temporalio.activity")
    if _is_news not in logger.filters:
        logger.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], Reported))
