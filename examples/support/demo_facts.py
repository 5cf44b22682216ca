"""What is on record in the end: the audit of a run, and the shop's database, which has to agree with it."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from .rules import money

Row = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """What the shop's database holds."""

    refunds: tuple[tuple[str, int], ...] = ()
    """Order and cents, in the order they were paid."""
    notes: tuple[tuple[str, str], ...] = ()
    """Order and text."""

    def since(self, before: "Facts") -> "Facts":
        """What came after `before`."""
        return Facts(self.refunds[len(before.refunds) :], self.notes[len(before.notes) :])

    def lines(self) -> Iterator[str]:
        """One for each row."""
        yield from (f"refund of {money(cents)} for order {order_id}" for order_id, cents in self.refunds)
        yield from (f"note on order {order_id}: {text}" for order_id, text in self.notes)


def facts(database: Path) -> Facts:
    """Read the shop's database; nothing while a worker hasn't made it."""
    if not database.exists():
        return Facts()
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('refunds', 'notes')").fetchone()
        if tables[0] < 2:
            return Facts()
        refunds = connection.execute("SELECT order_id, cents FROM refunds ORDER BY id").fetchall()
        notes = connection.execute("SELECT order_id, text FROM notes ORDER BY id").fetchall()
    return Facts(tuple(refunds), tuple(notes))


def audit_lines(audit: Sequence[Row]) -> Iterator[str]:
    """When, what, who and how it came: a line for each thing that happened."""
    for row in audit:
        yield f"{clock(row['at'])}  {row['event']:<9} {row.get('tool', 'refund')} {row['call']}{what(row)}"


def what(row: Row) -> str:
    """What a row of the audit says beside its event."""
    match row["event"]:
        case "asked":
            return f" {json.dumps(row['args'])}, {may_decide(row.get('approvers', []))}"
        case "ran":
            return f" and {row['outcome']}"
        case _:
            return who(row)


def who(row: Row) -> str:
    """Who decided, how it came and why; of an edit both versions."""
    edit = f", {json.dumps(row['args'])} instead of {json.dumps(row['original_args'])}" if "args" in row else ""
    name = row.get("by") or row.get("claimed_by")
    by = f" by {name}" if name else ""
    claimed = " (a claim)" if by and not row.get("verified") else ""
    via = f" via {row['via']}" if row.get("via") else ""
    return f"{by}{claimed}{via}{edit}" + (f": {row['reason']}" if row.get("reason") else "")


def may_decide(approvers: Sequence[str]) -> str:
    """Who may, by the policy."""
    return f"{', '.join(approvers) or 'anybody'} may decide"


def clock(at: str) -> str:
    """A time of the workflow, on the clock of the person who reads."""
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"


def moment(at: str) -> str:
    """A time of the workflow, in the zone of the person who reads."""
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M %Z}"


def decided_to_pay(audit: Sequence[Row]) -> list[tuple[str, int]]:
    """What has to be paid by the decisions: what was approved as it was approved, and nothing else."""
    shown = {row["call"]: row["args"] for row in audit if row["event"] == "asked"}
    shown |= {row["new_call"]: row["args"] for row in audit if row["event"] == "edited"}
    approved = [shown[row["call"]] for row in audit if row["event"] == "approved"]
    return [(args["order_id"], args["cents"]) for args in approved]


def disagreement(audit: Sequence[Row], found: Facts) -> str:
    """Where the database isn't what the decisions say; empty where it is. Each order paid back has one note."""
    decided = decided_to_pay(audit)
    if Counter(decided) != Counter(found.refunds):
        return f"approved were {decided}, paid were {list(found.refunds)}"
    orders = Counter(order_id for order_id, _ in found.refunds)
    notes = Counter(order_id for order_id, _ in found.notes if order_id in orders)
    return "" if orders == notes else f"paid were {dict(orders)}, noted were {dict(notes)}"
