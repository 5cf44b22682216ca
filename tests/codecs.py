"""A codec that can be told from none."""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec


class Reversed(PayloadCodec):
    """Stands for an encryption codec."""

    async def encode(self, payloads: Any) -> list[Payload]:
        return [Payload(metadata={"encoding": b"reversed"}, data=p.SerializeToString()[::-1]) for p in payloads]

    async def decode(self, payloads: Any) -> list[Payload]:
        return [Payload.FromString(p.data[::-1]) if p.metadata["encoding"] == b"reversed" else p for p in payloads]
