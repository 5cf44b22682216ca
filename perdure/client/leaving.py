"""A way around a fault of Temporal's SDK that crashes short programs when they end."""

from __future__ import annotations

import atexit
import time
from functools import cache

PAUSE = 0.05
"""Seconds. One millisecond was enough on an idle machine."""


@cache
def pause_at_exit() -> None:
    """Let the threads of Temporal's Rust core come back before Python tears itself down.

    One that has just handed over an answer and still holds Python's lock crashes the process with SIGABRT or SIGSEGV:
    with Python 3.11 and temporalio 1.35 it hit one in four programs that ended right after an answer, none of them with
    this pause. https://github.com/temporalio/sdk-python/issues/300
    """
    atexit.register(time.sleep, PAUSE)
