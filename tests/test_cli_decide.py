"""`perdure key`, `token`, `approve`, `setup`, `inbox --for`, `show --audit`: deciding from a terminal."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from temporalio.client import Client

from perdure import Approval
from perdure.tokens import SignedTokens
from tests.command import free_port, listens, perdure
from tests.conftest import server_arguments, temporal_binary
from tests.deciding import pending
from tests.harness import until, working
from tests.scripts import Script
from tests.shop import shop


async def test_a_person_makes_a_key_and_decides_with_it(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "ann.json"
    made = await perdure("key", "ann", str(file), "--group", "finance")
    public = json.loads(made.out)
    assert (public["kid"], public["groups"], "d" in public) == ("ann", ["finance"], False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (await perdure("key", "ann", str(file))).code == 2, "an old key isn't overwritten"

    ran: list[Any] = []
    address = client.service_client.config.target_host
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("refund", {"n": 2})], "done")
    approval = Approval(approvers=["group:finance"], allow_edit=True)
    app = shop(script, ran, approval, verifier=SignedTokens({"keys": [public]}))
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/2/20/ "$1"\n')
    editor.chmod(0o700)
    mine: Any = {"PERDURE_KEY": str(file), "EDITOR": str(editor)}
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        nobody = await perdure("approve", handle.id, one["call"], "--by", "ann", address=address)
        assert (nobody.code, "can't be decided without a 'token'" in nobody.err) == (1, True)
        token = (await perdure("token", handle.id, one["call"], "deny", address=address, **mine)).out.strip()
        done = await perdure("deny", handle.id, one["call"], "--token", token, "--reason", "no", address=address)
        assert done.out.startswith(f"denied {one['call']}: refund")
        done = await perdure("approve", handle.id, two["call"], "--edit", address=address, **mine)
        assert done.out.startswith("approved 1.2+1-"), done.err
        assert '"n": 20' in done.out
        await handle.result()
        audit = (await perdure("show", handle.id, "--audit", address=address)).out
    assert ran == [("refund", 20)]
    (edited,) = [line for line in audit.splitlines() if line.startswith("edited")]
    assert 'by "ann" (verified) via update' in edited
    assert 'original_args={"n": 2' in edited


async def test_the_inbox_of_one_person(client: Client) -> None:
    address = client.service_client.config.target_host
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "done")
    async with working(client, shop(script, [], Approval(approvers=["ann"])), check=False) as runs:
        handle = await runs.start("shop", "go")
        await pending(handle, 2)
        for name, tools in (("ann", ["refund", "delete"]), ("bob", ["delete"])):
            listed = json.loads((await perdure("inbox", "--for", name, "--json", address=address)).out)
            assert [row["tool"] for row in listed if row["run"] == handle.id] == tools
        found = [run.id async for run in client.list_workflows('AgentWaiting IN ("ann") AND AgentStatus = "waiting"')]
        assert handle.id in found
        await handle.cancel()


async def test_setup_registers_what_is_missing() -> None:
    arguments = ["server", "start-dev", "--ip", "127.0.0.1", "--headless", "--log-level", "error"]
    arguments += ["--port", str(port := free_port()), "--search-attribute", "AgentName=Keyword", *server_arguments()]
    server = await asyncio.create_subprocess_exec(temporal_binary(), *arguments, stdout=asyncio.subprocess.DEVNULL)
    try:
        await until(lambda: listens(port))
        first = await perdure("setup", address=f"127.0.0.1:{port}")
        assert first.out == "AgentName: was there\nAgentStatus: registered\nAgentWaiting: registered\n", first.err
        assert (await perdure("setup", address=f"127.0.0.1:{port}")).out.count("was there") == 3
    finally:
        server.terminate()
        await server.wait()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["approve", "x", "1.1", "--edit", "--args", "{}"], "not both"),
        (["approve", "x", "1.1", "--args", "{"], "isn't JSON"),
        (["complete", "x", "1.1"], "--result or --error"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_wrong_usage_is_one_line(args: list[str], why: str) -> None:
    done = await perdure(*args)
    assert done.code == 2
    assert why in done.err


async def test_the_command_line_decides(client: Client) -> None:
    ran: list[Any] = []
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "done")
    address = client.service_client.config.target_host
    async with working(client, shop(script, ran)) as runs:
        handle = await runs.start("shop", "go")
        one, two = await pending(handle, 2)
        listed = (await perdure("inbox", address=address)).out
        assert one["call"] in listed
        assert two["call"] in listed
        done = await perdure("approve", handle.id, one["call"], "--by", "ann", address=address)
        assert (done.code, done.out.strip()) == (
            0,
            f'approved {one["call"]}: refund {{"n": 1, "note": "none"}} runs now',
        )
        again = await perdure("approve", handle.id, one["call"], address=address)
        assert (again.code, "AlreadyDecided" in again.err) == (1, True)
        done = await perdure("deny", handle.id, two["call"], "--reason", "no", address=address)
        assert done.code == 0
        await handle.result()
        late = await perdure("deny", handle.id, two["call"], address=address)
        assert (late.code, "has ended" in late.err) == (1, True)
    assert ran == [("refund", 1)]
