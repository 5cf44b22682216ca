"""A payload store in a bucket, by the SDK's own S3 driver. Needs the extra `s3`; imported only where it is used."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aioboto3
from botocore.exceptions import BotoCoreError, ClientError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.aws.s3driver.aioboto3 import new_aioboto3_client
from temporalio.converter import StorageDriverClaim, StorageDriverRetrieveContext, StorageDriverStoreContext

from perdure.errors import PayloadStoreError
from perdure.payloads.base import PayloadStore, checked

NAME = "perdure.s3"
"""In every reference in history: never changes."""


class S3Store(PayloadStore):
    """Payloads in objects of `bucket`, under `prefix`. Region, keys and endpoint are those of AWS's environment.

    A client is opened for each batch of payloads and closed after it: nothing belongs to an event loop or has to be
    closed when a worker or a command ends.
    """

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._session = aioboto3.Session()

    def name(self) -> str:
        return NAME

    def type(self) -> str:
        return "aws.s3driver"

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Keep payloads. Of equal ones of a run only one copy is kept."""
        async with self._opened() as client:
            return await S3StorageDriver(client, self._bucket, NAME).store(context, payloads)

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """The payloads of these claims, each compared with its digest."""
        async with self._opened() as client:
            return await S3StorageDriver(client, self._bucket, NAME).retrieve(context, claims)

    async def put(self, name: str, data: bytes) -> None:
        async with self._opened() as client:
            await client.put_object(bucket=self._bucket, key=checked(name), data=data)

    async def find(self, name: str) -> bytes | None:
        key = checked(name)
        async with self._opened() as client:
            there = await client.object_exists(bucket=self._bucket, key=key)
            return await client.get_object(bucket=self._bucket, key=key) if there else None

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[S3StorageDriverClient]:
        """A client; what it raises becomes `PayloadStoreError`, with the cause in its text."""
        try:
            opening: Any = self._session.client("s3")  # pyright: ignore[reportUnknownMemberType]
            async with opening as s3:
                yield _Prefixed(new_aioboto3_client(s3), self._prefix)
        except (BotoCoreError, ClientError, RuntimeError, ValueError, OSError) as error:
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise PayloadStoreError(f"the payload store s3://{self._bucket}/{self._prefix}: {error}{cause}") from error


class _Prefixed(S3StorageDriverClient):
    """Puts the prefix before each key. It isn't part of a reference: a bucket may be moved."""

    def __init__(self, client: S3StorageDriverClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def put_object(self, *, bucket: str, key: str, data: bytes) -> None:
        await self._client.put_object(bucket=bucket, key=self._prefix + key, data=data)

    async def object_exists(self, *, bucket: str, key: str) -> bool:
        return await self._client.object_exists(bucket=bucket, key=self._prefix + key)

    async def get_object(self, *, bucket: str, key: str) -> bytes:
        return await self._client.get_object(bucket=bucket, key=self._prefix + key)
