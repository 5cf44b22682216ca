"""The payload store: what is too large for Temporal is carried by it, whole or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from perdure import DeclarationError
from perdure.client import PerdureClient
from perdure.contracts import MAX_STORED, OFFLOADED
from perdure.converter import data_converter
from perdure.errors import InvalidRequest, PayloadStoreError
from perdure.payloads.configured import file_address, payload_store
from perdure.payloads.files import FileStore
from tests.harness import messages, working
from tests.payloads import LARGE, files, reader

WRITE = StorageDriverStoreContext()
READ = StorageDriverRetrieveContext()


@pytest.mark.parametrize("instructed", [False, True], ids=["", "system prompt"])
async def test_a_prompt_of_six_megabytes_is_carried(stored: Client, folder: Path, cache: int, instructed: bool) -> None:
    """Replayed at the end by `working`, as every run; with a system prompt the step holds the prompt once more."""
    prompt = 'é"\\ 0123456789' * (LARGE // 16)
    app = reader(system_prompt="Count.") if instructed else reader()
    async with working(stored, app, cache=cache) as runs:
        handle = await runs.start("reads", prompt)
        result = await handle.result()
        history = await handle.fetch_history()
    assert result["output"] == f"{len(prompt)} {hashlib.sha256(prompt.encode()).hexdigest()}"
    assert sum(event.ByteSize() for event in history.events) < 20_000
    assert all(path.name == hashlib.sha256(path.read_bytes()).hexdigest() for path in files(folder))


@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_a_stored_prompt_has_a_limit(stored: Client, over: bool) -> None:
    envelope = len('{"agent":"reads","prompt":""}')
    prompt = "x" * (MAX_STORED - envelope + over)
    async with working(stored, reader()) as runs:
        if not over:
            assert (await runs.run("reads", prompt))["output"].startswith(f"{len(prompt)} ")
            return
        failure = await runs.failure("reads", prompt)
        assert (failure.type, failure.message) == (
            "InvalidRequest",
            f"the request has {MAX_STORED + 1} bytes; it may have {MAX_STORED}. "
            "Put large inputs where a tool can read them.",
        )


@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_what_is_under_the_threshold_stays_in_history(folder: Path, over: bool) -> None:
    """The threshold counts the payload with its metadata."""
    value = "x" * (OFFLOADED - payload_overhead() - 1 + over)
    (payload,) = await data_converter().encode([value])
    assert len(files(folder)) == over
    assert (payload.ByteSize() < 1000) == over
    assert await data_converter().decode([payload]) == [value]


def payload_overhead() -> int:
    """Bytes of a payload of text of about the threshold that aren't the text."""
    value = "x" * (OFFLOADED - 100)
    return data_converter().payload_converter.to_payloads([value])[0].ByteSize() - len(value)


async def test_the_answer_of_a_query_is_stored_too(stored: Client, folder: Path) -> None:
    """So a transcript is readable whatever its entries hold; equal answers are kept once."""
    async with working(stored, reader()) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        await handle.result()
        before = files(folder)
        await messages(handle)
        await messages(handle)
        assert len(files(folder)) == len(before) + 1


async def test_without_a_store_the_client_refuses_at_once(client: Client) -> None:
    with pytest.raises(InvalidRequest, match=r"the request has 1500\d\d\d bytes; it may have 1500000"):
        await PerdureClient(client).start("reads", "x" * 1_500_000)


WRITER = """
import asyncio, sys
from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverStoreContext
from perdure.payloads.configured import payload_store

async def main():
    store = payload_store(sys.argv[1])
    payloads = [Payload(data=bytes([number % 256]) * 300_000) for number in range(20)]
    claims = await store.store(StorageDriverStoreContext(), payloads)
    print(*(claim.claim_data["sha256"] for claim in claims))

asyncio.run(main())
"""


async def test_processes_write_the_same_payloads_at_once(folder: Path) -> None:
    address = file_address(folder)
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, address, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    printed = [(await writer.communicate())[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert printed[0]
    assert printed == [printed[0]] * 4
    claims = [StorageDriverClaim({"sha256": digest.decode()}) for digest in printed[0]]
    payloads = await payload_store(address).retrieve(READ, claims)
    assert [payload.data for payload in payloads] == [bytes([number]) * 300_000 for number in range(20)]
    assert len(files(folder)) == 20, "no temporary file is left"


async def test_a_folder_that_cant_be_written_is_named() -> None:
    store = FileStore(Path(__file__) / "payloads of a test")
    with pytest.raises(PayloadStoreError, match=r"300004 bytes can't be kept in '.*payloads of a test'"):
        await store.store(WRITE, [Payload(data=b"x" * 300_000)])


@pytest.mark.parametrize("name", ["../x", "payloads/../../etc", "/etc/passwd", "payloads", "payloads/AB", ""])
async def test_no_name_leads_out_of_the_store(tmp_path: Path, name: str) -> None:
    store = FileStore(tmp_path)
    with pytest.raises(PayloadStoreError, match="names nothing in a payload store"):
        await store.find(name)
    with pytest.raises(PayloadStoreError, match="names nothing in a payload store"):
        await store.put(name, b"x")
    with pytest.raises(PayloadStoreError, match="names nothing in a payload store"):
        await store.retrieve(READ, [StorageDriverClaim({"sha256": name})])
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "value",
    ["payloads", "/tmp/x", "file://tmp/x", "file:x", "ftp://h/x", "s3://", "s3:///x", "file:///x?y", "file://[/x"],
)
def test_an_address_that_names_no_store_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PERDURE_PAYLOADS", value)
    with pytest.raises(DeclarationError) as raised:
        data_converter()
    assert f"PERDURE_PAYLOADS={value!r}" in str(raised.value)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeclarationError, match="is not a folder"):
        payload_store(file_address(tmp_path / "file"))


def test_without_the_variable_there_is_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERDURE_PAYLOADS", raising=False)
    assert data_converter().external_storage is None
    assert data_converter() is data_converter()
