"""A notifier that posts each notification to a web address, signed as Standard Webhooks 1.0 says."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime

import httpx2
from pydantic_core import to_json
from temporalio.exceptions import ApplicationError

from perdure.contracts import Notification
from perdure.errors import DeclarationError

TIMEOUT = 10.0
"""Seconds for one attempt. Temporal repeats it for ten minutes."""
FINAL = (400, 401, 403, 404, 405, 410, 413, 415, 422)
"""Answers that another attempt wouldn't change."""
MIN_SECRET = 24
"""Bytes, by the specification."""


class Webhook:
    """For `App(notifier=Webhook(url, secret))`; called on workers.

    Each notification is one POST of its JSON, with the headers `webhook-id` (the same for every attempt),
    `webhook-timestamp` and `webhook-signature`: HMAC-SHA256 over `id.timestamp.body`, so that any library of Standard
    Webhooks can check it. An answer of 2xx is success; no redirect is followed.

    Args:
        url: where to post to.
        secret: shared with the receiver: `whsec_` and 24 to 64 bytes as base64.

    Raises:
        DeclarationError: for a URL or secret that can't be used.
    """

    def __init__(self, url: str, secret: str) -> None:
        if not url.startswith(("https://", "http://")):
            raise DeclarationError(f"url={url!r} isn't an http or https address")
        self._url = url
        try:
            self._secret = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise DeclarationError("secret=… isn't base64, after whsec_") from None
        if len(self._secret) < MIN_SECRET:
            raise DeclarationError(f"secret=… has {len(self._secret)} bytes; at least {MIN_SECRET} are needed")

    async def __call__(self, notification: Notification) -> None:
        """Post it. Raises where Temporal should repeat it, and a non-retryable error where that is of no use."""
        body = to_json(notification)
        now = str(int(datetime.now(UTC).timestamp()))
        headers = {
            "content-type": "application/json",
            "webhook-id": notification.id,
            "webhook-timestamp": now,
            "webhook-signature": f"v1,{self.signature(notification.id, now, body)}",
        }
        async with httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client:
            answer = await client.post(self._url, content=body, headers=headers)
        if not answer.is_success:
            raise ApplicationError(
                f"the webhook answered {answer.status_code}",
                type="WebhookRefused",
                non_retryable=answer.status_code in FINAL,
            )

    def signature(self, id: str, timestamp: str, body: bytes) -> str:
        """The signature of a body, in base64, without its version."""
        signed = f"{id}.{timestamp}.".encode() + body
        return base64.b64encode(hmac.new(self._secret, signed, hashlib.sha256).digest()).decode()
