"""The shop's records: customers, orders, notes and refunds in one SQLite file.

Safe with several processes: write-ahead log, a busy timeout, each call one transaction on a connection of its own.
"""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from .seed import CUSTOMERS, ORDERS, UNPAID

BUSY_SECONDS = 10.0
"""How long a call waits for another process's write."""
SEARCH_LIMIT = 20

SCHEMA = """
CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, status TEXT NOT NULL,
    placed_on TEXT NOT NULL, paid_cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, name TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, text TEXT NOT NULL, created_at TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS refunds (
    id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, cents INTEGER NOT NULL, created_at TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE);
"""


class OrderNotFound(LookupError):
    """No order has this id."""


class RefundRefused(ValueError):
    """The refund would be more than what is left of the payment, or its key belongs to another refund."""


class Item(BaseModel):
    name: str
    cents: int


class Order(BaseModel):
    id: str
    customer: str
    email: str
    status: str
    placed_on: date
    items: list[Item]
    paid_cents: int
    refunded_cents: int
    notes: list[str]


class Refund(BaseModel):
    id: str
    order_id: str
    cents: int


@dataclass(frozen=True)
class Store:
    """The database at `path`. Use `Store.open` to have it created and seeded first."""

    path: Path

    @classmethod
    def open(cls, path: Path | None = None) -> "Store":
        """The store at `path`, else at `PERDURE_SUPPORT_DB`, else `support.db` here; created on first use."""
        store = cls(path or Path(os.environ.get("PERDURE_SUPPORT_DB", "support.db")))
        _use_write_ahead_log(store.path)
        with store._transaction("IMMEDIATE") as db:
            _create(db)
        return store

    def find_order(self, order_id: str) -> Order:
        """Raises `OrderNotFound`."""
        with self._transaction("DEFERRED") as db:
            return _load_order(db, order_id)

    def search_orders(self, query: str) -> list[Order]:
        """Orders whose customer name, e-mail address or an item contains `query`; newest first, at most 20."""
        with self._transaction("DEFERRED") as db:
            rows = db.execute(
                "SELECT DISTINCT orders.id FROM orders"
                " JOIN customers ON customers.id = customer_id JOIN items ON items.order_id = orders.id"
                " WHERE instr(lower(customers.name || char(10) || email || char(10) || items.name), lower(?))"
                " ORDER BY placed_on DESC, orders.id DESC LIMIT ?",
                (query, SEARCH_LIMIT),
            ).fetchall()
            return [_load_order(db, row["id"]) for row in rows]

    def add_note(self, order_id: str, text: str, key: str) -> None:
        """Repeating a key changes nothing. Raises `OrderNotFound`."""
        with self._transaction("IMMEDIATE") as db:
            _load_order(db, order_id)
            db.execute(
                "INSERT INTO notes (order_id, text, created_at, key) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                (order_id, text, _now(), key),
            )

    def check_refund(self, order_id: str, cents: int) -> None:
        """Whether `cents` could be paid back now. Raises `OrderNotFound`, `RefundRefused`."""
        _check_left(self.find_order(order_id), cents)

    def refund(self, order_id: str, cents: int, key: str) -> Refund:
        """Pay `cents` back, once per key: a repeat returns the first one. Raises `OrderNotFound`, `RefundRefused`."""
        with self._transaction("IMMEDIATE") as db:
            if first := db.execute("SELECT id, order_id, cents FROM refunds WHERE key = ?", (key,)).fetchone():
                return _repeated(_refund(first["id"], first["order_id"], first["cents"]), order_id, cents)
            _check_left(_load_order(db, order_id), cents)
            cursor = db.execute(
                "INSERT INTO refunds (order_id, cents, created_at, key) VALUES (?, ?, ?, ?)",
                (order_id, cents, _now(), key),
            )
            return _refund(cursor.lastrowid, order_id, cents)

    @contextmanager
    def _transaction(self, mode: Literal["DEFERRED", "IMMEDIATE"]) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(f"BEGIN {mode}")
            with db:  # commits, or rolls back on an exception
                yield db


def _use_write_ahead_log(path: Path) -> None:
    """Set for good in the file. SQLite refuses at once while another process does the same, whatever the timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as db:
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)


def _create(db: sqlite3.Connection) -> None:
    # Not `executescript`: it commits first, and another process would see tables without rows.
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    if db.execute("SELECT count(*) FROM customers").fetchone()[0]:
        return
    db.executemany("INSERT INTO customers (id, name, email) VALUES (?, ?, ?)", CUSTOMERS)
    for order in ORDERS:
        paid = 0 if order.status in UNPAID else sum(cents for _, cents in order.items)
        db.execute(
            "INSERT INTO orders (id, customer_id, status, placed_on, paid_cents) VALUES (?, ?, ?, ?, ?)",
            (order.id, order.customer_id, order.status, order.placed_on, paid),
        )
        items = [(order.id, name, cents) for name, cents in order.items]
        db.executemany("INSERT INTO items (order_id, name, cents) VALUES (?, ?, ?)", items)


def _load_order(db: sqlite3.Connection, order_id: str) -> Order:
    row = db.execute(
        "SELECT orders.id, name AS customer, email, status, placed_on, paid_cents,"
        " (SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_id = orders.id) AS refunded_cents"
        " FROM orders JOIN customers ON customers.id = customer_id WHERE orders.id = ?",
        (order_id,),
    ).fetchone()
    if row is None:
        raise OrderNotFound(f"No order has the id {order_id!r}")
    items = db.execute("SELECT name, cents FROM items WHERE order_id = ? ORDER BY id", (order_id,)).fetchall()
    notes = db.execute("SELECT text FROM notes WHERE order_id = ? ORDER BY id", (order_id,)).fetchall()
    return Order(**dict(row), items=[Item(**dict(item)) for item in items], notes=[note["text"] for note in notes])


def _check_left(order: Order, cents: int) -> None:
    left = order.paid_cents - order.refunded_cents
    if not 0 < cents <= left:
        raise RefundRefused(f"{cents} cents can't be refunded: {left} of order {order.id} are left to refund")


def _refund(row_id: int | None, order_id: str, cents: int) -> Refund:
    return Refund(id=f"R-{row_id}", order_id=order_id, cents=cents)


def _repeated(first: Refund, order_id: str, cents: int) -> Refund:
    if (first.order_id, first.cents) != (order_id, cents):
        raise RefundRefused(f"The key of refund {first.id} was used for {first.cents} cents of order {first.order_id}")
    return first


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
