"""The payload store in a bucket: the SDK's driver against a server of S3's protocol, a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aioboto3
import pytest
from pydantic_ai import Agent
from temporalio.client import Client

from perdure import App
from perdure.client import PerdureClient
from perdure.converter import data_converter
from perdure.errors import PayloadStoreError
from perdure.payloads.configured import payload_store
from tests.command import free_port, listens, perdure
from tests.harness import until, with_store, working
from tests.payloads import LARGE, reader
from tests.scripts import Script


@pytest.fixture
async def bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Any]:
    """A bucket `runs` on a server of this test, which AWS's own environment points to; as the SDK's resource."""
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "moto.server", "-p", str(port)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "PERDURE_PAYLOADS": "s3://runs/of/a test",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        await until(lambda: listens(port))
        session: Any = aioboto3.Session()
        async with session.resource("s3") as s3:
            made = await s3.create_bucket(Bucket="runs")
            yield made
    finally:
        server.terminate()
        await server.wait()


async def keys(bucket: Any) -> list[str]:
    return sorted([one.key async for one in bucket.objects.all()])


async def test_a_run_with_its_payloads_in_a_bucket(client: Client, bucket: Any, cache: int) -> None:
    stored = with_store(client)
    async with working(stored, reader(), cache=cache) as runs:
        handle = await runs.start("reads", "x" * LARGE)
        assert (await handle.result())["output"].startswith(f"{LARGE} ")
        address = f"{client.service_client.config.target_host}"
        shown = await perdure("show", handle.id, address=address)
    assert shown.code == 0, shown.err
    found = await keys(bucket)
    assert found
    assert all(key.startswith("of/a test/v0/") for key in found)


async def test_a_bucket_that_isnt_there_is_named(client: Client, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_PAYLOADS", "s3://other")
    with pytest.raises(PayloadStoreError) as raised:
        await PerdureClient(with_store(client)).start("reads", "x" * LARGE)
    assert "the payload store s3://other/: S3StorageDriver store failed" in str(raised.value)
    assert "NoSuchBucket" in str(raised.value)


async def test_a_lost_object_is_named(bucket: Any) -> None:
    (payload,) = await data_converter().encode(["x" * LARGE])
    (key,) = await keys(bucket)
    await (await bucket.Object(key)).delete()
    with pytest.raises(PayloadStoreError, match=r"s3://runs/of/a test/: S3StorageDriver retrieve failed .*NoSuchKey"):
        await data_converter().decode([payload])


async def test_blobs_by_name(bucket: Any) -> None:
    store = payload_store("s3://runs/of")
    await store.put("results/00/11", b"whole")
    assert await store.find("results/00/11") == b"whole"
    assert await keys(bucket) == ["of/results/00/11"]
    assert await store.find("results/00/12") is None


async def test_a_run_that_needs_no_store_asks_for_none(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server answers there: only large payloads go there."""
    monkeypatch.setenv("PERDURE_PAYLOADS", "s3://nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    app = App(agents=[Agent(Script("done").model, name="small")])
    async with working(with_store(client), app) as runs:
        assert (await runs.run("small", "go"))["output"] == "done"


def test_without_the_extra_the_address_is_refused(tmp_path: Path) -> None:
    """In a process where the extra's library can't be imported."""
    import subprocess

    code = (
        "import sys; sys.modules['aioboto3'] = None\n"
        "from perdure.converter import data_converter\n"
        "from perdure.errors import DeclarationError\n"
        "try:\n    data_converter()\nexcept DeclarationError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PERDURE_PAYLOADS": "s3://b"}, check=True
    )
    assert done.stdout.startswith("PERDURE_PAYLOADS='s3://b' needs the extra s3: pip install 'perdure[s3]'")
