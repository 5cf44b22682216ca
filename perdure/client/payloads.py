"""What a client says that can't read a payload since its payload store isn't the run's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from perdure.errors import PayloadStoreError

NOT_CONFIGURED = "TMPRL1105"
"""The SDK's own code where a payload is kept outside and there is no driver."""
OTHER_DRIVER = "No driver found with name"
"""The SDK's words where there is another one."""
HINT = "set PERDURE_PAYLOADS to what the run's worker has (`perdure dev` prints the line)"


@contextmanager
def readable() -> Generator[None]:
    """Turn the SDK's errors of reading a payload into `PayloadStoreError`, which says what to do."""
    try:
        yield
    except RuntimeError as error:
        if NOT_CONFIGURED not in str(error):
            raise
        raise PayloadStoreError(f"a large payload of this run is kept outside Temporal: {HINT}") from error
    except ValueError as error:
        if OTHER_DRIVER not in str(error):
            raise
        raise PayloadStoreError(
            f"a large payload of this run is kept in a store of another kind than that of PERDURE_PAYLOADS: {HINT}"
        ) from error
