"""`perdure setup`: prepare a namespace."""

from __future__ import annotations

import asyncio

from perdure.cli.exits import one_line_errors
from perdure.cli.options import Address, Namespace, Profile


def setup(address: Address = None, namespace: Namespace = None, profile: Profile = None) -> None:
    """Register perdure's search attributes in the namespace. Safe to run again."""

    async def run() -> None:
        from perdure.cli.connecting import connect
        from perdure.client.setup import register

        client = await connect(address=address, namespace=namespace, profile=profile)
        for name, made in (await register(client.client)).items():
            print(f"{name}: {'registered' if made else 'was there'}")

    with one_line_errors():
        asyncio.run(run())
