"""Large tool results that are kept outside the conversation, in the worker's payload store."""

from __future__ import annotations

import hashlib
import re

from temporalio import activity

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
    nothing in another run, and whatever a model writes leads nowhere else.
    """

    def __init__(self, store: PayloadStore | None, namespace: str, workflow_id: str) -> None:
        self._store = store
        self._folder = f"results/{hashlib.sha256(f'{namespace}/{workflow_id}'.encode()).hexdigest()}"

    async def keep(self, text: str) -> str:
        """Keep a result and return its reference. Raises `PayloadStoreError`."""
        if self._store is None:
            raise PayloadStoreError("this worker has no payload store: set PERDURE_PAYLOADS")
        data = text.encode()
        ref = hashlib.sha256(data).hexdigest()[:32]
        await self._store.put(f"{self._folder}/{ref}", data)
        return ref

    async def read(self, ref: str) -> str | None:
        """The result of a reference; `None` where this run has none. Raises `PayloadStoreError` where it is damaged."""
        if self._store is None or not REF.fullmatch(ref):
            return None
        data = await self._store.find(f"{self._folder}/{ref}")
        if data is None:
            return None
        if hashlib.sha256(data).hexdigest()[:32] != ref:
            raise PayloadStoreError(f"the kept result {ref} is damaged: its digest is another")
        return data.decode()


def results_of_this_run() -> Results:
    """What the run of this activity has kept."""
    info = activity.info()
    return Results(result_store(), info.namespace, info.workflow_id or "")
