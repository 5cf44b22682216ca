"""Text that is meant to do harm, in what a model asks for and in what people send: carried as it is, shown escaped."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import typer
from pydantic_ai.messages import ToolCallPart
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client
from temporalio.common import RawValue

from perdure import Approval
from perdure.cli.exits import one_line_errors
from perdure.cli.text import printable
from perdure.client import Refused
from tests.command import perdure
from tests.deciding import answers, pending, refused, update
from tests.harness import Handle, working
from tests.scripts import Script
from tests.shop import shop

CONTROLS = "\x00\x07\x1b[2J\x1b]0;title\x07\x9b31m\x7f\r\n\t\x85"
BIDI = "\u202eevil\u2066\u200f\u200b\u2028\ufeff"
MARKUP = (
    "<img src=x onerror=alert(1)> ![i](http://e/x.png) [l](javascript:x) `c` **b** | a |\n# head\n> q\n- - -\n~~s~~"
)
NASTY = f"{CONTROLS}{BIDI}{MARKUP}\U0001f600\ufffe"
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys; new lines and tabs aside."""
TURNS_TEXT = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")


async def details(handle: Handle) -> str:
    """The current details, as the Web UI asks for them."""
    return (await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)).current_details


def unescaped(markdown: str) -> str:
    """Markdown without what is escaped in it, and without the blocks of code that perdure writes."""
    lines = [line for line in markdown.splitlines() if not line.startswith("    ")]
    return re.sub(r"\\[!-/:-@\[-`{-~]", "", "\n".join(lines))


def blocks(markdown: str) -> list[str]:
    """The indented blocks: what is in them is shown as it is."""
    lines = [line if line.startswith("    ") else "" for line in markdown.splitlines()]
    return [block for block in "\n".join(lines).split("\n\n") if block.strip()]


async def test_arguments_are_shown_escaped(client: Client, cache: int) -> None:
    ran: list[Any] = []
    script = Script({"refund": {"n": 1, "note": NASTY}}, "done")
    async with working(client, shop(script, ran), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        assert row["args"] == {"n": 1, "note": NASTY}
        assert (await handle.query("status"))["pending"] == [row]
        shown = await details(handle)
        assert not OBEYED.search(shown)
        assert not TURNS_TEXT.search(shown)
        arguments, body = blocks(shown)
        assert json.loads(arguments) == row["args"]
        assert json.loads(body) == {"call": row["call"], "by": "your name"}
        assert "head" not in unescaped(shown)
        await update(handle, "approve", {"call": row["call"], "by": NASTY, "reason": NASTY})
        result = await handle.result()
        assert not OBEYED.search(await details(handle))
    asked, approved, _ = result["audit"]
    assert asked["args"] == {"n": 1, "note": NASTY}
    assert (approved["by"], approved["reason"]) == (NASTY, NASTY)
    assert ran == [("refund", 1)]


async def test_a_reason_reaches_the_model_and_the_audit_as_it_was_sent(client: Client, cache: int) -> None:
    script = Script([ToolCallPart("refund", {"n": 1}), ToolCallPart("delete", {"n": 2})], "done")
    async with working(client, shop(script, []), cache=cache) as runs:
        handle = await runs.start("shop", "go")
        one, two = (row["call"] for row in await pending(handle, 2))
        await handle.signal("deny", {"call": one, "by": NASTY, "reason": NASTY})
        await update(handle, "deny", {"call": two, "by": NASTY, "reason": NASTY})
        result = await handle.result()
        assert await answers(handle) == {"c0.0": ("denied", NASTY), "c0.1": ("denied", NASTY)}
        assert await handle.query("audit") == result["audit"]
    assert [(row["by"], row["reason"]) for row in result["audit"] if row["event"] == "denied"] == [(NASTY, NASTY)] * 2


async def test_a_refusal_quotes_what_was_sent(client: Client) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, [], Approval(approvers=["ann"]))) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for body in ({"call": NASTY}, {"call": row["call"], "by": NASTY}):
            text = await refused(handle, "approve", body)
            assert repr(NASTY) in text
            assert not OBEYED.search(text)
            await handle.signal("approve", body)
        rejected = (await handle.query("status"))["rejected"]
        assert [repr(NASTY) in one["reason"] for one in rejected] == [True, True]
        await update(handle, "deny", {"call": row["call"], "by": "ann"})
        await handle.result()


@pytest.mark.parametrize("text", [b"\\ud800", b"a\\udfffb", b"\xff\xfe", b"\xed\xa0\x80"], ids=repr)
@pytest.mark.parametrize("field", ["reason", "by", "call"])
async def test_text_that_isnt_unicode_is_refused(client: Client, field: str, text: bytes) -> None:
    script = Script({"refund": {"n": 1}}, "done")
    async with working(client, shop(script, [])) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        before = b"" if field == "call" else b'"call": "%s", ' % row["call"].encode()
        data = b'{%s"%s": "%s"}' % (before, field.encode(), text)
        body = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))
        assert "InvalidRequest" in await refused(handle, "deny", body)
        await handle.signal("deny", body)
        assert (await handle.query("status"))["rejected_count"] == 1
        await update(handle, "deny", {"call": row["call"]})
        await handle.result()


async def test_a_refusal_quotes_the_names_of_unknown_fields(client: Client) -> None:
    async with working(client, shop(Script({"refund": {"n": 1}}, "done"), []), check=False) as runs:
        handle = await runs.start("shop", "go")
        await pending(handle, 1)
        assert not OBEYED.search(await refused(handle, "approve", {"call": "1.1", NASTY: 1}))


async def shown_by_the_command_line(client: Client) -> dict[str, str]:
    """What `inbox` and `show` print of a run with two calls, before and after they are decided."""
    address = client.service_client.config.target_host
    script = Script([ToolCallPart("refund", {"n": 1, "note": NASTY}), ToolCallPart("delete", {"n": 2})], "done")
    async with working(client, shop(script, [])) as runs:
        handle = await runs.start("shop", NASTY)
        one, two = (row["call"] for row in await pending(handle, 2))
        commands = {"inbox": ["inbox"], "inbox --json": ["inbox", "--json"]}
        done = await asyncio.gather(*(perdure(*args, address=address) for args in commands.values()))
        await update(handle, "deny", {"call": two, "by": NASTY, "reason": NASTY})
        await update(handle, "approve", {"call": one, "by": NASTY, "reason": NASTY})
        await handle.result()
        more = {"show": ["show", handle.id], "show --json": ["show", handle.id, "--json"]}
        done += await asyncio.gather(*(perdure(*args, address=address) for args in more.values()))
    assert [one.code for one in done] == [0] * 4, done
    return {name: one.out for name, one in zip((*commands, *more), done, strict=True)}


async def test_the_command_line_prints_nothing_that_a_terminal_obeys(client: Client) -> None:
    printed = await shown_by_the_command_line(client)
    for name, text in printed.items():
        assert "onerror=alert(1)" in text, name
        assert not OBEYED.search(text), name
    (row, _) = [row for row in json.loads(printed["inbox --json"]) if row["kind"] == "approval"]
    assert row["args"] == {"n": 1, "note": NASTY}
    for name in ("inbox", "inbox --json", "show --json"):
        assert not TURNS_TEXT.search(printed[name]), name


def test_show_prints_nothing_that_turns_text_around() -> None:
    assert not TURNS_TEXT.search(printable(NASTY))


def test_an_error_line_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), one_line_errors():
        raise Refused("NotAllowed", f"no such note {NASTY}")
    assert not OBEYED.search(capsys.readouterr().err)
