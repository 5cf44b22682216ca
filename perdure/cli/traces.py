"""The traceback of an error in the user's module: from that module on, without how perdure came to import it."""

from __future__ import annotations

import importlib
import traceback
from itertools import dropwhile

FROZEN = "<frozen importlib"
"""The file of the import system's own frames, those of `importlib.import_module` aside."""


def from_module_on(error: Exception, *loaders: str) -> str:
    """The traceback of `error`, which came up while the files `loaders` imported the user's module.

    An error that isn't of the user's code is shown whole. A `SyntaxError` has no frame, it names its place itself.
    """
    shown = traceback.TracebackException.from_exception(error)
    before = (*loaders, str(importlib.__file__), FROZEN)
    kept = list(dropwhile(lambda frame: frame.filename.startswith(before), shown.stack))
    if not kept:
        return "".join(shown.format_exception_only() if isinstance(error, SyntaxError) else shown.format())
    shown.stack = traceback.StackSummary.from_list(frame for frame in kept if not frame.filename.startswith(FROZEN))
    return "".join(shown.format())
