"""Tokens of people, and the keys that they are signed with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jwt

from perdure import Approval
from perdure.contracts import Json, VerbName
from perdure.tokens import make_token, new_key
from tests.deciding import Row
from tests.harness import Handle

KEYS: dict[str, tuple[Json, Json]] = {name: new_key(name) for name in ("ann", "bob", "eve")}
KEYS["ann"][1]["groups"] = ["finance"]
PUBLIC = {"keys": [public for _, public in KEYS.values()]}
FINANCE = Approval(approvers=["group:finance", "bob"])


def token(name: str, handle: Handle, row: Row, decision: VerbName = "approve", **changed: Any) -> str:
    """A token of a person for what waits; `changed` are other fields."""
    fields: Json = {"workflow_id": handle.id, "call": row["call"], "decision": decision, "digest": row["digest"]}
    return make_token(KEYS[name][0], **(fields | changed))


def signed(name: str, handle: Handle, row: Row, **changed: Any) -> str:
    """A token with claims as they may not be, but rightly signed."""
    key = jwt.PyJWK(KEYS[name][0])
    now = int(datetime.now(UTC).timestamp())
    claims: Json = {"sub": name, "aud": handle.id, "call": row["call"], "decision": "approve", "digest": row["digest"]}
    claims |= {"iat": now, "exp": now + 60} | changed
    return jwt.encode(claims, key.key, algorithm="EdDSA", headers={"kid": name})


NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def claims(**changed: Any) -> str:
    """A rightly signed token for `use()`, with other claims."""
    key = jwt.PyJWK(KEYS["ann"][0])
    fields: Json = {"sub": "ann", "aud": "w", "call": "1.1-x", "decision": "approve", "digest": "d"}
    fields |= {"iat": NOON, "exp": NOON + 60} | changed
    given = {name: value for name, value in fields.items() if value is not None}
    return jwt.encode(given, key.key, "EdDSA", {"kid": "ann"})
