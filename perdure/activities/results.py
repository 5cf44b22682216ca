"""Large tool results that are kept outside the conversation, in the worker's payload store."""

from __future__ import annotations

import hashlib
import re

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from perdure.activities.faults import log_error
from perdure.errors import PayloadStoreError
from perdure.payloads.base import PayloadStore

REF = re.compile(r"[0-9a-f]{32}")


def result_store() -> PayloadStore | None:
    """The payload store of the worker, where it can keep results. Only in an activity."""
    storage = activity.client().data_converter.external_storage
    drivers = storage.drivers if storage else ()
    return next((driver for driver in drivers if isinstance(driver, PayloadStore)), None)


class Results:
    """The results that one run has kept.

    They lie under the digest of its namespace and workflow id, named by the digest of their text: a reference leads to
    nothing in another run, and whatever a model writes leads nowhere else. They are encoded as payloads are.
    """

    def __init__(
        self, store: PayloadStore | None, codec: PayloadCodec | None, namespace: str, workflow_id: str
    ) -> None:
        self._store = store
        self._codec = codec
        self._folder = f"results/{hashlib.sha256(f'{namespace}/{workflow_id}'.encode()).hexdigest()}"

    async def keep(self, text: str) -> str:
        """Keep a result and return its reference. Raises `PayloadStoreError`."""
        if self._store is None:
            raise PayloadStoreError("this worker has no payload store: set PERDURE_PAYLOADS")
        ref = _ref(text)
        payload = Payload(metadata={"encoding": b"binary/plain"}, data=text.encode())
        (encoded,) = await self._codec.encode([payload]) if self._codec else [payload]
        await self._store.put(f"{self._folder}/{ref}", encoded.SerializeToString())
        return ref

    async def read(self, ref: str) -> str | None:
        """The result of a reference; `None` where this run has none. Raises `PayloadStoreError` where it is damaged."""
        if self._store is None or not REF.fullmatch(ref):
            return None
        data = await self._store.find(f"{self._folder}/{ref}")
        if data is None:
            return None
        if (text := await self._decoded(data)) is None or _ref(text) != ref:
            raise PayloadStoreError(f"the kept result {ref} is damaged")
        return text

    async def _decoded(self, data: bytes) -> str | None:
        try:
            encoded = Payload.FromString(data)
            (payload,) = await self._codec.decode([encoded]) if self._codec else [encoded]
            return payload.data.decode()
        except Exception as error:  # protobuf's, or whatever a codec raises
            log_error("a kept result can't be read", error)
            return None


def _ref(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def results_of_this_run() -> Results:
    """What the run of this activity has kept."""
    info = activity.info()
    codec = activity.client().data_converter.payload_codec
    return Results(result_store(), codec, info.namespace, info.workflow_id or "")
