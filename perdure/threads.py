"""Threads of a worker's event loop: for `asyncio.to_thread`, look-ups of names, and Pydantic AI's sync functions.

Python gives a loop no more than 32 of them, on two processors 6, and anyio 40. A function that hangs keeps its thread
for good, so that a few would stop what other runs do; a call that waits for a thread uses up its time before it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from anyio.to_thread import current_default_thread_limiter

LEFT_BEHIND = 1000
"""Threads of functions that hang, beside those of the calls that run. A thread is made when it is needed."""
T = TypeVar("T")


class Threads(ThreadPoolExecutor):
    """A loop's default executor, in which a `StopIteration` ends: before Python 3.12 its caller would wait for ever."""

    def __init__(self, most: int) -> None:
        super().__init__(most, thread_name_prefix="perdure")
        self.most = most

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(_without_stop, fn, *args, **kwargs)


def _without_stop(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Raises `RuntimeError`, as Python does from 3.12 on, where the function raises `StopIteration`."""
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


def give_threads(calls: int) -> None:
    """Let the running loop run so many sync functions at once, beside those that hang.

    A default executor that the program has set is left as it is, and so is a limit of anyio's that is higher. What is
    given stays with the loop: what was begun in it may go on, and nothing can be set back.
    """
    loop, most = asyncio.get_running_loop(), calls + LEFT_BEHIND
    if _may_be_replaced(getattr(loop, "_default_executor", None), most):
        loop.set_default_executor(Threads(most))
    limiter = current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, calls)


def _may_be_replaced(executor: Any, most: int) -> bool:
    """Whether nobody has chosen it: there is none yet, it is the one a loop makes for itself, or ours and smaller."""
    if isinstance(executor, Threads):
        return executor.most < most
    return executor is None or getattr(executor, "_thread_name_prefix", "") == "asyncio"
