"""Tokens that are bad, forged, copied or long-lived, and keys that the shipped verifier takes or refuses."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from perdure import Approval, DeclarationError, NotAllowed, Principal, TokenUse
from perdure.contracts import Json, args_digest
from perdure.converter import data_converter
from perdure.tokens import SignedTokens, make_token, new_key
from perdure.workflows.tokens import check_token
from tests.codecs import Reversed
from tests.deciding import Row, cancelled, pending, refused, update
from tests.harness import Handle, working
from tests.reading import events, everything
from tests.scripts import Script
from tests.shop import shop
from tests.tokens import FINANCE, KEYS, NOON, PUBLIC, claims, signed, token


def bad_tokens(handle: Handle, row: Row) -> list[str]:
    """Tokens that may not even be recorded."""
    later = int(datetime.now(UTC).timestamp()) + 3600
    return [
        signed("ann", handle, row, iat=1, exp=61),
        signed("ann", handle, row, exp=later),
        signed("ann", handle, row, exp=None),
        signed("ann", handle, row, aud=[handle.id, "other"]),
        token("ann", handle, row, workflow_id="other"),
        token("ann", handle, row, call="9.9-00000000"),
        token("ann", handle, row, "deny"),
        token("ann", handle, row, digest=args_digest({"n": 999})),
        "let me in",
        "a.b.c",
    ]


async def test_bad_tokens_are_refused_before_anything_is_recorded(client: Client) -> None:
    ran: list[Any] = []
    app = shop(Script({"refund": {"n": 1}}, "done"), ran, FINANCE, verifier=SignedTokens(PUBLIC))
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for bad in bad_tokens(handle, row):
            text = await refused(handle, "approve", {"call": row["call"], "token": bad})
            assert text.startswith("NotAllowed: the token"), text
        assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in await events(handle)
        await update(handle, "approve", {"call": row["call"], "token": token("ann", handle, row)})
        await handle.result()
    assert ran == [("refund", 1)]


def forged(handle: Handle, row: Row) -> dict[str, str]:
    """Tokens with the right claims, not signed by who they say."""
    fields: Json = {"workflow_id": handle.id, "call": row["call"], "decision": "approve", "digest": row["digest"]}
    good = token("ann", handle, row)
    head, body, _ = good.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"ann"}').decode().rstrip("=")
    symmetric = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"ann"}').decode().rstrip("=")
    public = base64.urlsafe_b64decode(KEYS["ann"][1]["x"] + "=")
    mac = hmac.new(public, f"{symmetric}.{body}".encode(), hashlib.sha256).digest()
    return {
        "another key": make_token(new_key("ann")[0], **fields),
        "unknown person": make_token(new_key("mallory")[0], **fields),
        "no signature": f"{none}.{body}.",
        "a cut signature": f"{head}.{body}.AAAA",
        "the public key as a secret": f"{symmetric}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}",
        "somebody else's name": signed("eve", handle, row, sub="ann"),
    }


async def test_forged_tokens_are_refused_by_the_worker(client: Client) -> None:
    ran: list[Any] = []
    app = shop(Script({"refund": {"n": 1}}, "done"), ran, FINANCE, verifier=SignedTokens(PUBLIC))
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        for name, made in forged(handle, row).items():
            text = await refused(handle, "approve", {"call": row["call"], "token": made})
            assert "isn't verified" in text, name
        assert not ran
        await update(handle, "approve", {"call": row["call"], "token": token("bob", handle, row)})
        await handle.result()
    assert ran == [("refund", 1)]


async def test_a_copied_token_only_repeats_its_decision(client: Client) -> None:
    """Whoever reads history can send a token again: it is the same vote of the same person, once."""
    ran: list[Any] = []
    approval = Approval(quorum=2)
    app = shop(Script({"refund": {"n": 1}}, {"refund": {"n": 1}}, "done"), ran, approval, verifier=SignedTokens(PUBLIC))
    async with working(client, app) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        copy = {"call": row["call"], "token": token("ann", handle, row)}
        for _ in range(3):
            assert (await update(handle, "approve", copy))["needed"] == 1
        assert "decision differ" in await refused(handle, "deny", copy)
        await update(handle, "approve", {"call": row["call"], "token": token("bob", handle, row)})
        (later,) = await pending(handle, 1)
        assert later["call"] != row["call"]
        assert "already decided" in await refused(handle, "approve", copy)
        assert "call differ" in await refused(handle, "approve", copy | {"call": later["call"]})
        await cancelled(handle)
    assert ran == [("refund", 1)]


@pytest.mark.parametrize("encrypted", [True, False])
async def test_a_long_lived_token_needs_a_codec(client: Client, encrypted: bool) -> None:
    ran: list[Any] = []

    async def session(token: str, use: TokenUse) -> Principal:
        if token != "session-of-ann":
            raise NotAllowed("no such session")
        return Principal(name="ann")

    config = client.config()
    config["data_converter"] = replace(data_converter(), payload_codec=Reversed() if encrypted else None)
    mine = Client(**config)
    app = shop(Script({"refund": {"n": 1}}, "done"), ran, verifier=session)
    async with working(mine, app, check=False) as runs:
        handle = await runs.start("shop", "go")
        (row,) = await pending(handle, 1)
        sent = {"call": row["call"], "token": "session-of-ann"}
        if encrypted:
            assert "no such session" in await refused(handle, "approve", sent | {"token": "x"})
            assert (await update(handle, "approve", sent))["outcome"] == "approved"
            await handle.result()
        else:
            assert "written to history in clear" in await refused(handle, "approve", sent)
            assert "session-of-ann" not in await everything(handle)
            await handle.terminate()
    assert ran == ([("refund", 1)] if encrypted else [])


def test_keys_that_cannot_be_used_are_refused_when_the_app_is_built() -> None:
    private, public = new_key("ann")
    bad: list[Json] = [{}, {"keys": []}, {"keys": [{**public, "kid": ""}]}, {"keys": [public, public]}]
    for keys in bad:
        with pytest.raises(DeclarationError, match="approver keys"):
            SignedTokens(keys)
    with pytest.raises(DeclarationError, match="groups of 'ann'"):
        SignedTokens({"keys": [public | {"groups": "finance"}]})
    with pytest.raises(DeclarationError, match="isn't a JWK") as raised:
        SignedTokens({"keys": [{"kid": "ann", "kty": "OKP", "crv": "Ed25519", "x": "?", "d": private["d"]}]})
    assert private["d"] not in str(raised.value)


def use(**changed: Any) -> TokenUse:
    """What `claims` are made for."""
    fields: Json = {"workflow_id": "w", "call": "1.1-x", "decision": "approve", "digest": "d"}
    return TokenUse.model_validate(fields | {"at": "2026-11-30T12:00:00+00:00"} | changed)


WRONG: list[tuple[Json, str]] = [
    ({"aud": "other"}, "aud differ"),
    ({"aud": ["w", "other"]}, "aud differ"),
    ({"call": "1.2-x"}, "call differ"),
    ({"decision": "deny"}, "decision differ"),
    ({"digest": "e"}, "digest differ"),
    ({"sub": "bob"}, "sub differ"),
    ({"exp": None}, "can't be verified"),
    ({"iat": NOON - 100, "exp": NOON - 31}, "expired 31 s ago"),
    ({"exp": NOON + 301}, "valid for 301 s"),
    ({"iat": NOON + 31, "exp": NOON + 60}, "from the future"),
    ({"nbf": NOON + 31}, "from the future"),
    ({"exp": float("nan")}, "aren't numbers"),
    ({"iat": float("nan")}, "aren't numbers"),
    ({"exp": True}, "aren't numbers"),
]


async def test_the_shipped_verifier_takes_what_is_made_for_this_decision() -> None:
    """Against workflow time: today's clock has nothing to do with it."""
    assert await SignedTokens(PUBLIC)(claims(), use()) == Principal(name="ann", groups=["finance"])


@pytest.mark.parametrize(("changed", "why"), WRONG, ids=lambda value: str(value)[:40])
async def test_the_shipped_verifier_refuses_everything_else(changed: Json, why: str) -> None:
    with pytest.raises(NotAllowed, match=why):
        await SignedTokens(PUBLIC)(claims(**changed), use())


def test_a_token_in_clear_has_a_time() -> None:
    for exp in (float("nan"), True, None, "1"):
        with pytest.raises(NotAllowed, match="no expiry"):
            check_token(claims(exp=exp), use())


@pytest.mark.parametrize("secret", [True, False])
def test_workers_take_public_keys_and_long_secrets(secret: bool) -> None:
    short = {"kty": "oct", "kid": "ann", "alg": "HS256", "k": base64.urlsafe_b64encode(b"k" * 31).decode()}
    with pytest.raises(DeclarationError, match="too short" if secret else "is a private one"):
        SignedTokens({"keys": [short if secret else KEYS["ann"][0]]})
