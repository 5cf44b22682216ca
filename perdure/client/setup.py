"""What a namespace needs before `perdure list` and `perdure inbox` can search it."""

from __future__ import annotations

import asyncio

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.errors import ClientError
from perdure.contracts import KEYWORD_LISTS, SEARCH_ATTRIBUTES

KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
KEYWORD_LIST = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST
TRIES = 15
PAUSE = 2.0
"""Seconds between two tries: of a new namespace the server says "not found" until it reads its cache anew, some ten
seconds later."""


async def register(client: Client) -> dict[str, bool]:
    """Register the search attributes that aren't there; by name, whether it was registered now.

    Raises `ClientError` where one is there with another type, or where the server lets nobody register any (Temporal
    Cloud: do it with `tcld` or in its web interface).
    """
    wanted = {name: KEYWORD_LIST if name in KEYWORD_LISTS else KEYWORD for name in SEARCH_ATTRIBUTES}
    there = await _registered(client)
    wrong = [name for name, type in wanted.items() if there.get(name, type) != type]
    if wrong:
        raise ClientError(
            f"search attributes {wrong} are registered with another type: remove them, or leave them out with "
            "App(search_attributes=[…])"
        )
    missing = {name: type for name, type in wanted.items() if name not in there}
    if missing:
        await _add(client, missing)
    return {name: name in missing for name in wanted}


async def _registered(client: Client) -> dict[str, IndexedValueType.ValueType]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        return dict((await client.operator_service.list_search_attributes(request)).custom_attributes)
    except RPCError as error:
        raise ClientError(f"search attributes can't be listed: {error.message}") from error


async def _add(client: Client, missing: dict[str, IndexedValueType.ValueType]) -> None:
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
    for left in reversed(range(TRIES)):
        try:
            await client.operator_service.add_search_attributes(request)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND and left:
                await asyncio.sleep(PAUSE)
                continue
            raise ClientError(f"search attributes {sorted(missing)} can't be registered: {error.message}") from error
        return
