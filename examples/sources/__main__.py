"""Run it all: a Temporal server, the MCP server over HTTP, both workers, and one run whose order you approve.

`python -m examples.sources [--approve]`; with `--approve` nobody is asked.
"""

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.client import PerdureClient, RunHandle
from perdure.dev import dev_server
from perdure.worker import serving

from .app import build
from .warehouse import warehouse


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def rates_server() -> AsyncGenerator[str]:
    """The address of the MCP server over HTTP, which runs while the block does."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "examples.sources.rates", str(port))
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


async def first_pending(run: RunHandle) -> dict[str, object]:
    """The call that waits, once one does. It belongs to the run of the buyer, which its row names."""
    while not (rows := await run.pending()):  # noqa: ASYNC110  # another process tells
        await asyncio.sleep(0.2)
    return rows[0]


def says_yes() -> bool:
    """Ask on the terminal. Ends the program where there is nobody to ask."""
    try:
        return input("Approve? [y/N] ").lower() == "y"
    except EOFError:
        sys.exit("nobody can be asked without a terminal: use `python -m examples.sources --approve`")


async def main(approve: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "orders.jsonl"
        async with dev_server(port=free_port(), ui_port=None) as server, rates_server() as url:
            async with warehouse(server.client), serving(server.client, build(book, url)):
                client = PerdureClient(server.client)
                run = await client.start("desk", "We need three keyboards.", id="desk-1")
                row = await first_pending(run)
                print(f"{row['workflow_id']} waits for {row['call']}: {row['tool']}({row['args']})", flush=True)
                if approve or await asyncio.to_thread(says_yes):
                    await client.run(str(row["workflow_id"])).approve(str(row["call"]), by="ann")
                else:
                    await client.run(str(row["workflow_id"])).deny(str(row["call"]), by="ann")
                print(str((await run.result()).output).replace("; ", "\n"))
        if book.exists():
            print(f"the book of orders: {book.read_text().strip()}")


if __name__ == "__main__":
    asyncio.run(main("--approve" in sys.argv[1:]))
