"""What tests of sessions share: sending messages and waiting for their turns, as any Temporal client would."""

from __future__ import annotations

from typing import Any

from tests.deciding import update
from tests.harness import Handle, chain, until

SESSION: dict[str, Any] = {"session": {}}


async def send(handle: Handle, content: str, **more: Any) -> dict[str, Any]:
    """Send a message and return where it stands."""
    return await update(handle, "send", {"content": content, **more})


async def turn(handle: Handle, **query: Any) -> dict[str, Any]:
    """What became of a turn, once it is over."""
    found: dict[str, Any] = {}

    async def over() -> bool:
        found.clear()
        found.update(await handle.query("turn", query))
        return found["state"] not in ("queued", "running")

    await until(over, every=0.1)  # with no cache each look replays the run
    return found


async def answered(handle: Handle, content: str, **more: Any) -> Any:
    """Send a message and return the output of its turn."""
    sent = await send(handle, content, **more)
    return (await turn(handle, message=sent["messages"][0]))["output"]["value"]


async def closed(handle: Handle) -> dict[str, Any]:
    """Close a session and return its result."""
    await update(handle, "close", {})
    return await handle.result()


async def runs_of(handle: Handle) -> int:
    """How many runs the chain has."""
    return len(await chain(handle))


async def user_texts(handle: Handle) -> list[Any]:
    """The messages of the users, as the transcript has them."""
    page = await handle.query("transcript", {})
    return [entry["content"] for entry in page["entries"] if entry["kind"] == "user"]


async def idle(handle: Handle) -> None:
    """Until the session waits for a message."""

    async def there() -> bool:
        return (await handle.query("status"))["state"] == "idle"

    await until(there)
