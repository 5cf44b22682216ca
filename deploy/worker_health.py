"""Exit with 0 if the worker on this host polled its task queue of late, else with 1: `worker_health.py TASK_QUEUE`.

The server is asked, not the process: a worker that hangs, or that lost its connection, stops polling. Finds the server
as `perdure` does, by Temporal's environment configuration.
"""

import asyncio
import socket
import sys
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig

STALE = timedelta(minutes=2)
"""The server lists a poller for minutes after it is gone, and a poll lasts up to a minute."""


async def main(task_queue: str) -> int:
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        ),
        timeout=timedelta(seconds=5),
    )
    host, oldest = socket.gethostname(), datetime.now(UTC) - STALE
    polls = {p.identity: p.last_access_time.ToDatetime(UTC) for p in answer.pollers}
    if any(host in identity and at > oldest for identity, at in polls.items()):
        return 0
    seen = ", ".join(f"{identity} at {at:%H:%M:%S}" for identity, at in polls.items()) or "nobody"
    print(f"No poll of {task_queue!r} from {host!r} since {oldest:%H:%M:%S} UTC; polled by: {seen}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
