"""While something waits in a run below: clocks, chats, and what others send."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from temporalio.client import Client

from perdure import Limits
from perdure.activities.note import cover, note
from perdure.activities.transcript import Conversation
from perdure.contracts import Json
from tests.command import running
from tests.deciding import pending, update
from tests.family import children, firm
from tests.harness import check_run, until, working
from tests.scripts import Script


async def test_waiting_below_need_not_count(client: Client) -> None:
    limits = Limits(deadline=timedelta(seconds=20))
    boss, clerk = Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded")
    app = firm(boss, clerk, [], limits=limits, deadline_counts_waiting=False)
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        (child,) = await children(client, handle)
        assert (await child.query("status"))["limits"]["deadline"] is None
        passed = datetime.fromisoformat(row["asked_at"]) + timedelta(seconds=21)
        await until(lambda: datetime.now(UTC) > passed)
        await update(child, "approve", {"call": row["call"], "by": "ann"})
        assert (await handle.result())["output"] == "done"


def forgeries(child: str, call: str) -> list[Json]:
    """Reports of an open call that no run below would send."""
    row: Json = {"call": "1.1-x", "kind": "approval", "tool": "refund", "workflow_id": child}
    rows: list[list[Json]] = [
        [{}],
        [row | {"kind": "x" * 5_000}],
        [row | {"approvers": 5}],
        [row | {"tool": "x" * 1_900_000}],
        [row | {"workflow_id": "somebody-elses"}],
        [row] * 21,
        [row | {"metadata": {"x": "x" * 300_000}}],
    ]
    usages: list[Json] = [{"requests": -100_000}, {"cost": "-5"}, {"more": {"x": "inf"}}]
    return [{"call": call, "pending": one} for one in rows] + [{"call": call, "usage": one} for one in usages]


async def test_what_others_send_as_a_report_changes_nothing(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded"), [])
    async with working(client, app) as runs:
        handle = await runs.start("boss", "go")
        (row,) = await pending(handle, 1)
        (child,) = await children(client, handle)
        await handle.signal("report", {"pending": 3})
        await handle.signal("report", {"call": "9.9-none", "pending": []})
        await handle.signal("report")
        forged = forgeries(child.id, f"{child.id.removeprefix(f'{handle.id}/').rpartition('-')[0]}")
        for report in forged:
            await handle.signal("report", report)
        assert [one["call"] for one in await pending(handle, 1)] == [row["call"]]
        assert (await handle.query("status"))["rejected_count"] == 2 + len(forged)
        await update(child, "deny", {"call": row["call"], "by": "ann"})
        await handle.result()
        await check_run(child)


async def test_a_chat_names_the_run_in_which_it_is_decided(client: Client) -> None:
    app = firm(Script({"ask_clerk": {"prompt": "x"}}, "done"), Script({"refund": {"n": 1}}, "refunded"), [])
    address = client.service_client.config.target_host
    async with working(client, app) as runs:
        options = ("--id", f"chat-{runs.task_queue}", "--task-queue", runs.task_queue)
        async with running("chat", "boss", *options, address=address, stdin=asyncio.subprocess.PIPE) as command:
            assert command.process.stdin
            command.process.stdin.write(b"refund\n/close\n")
            command.process.stdin.close()
            waits = await command.line("refund waits")
            handle = client.get_workflow_handle(options[1])
            (row,) = await pending(handle, 1)
            (child,) = await children(client, handle)
            assert waits == f"waiting   refund waits: perdure approve {child.id} {row['call']} --by NAME"
            await update(child, "approve", {"call": row["call"], "by": "ann"})
            assert (await command.end()).out == "done\n"


def entries(handed_at: int) -> list[Json]:
    """A conversation that another agent has taken over before its entry of that number."""
    said: list[Json] = [{"kind": "start", "agent": "a", "params": {"n": 1}, "at": "2026-01-01T00:00:00Z"}]
    for number in range(4):
        said.append({"kind": "user", "content": f"question {number}", "at": "2026-01-01T00:00:00Z"})
        parts = [{"part_kind": "text", "content": f"answer {number}"}]
        response = {"kind": "response", "parts": parts, "model_name": "m", "timestamp": "2026-01-01T00:00:00Z"}
        said.append({"kind": "response", "response": response, "established": [f"tool_{number}"]})
    over: Json = {"kind": "handoff", "agent": "b", "from": "a", "params": {"n": 2}, "at": "2026-01-01T00:00:00Z"}
    return [*said[:handed_at], over, *said[handed_at:]]


def test_a_conversation_that_was_handed_over_is_the_same_without_what_a_note_stands_for() -> None:
    for handed_at in (3, 5, 9):
        rows = entries(handed_at)
        whole = Conversation().extended(rows)
        covered = cover(whole, 300)
        assert covered is not None
        made = {**note(whole, covered, "summary", "m"), "at": "2026-01-01T00:00:00Z", "step": 4}
        full = Conversation().extended([*rows, made])
        base = Conversation().extended(rows[: covered.upto]).mark
        kept = Conversation(mark=base).extended([*rows[covered.upto :], made])
        assert full.start == kept.start
        assert full.start["params"] == {"n": 2}
        assert full.start["handoff"]
        assert (full.messages, full.established, full.mark) == (kept.messages, kept.established, kept.mark)
