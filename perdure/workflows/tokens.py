"""What a token may be that is written to history in clear: only one that can do no more than repeat its decision.

Read here without its signature, to refuse before anything is recorded; the activity `verify` checks the signature.
Claims as in RFC 7519, section 4.1, and ours: `call`, `decision`, `digest`.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any, cast

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from perdure.contracts import MAX_TOKEN_LIFE, TOKEN_LEEWAY, TokenUse, is_time
    from perdure.errors import NotAllowed

IN_CLEAR = (
    "it would be written to history in clear. Send one that `perdure token` makes for this decision, or give workers "
    "and clients a data converter with an encryption codec"
)


def check_token(token: str, use: TokenUse) -> None:
    """Raise `NotAllowed` unless the token is a JWT for this one decision that ends within five minutes."""
    claims = _claims(token)
    wanted = {"aud": use.workflow_id, "call": use.call, "decision": use.decision, "digest": use.digest}
    wrong = [name for name, value in wanted.items() if claims.get(name) != value]
    if wrong:
        raise NotAllowed(f"the token isn't made for this decision: {', '.join(wrong)} differ; {IN_CLEAR}")
    ends: Any = claims.get("exp")
    if not is_time(ends):
        raise NotAllowed(f"the token has no expiry ('exp'); {IN_CLEAR}")
    left = ends - datetime.fromisoformat(use.at).timestamp()
    if left > MAX_TOKEN_LIFE + TOKEN_LEEWAY:
        raise NotAllowed(f"the token is valid for {left:.0f} s more, {MAX_TOKEN_LIFE} are allowed; {IN_CLEAR}")
    if left < -TOKEN_LEEWAY:
        raise NotAllowed(f"the token expired {-left:.0f} s ago: make a new one with `perdure token`")


def _claims(token: str) -> dict[str, Any]:
    try:
        _, body, _ = token.split(".")
        claims: Any = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise NotAllowed(f"the token isn't a JWT; {IN_CLEAR}")
    return cast("dict[str, Any]", claims)
