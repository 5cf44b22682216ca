"""Connects a command to the server, with the log of Temporal's Rust core where it belongs: not on stdout."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.client import PerdureClient


async def connect(
    *, address: str | None = None, namespace: str | None = None, profile: str | None = None
) -> PerdureClient:
    """As `perdure.client.connect`. Faults of what is asked are raised, so the core's log isn't needed."""
    from perdure.client import connect

    keep_stdout(logs=False)
    return await connect(address=address, namespace=namespace, profile=profile)


def keep_stdout(*, logs: bool) -> None:
    """Keep the core from writing to stdout, as it does by default: it logs to Python's logging, or not at all.

    A runtime that the App's module has made the default one stays.
    """
    from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

    filter = TelemetryFilter(core_level="WARN", other_level="ERROR")
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio"), append_target_to_name=False)
    config = LoggingConfig(filter=filter, forwarding=forwarding) if logs else None
    with suppress(RuntimeError):
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=config)))
