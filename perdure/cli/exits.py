"""The exit codes of `perdure`, and which error ends with which: one line on stderr, never a traceback.

An error of the user's own code isn't among them: it keeps its traceback (`traces.py`) and ends with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

OK = 0
FAILED = 1
"""Anything that has no code of its own."""
USAGE = 2
"""The command, an argument or a declaration (`DeclarationError`) is wrong."""
NO_SERVER = 3
"""No Temporal server answers."""
RUN_FAILED = 4
"""The run ended without a result."""
NO_WORKER = 5
"""No worker answered, the error says why; the run itself isn't affected."""
INTERRUPTED = 130
"""Ctrl-C. A run that was started goes on."""


@contextmanager
def one_line_errors() -> Generator[None]:
    """Turn the errors that have a code into one line on stderr and that code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        from perdure.cli.text import printable

        code = code_of(error)
        if code is None:
            raise
        said = str(error) if code == RUN_FAILED else f"Error: {error}"
        print(printable(" ".join(said.split())), file=sys.stderr)
        raise typer.Exit(code) from None


def code_of(error: Exception) -> int | None:
    """The exit code of an error; `None` where it should be seen whole."""
    from temporalio.service import RPCError, RPCStatusCode

    from perdure.client import ClientError, NoAnswer, NoServer, RunFailed
    from perdure.errors import DeclarationError, InvalidRequest, PayloadStoreError

    match error:
        case DeclarationError() | InvalidRequest():
            return USAGE
        case NoServer():
            return NO_SERVER
        case RunFailed():
            return RUN_FAILED
        case NoAnswer():
            return NO_WORKER
        case RPCError(status=RPCStatusCode.UNAVAILABLE):
            return NO_SERVER
        case ClientError() | RPCError() | PayloadStoreError():
            return FAILED
        case _:
            return None
