"""Payloads that are lost, damaged, or in a store that somebody lacks: it is said, and no run ends of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai import Agent
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
)

from perdure import App
from perdure.client import ClientError, NoAnswer, PerdureClient
from perdure.converter import data_converter
from perdure.errors import PayloadStoreError
from perdure.payloads.configured import payload_store
from perdure.payloads.files import FileStore
from tests.harness import attempts, check_run, with_store, working
from tests.payloads import LARGE, files, reader, storage_of
from tests.scripts import Script


async def test_a_missing_payload_is_named_with_what_to_do(folder: Path) -> None:
    (payload,) = await data_converter().encode(["x" * LARGE])
    (path,) = files(folder)
    path.unlink()
    with pytest.raises(PayloadStoreError) as raised:
        await data_converter().decode([payload])
    assert str(raised.value) == (
        f"'payloads/{path.name[:2]}/{path.name}' isn't in {str(folder)!r}: it was removed, or PERDURE_PAYLOADS names "
        "another folder here than where it was written"
    )


async def test_a_run_whose_payloads_are_gone_says_so(stored: Client, folder: Path) -> None:
    """It has ended, so its worker has to read its history to answer a query."""
    async with working(stored, reader(), check=False) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        await handle.result()
        for path in files(folder):
            path.unlink()
        with pytest.raises(ClientError) as raised:
            await PerdureClient(stored).run(handle.id).transcript()
    assert "another folder here than where it was written" in str(raised.value)


async def test_a_damaged_payload_is_never_read(folder: Path) -> None:
    (payload,) = await data_converter().encode(["x" * LARGE])
    (path,) = files(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(PayloadStoreError, match=f"{path.name} in .* is damaged: it has {len(whole) - 1} bytes"):
        await data_converter().decode([payload])
    assert (await data_converter().encode(["x" * LARGE]))[0] == payload
    assert path.read_bytes() == whole, "a truncated file is written anew"
    path.write_bytes(whole[:-1] + b"y")
    with pytest.raises(PayloadStoreError, match="is damaged"):
        await data_converter().decode([payload])


async def test_a_run_waits_for_a_lost_payload_and_goes_on(stored: Client, folder: Path) -> None:
    """A worker that can't read a payload tries its workflow task again: nothing runs, and nothing is lost."""
    script = Script("done")
    app = App(agents=[Agent(script.model, name="reads")])
    async with working(stored, app, check=False) as runs:
        await runs.run("reads", "x")
    handle = await runs.start("reads", "x" * LARGE)
    (lost,) = files(folder)
    kept = lost.rename(folder.parent / "kept")
    async with working(stored, app, task_queue=runs.task_queue, check=False):
        client = PerdureClient(stored).run(handle.id, query_timeouts=[0.5])
        why = await said(client.status, "workflow task fails")
        assert "was removed, or PERDURE_PAYLOADS names another folder" in why
        kept.rename(lost)
        assert (await handle.result())["output"] == "done"
    assert len(script.requests) == 2


async def said(ask: Callable[[], Awaitable[object]], words: str) -> str:
    """What a query is answered with, once it holds these words."""
    async with asyncio.timeout(90):
        while True:
            with pytest.raises(NoAnswer) as raised:
                await ask()
            if words in str(raised.value):
                return str(raised.value)


async def test_a_client_without_the_store_says_what_to_do(client: Client, stored: Client) -> None:
    async with working(stored, reader()) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        await handle.result()
        run = PerdureClient(client).run(handle.id)
        assert (await run.result()).output.startswith(f"{LARGE} ")
        with pytest.raises(PayloadStoreError, match="is kept outside Temporal: set PERDURE_PAYLOADS to what"):
            await run.transcript()
        storage = payload_store("s3://another")
        other = replace(data_converter(), external_storage=replace(storage_of(stored), drivers=[storage]))
        elsewhere = with_store(client, other)
        with pytest.raises(PayloadStoreError, match="a store of another kind than that of PERDURE_PAYLOADS"):
            await PerdureClient(elsewhere).run(handle.id).transcript()


async def test_a_worker_without_the_store_is_named_as_the_reason(client: Client, stored: Client) -> None:
    async with working(client, reader(), check=False) as runs:
        pass
    handle = await PerdureClient(stored).start("reads", "x" * LARGE, task_queue=runs.task_queue)
    async with working(client, reader(), task_queue=runs.task_queue, check=False):
        run = PerdureClient(client).run(handle.id, query_timeouts=[0.5])
        why = await said(run.status, "workflow task fails")
        assert why.endswith("Start the worker with the PERDURE_PAYLOADS of the run's client")
    async with working(stored, reader(), task_queue=runs.task_queue, check=False):
        assert (await handle.result()).output.startswith(f"{LARGE} ")


async def test_a_run_is_replayed_only_with_the_store(stored: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async with working(stored, reader()) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        await handle.result()
    monkeypatch.delenv("PERDURE_PAYLOADS")
    with pytest.raises(Exception, match="TMPRL1105"):
        await check_run(handle)


async def test_a_store_that_cant_be_read_for_a_moment_ends_no_run(stored: Client, folder: Path) -> None:
    """The worker asks the run for a transcript that it doesn't hold, and its answer is gone at the first attempt."""

    class Flaky(FileStore):
        failed = False

        async def retrieve(
            self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
        ) -> list[Payload]:
            if activity.in_activity() and not self.failed:
                self.failed = True
                raise PayloadStoreError("not now")
            return await super().retrieve(context, claims)

    flaky = Flaky(folder)
    converter = replace(data_converter(), external_storage=replace(storage_of(stored), drivers=[flaky]))
    script = Script("done")
    async with working(with_store(stored, converter), App(agents=[Agent(script.model, name="reads")])) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        assert (await handle.result())["output"] == "done"
        assert await attempts(handle) == [2]
    assert flaky.failed
