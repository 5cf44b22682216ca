"""Queries of the tests, asked as a client of production asks: with a time limit, and again where no answer comes.

A query is a message between server and worker of which nothing is kept: it may be lost (a poll that just ended), and
Temporal's client waits 30 s before it gives up. A run that doesn't answer the second time hangs, which fails the test.
"""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

from temporalio.client import Interceptor, OutboundInterceptor, QueryWorkflowInput
from temporalio.service import RPCError

from perdure.client.asking import LOST

FIRST = timedelta(seconds=12)
"""Longer than a workflow task may take: one that was lost has been given to another worker by then."""


class AskedAgain(Interceptor):
    """Repeats a query that nobody answered; those with a time limit of their own are left alone."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Asking(next)


class _Asking(OutboundInterceptor):
    async def query_workflow(self, input: QueryWorkflowInput) -> Any:
        if input.rpc_timeout is not None:
            return await super().query_workflow(input)
        input.rpc_timeout = FIRST
        try:
            return await super().query_workflow(input)
        except RPCError as error:
            if error.status not in LOST:
                raise
        warnings.warn(f"a query was lost: {input.query} of {input.id}, asked again", stacklevel=2)
        input.rpc_timeout = None
        return await super().query_workflow(input)
