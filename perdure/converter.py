"""The data converter of workers and clients."""

from __future__ import annotations

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter


def data_converter() -> DataConverter:
    """Temporal's own Pydantic converter: JSON that any client can read and write."""
    return pydantic_data_converter
