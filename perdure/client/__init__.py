"""Start runs and look at them, from any Python program, without importing Pydantic AI.

client = await connect()
run = await client.start("support", "Where is order A-1004?")
print((await run.result()).output)
"""

from perdure.client.connection import PerdureClient, connect
from perdure.client.errors import ClientError, NoAnswer, NoServer, NoSuchRun, Refused, RunClosed, RunExists, RunFailed
from perdure.client.run import RunHandle
from perdure.client.views import LiveText, Progress, RunStatus, RunSummary

__all__ = [
    "ClientError",
    "LiveText",
    "NoAnswer",
    "NoServer",
    "NoSuchRun",
    "PerdureClient",
    "Progress",
    "Refused",
    "RunClosed",
    "RunExists",
    "RunFailed",
    "RunHandle",
    "RunStatus",
    "RunSummary",
    "connect",
]
