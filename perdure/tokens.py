"""Signed tokens: a verifier for `App(verifier=…)`, and what makes the tokens that it takes. Needs the extra `tokens`.

A token is a JWT (RFC 7519) that is good for one decision: its audience is the workflow id, its claims hold the key of
the call, the digest of the arguments and the decision, and it ends within five minutes. A copy of it, read from
history, can only repeat what was decided. Each person signs with a key of their own; the worker has the public ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from perdure.contracts import MAX_TOKEN_LIFE, TOKEN_LEEWAY, Decision, Json, Principal, TokenUse, is_time
from perdure.errors import DeclarationError, NotAllowed

try:
    import jwt
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("perdure.tokens needs PyJWT: pip install 'perdure[tokens]'", name="jwt") from error

KEYS_VARIABLE = "PERDURE_APPROVER_KEYS"
"""Names the file with the keys that workers verify with: a JWK Set."""
KEY_VARIABLE = "PERDURE_KEY"
"""Names the file with a person's own, private key: a JWK."""
MIN_SECRET = 32
"""Bytes of an HMAC key (RFC 7518, section 3.2)."""
LIFE = 120
"""Seconds a token is made for."""
ALGORITHMS = ("EdDSA", "ES256", "ES384", "RS256", "PS256", "HS256")


class SignedTokens:
    """A verifier for `App(verifier=…)`; runs on workers, reads no network and no clock but the workflow's.

    Args:
        keys: a JWK Set (RFC 7517). Of each key `kid` is the person's name, and `groups`, a list, theirs. What a token
            itself says of groups counts for nothing.

    Raises:
        DeclarationError: for a key that can't be used, or has no name.
    """

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self._keys: dict[str, jwt.PyJWK] = {}
        self._groups: dict[str, list[str]] = {}
        rows = keys.get("keys")
        if not isinstance(rows, list) or not rows:
            raise DeclarationError('approver keys must be a JWK Set, {"keys": […]}, with at least one key')
        for row in cast("list[Json]", rows):
            self._add(row)

    @classmethod
    def from_environment(cls) -> SignedTokens:
        """With the JWK Set in the file that `PERDURE_APPROVER_KEYS` names."""
        return cls(read_json(KEYS_VARIABLE))

    def _add(self, row: Json) -> None:
        name, groups = row.get("kid"), row.get("groups", [])
        if not name or not isinstance(name, str) or name in self._keys:
            raise DeclarationError(f"approver keys: {name!r} as 'kid': each key needs the name of one person")
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in cast("list[Any]", groups)):
            raise DeclarationError(f"approver keys: the groups of {name!r} must be a list of names")
        self._keys[name] = _public(row, name)
        self._groups[name] = groups

    async def __call__(self, token: str, use: TokenUse) -> Principal:
        """Whose token it is. Raises `NotAllowed` for one that is forged, expired, or made for something else."""
        name = self._signer(token)
        key = self._keys[name]
        wanted = {"aud": use.workflow_id, "sub": name, "call": use.call, "decision": use.decision, "digest": use.digest}
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                options={
                    "verify_exp": False,  # both against workflow time, below
                    "verify_iat": False,
                    "verify_nbf": False,
                    "verify_aud": False,  # compared whole, below: one audience, not one of several
                    "require": ["exp", "iat", *wanted],
                },
            )
        except jwt.PyJWTError as error:
            raise NotAllowed(f"the token can't be verified: {error}") from None
        if wrong := [claim for claim, value in wanted.items() if claims[claim] != value]:
            raise NotAllowed(f"the token of {name!r} is for something else: {', '.join(wrong)} differ")
        _check_time(claims, datetime.fromisoformat(use.at).timestamp())
        return Principal(name=name, groups=self._groups[name])

    def _signer(self, token: str) -> str:
        try:
            name = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError as error:
            raise NotAllowed(f"the token can't be read: {error}") from None
        if name not in self._keys:
            raise NotAllowed(f"no approver has the key {name!r}")
        return cast("str", name)


def _public(row: Json, name: str) -> jwt.PyJWK:
    key = read_key(row)
    if row.get("kty") != "oct" and "d" in row:
        raise DeclarationError(
            f"approver keys: the key of {name!r} is a private one; workers need the public part only"
        )
    if isinstance(key.key, bytes) and len(key.key) < MIN_SECRET:
        raise DeclarationError(f"approver keys: the secret of {name!r} is too short; {MIN_SECRET} bytes are needed")
    return key


def _check_time(claims: Json, now: float) -> None:
    made, ends, begins = claims["iat"], claims["exp"], claims.get("nbf", claims["iat"])
    if not all(is_time(value) for value in (made, ends, begins)):
        raise NotAllowed("the token's times aren't numbers")
    made = max(made, begins)
    if ends - made > MAX_TOKEN_LIFE:
        raise NotAllowed(f"the token is valid for {ends - made:.0f} s; {MAX_TOKEN_LIFE} are allowed")
    if made > now + TOKEN_LEEWAY:
        raise NotAllowed(f"the token is from the future, by {made - now:.0f} s")
    if ends < now - TOKEN_LEEWAY:
        raise NotAllowed(f"the token expired {now - ends:.0f} s ago, by workflow time")


def make_token(key: Json, *, workflow_id: str, call: str, decision: Decision, digest: str, life: int = LIFE) -> str:
    """A token for one decision, signed with a person's private JWK. `digest` is that of `pending`, or `args_digest` of
    edited arguments; of `complete`, of `{"result": …}` or `{"error": …}`. `life` in seconds, at most 300."""
    name, signing = key.get("kid"), read_key(key)
    if not name:
        raise DeclarationError("the key has no 'kid', the name of the person whose it is")
    now = int(datetime.now(UTC).timestamp())
    claims = {"sub": name, "aud": workflow_id, "call": call, "decision": decision, "digest": digest}
    claims |= {"iat": now, "exp": now + min(life, MAX_TOKEN_LIFE)}
    return jwt.encode(claims, signing.key, algorithm=signing.algorithm_name, headers={"kid": name})


def new_key(name: str) -> tuple[Json, Json]:
    """A new Ed25519 key of a person, as a private and a public JWK."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from jwt.algorithms import OKPAlgorithm

    made = OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate(), as_dict=True)
    private: Json = {"kid": name, "alg": "EdDSA", **made}
    return private, {field: value for field, value in private.items() if field not in ("d", "key_ops")}


def read_key(row: Json) -> jwt.PyJWK:
    """A JWK as PyJWT uses it. Raises `DeclarationError`, without the key's text."""
    try:
        key = jwt.PyJWK(row)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise DeclarationError(f"the key {row.get('kid')!r} isn't a JWK: {type(error).__name__}") from None
    if key.algorithm_name not in ALGORITHMS:
        raise DeclarationError(f"the key {row.get('kid')!r} is for {key.algorithm_name!r}; known are {ALGORITHMS}")
    return key


def read_json(variable: str) -> Json:
    """The JSON object in the file that an environment variable names. Raises `DeclarationError`, naming it."""
    path = os.environ.get(variable)
    if not path:
        raise DeclarationError(f"{variable} isn't set: it names the file with the keys")
    try:
        found: Any = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{variable}={path!r} can't be read: {error}") from None
    if not isinstance(found, dict):
        raise DeclarationError(f"{variable}={path!r} isn't a JSON object")
    return cast("Json", found)
