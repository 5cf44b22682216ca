"""Tools that are Nexus operations, served by a worker of others behind an endpoint."""

from __future__ import annotations

import uuid

import pytest
from pydantic_ai import Agent
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.client import Client, WorkflowExecutionStatus
from typing_extensions import TypedDict

from perdure import App, DurableAgent, ToolPolicy
from perdure.toolsets.temporal import TemporalTools
from tests.carrier import SAFE, Carrier, carrier, track
from tests.deciding import answers, cancelled, only
from tests.harness import activities, until, working
from tests.scripts import Script


class Order(TypedDict, total=False):
    sku: str
    wait: bool
    cleanup: bool


def parcels(endpoint: str, script: Script, policy: ToolPolicy = SAFE) -> App:
    tools = TemporalTools("parcels")
    tools.nexus("Track", service="Carrier", endpoint=endpoint, signature=track)
    tools.nexus("Pack", service="Carrier", endpoint=endpoint, name="pack", description="Pack.", input_model=Order)
    agent = Agent(script.model, name="parcels", toolsets=[tools])
    return App(agents=[DurableAgent(agent, policies={"*": policy})])


async def test_an_operation_is_called_and_repeated_with_the_same_key(client: Client, cache: int) -> None:
    handler = Carrier()
    script = Script({"track": {"parcel": "later"}}, {"track": {"parcel": "P-2"}}, "done")
    async with carrier(client, handler) as endpoint:
        async with working(client, parcels(endpoint, script), cache=cache) as runs:
            handle = await runs.start("parcels", "go")
            assert (await handle.result())["output"] == "done"
            found = [text for _, text in (await answers(handle)).values()]
            assert found == ['{"at":"Oslo","parcel":"later"}', '{"at":"Oslo","parcel":"P-2"}']
            assert (await activities(handle)).count("check_endpoint") == 2, "asked once in each step"
    assert len(handler.keys) == 3
    assert len(set(handler.keys)) == 2


async def test_an_operation_may_be_a_workflow(client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1"}}, "done")
    async with carrier(client, Carrier()) as endpoint:
        async with working(client, parcels(endpoint, script), cache=cache) as runs:
            handle = await runs.start("parcels", "go")
            await handle.result()
            outcome, text = await only(handle)
            assert outcome == "success"
            assert '"packed":"A-1"' in text


async def test_an_operation_is_cancelled_with_the_run(client: Client, cache: int) -> None:
    script = Script({"pack": {"sku": "A-1", "wait": True, "cleanup": True}})
    async with carrier(client, Carrier()) as endpoint:
        async with working(client, parcels(endpoint, script), cache=cache) as runs:
            handle = await runs.start("parcels", "go")
            begun: list[str] = []

            async def packing() -> bool:
                history = await handle.fetch_history()
                begun[:] = [
                    link.workflow_event.workflow_id
                    for event in history.events
                    if event.HasField("nexus_operation_started_event_attributes")
                    for link in event.links
                ]
                return bool(begun)

            await until(packing)
            await cancelled(handle)
            child = await client.get_workflow_handle(begun[0]).describe()
            assert child.status == WorkflowExecutionStatus.CANCELED
            outcome, text = await only(handle)
            assert (outcome, text) == ("interrupted", "The call was cancelled with the run.")


@pytest.mark.parametrize(
    ("parcel", "text"),
    [
        ("lost", "The call failed: Lost."),
        ("bad", "The call failed: HandlerError BAD_REQUEST."),
        ("slow", "The call did not end in time. It was repeated and then given up."),
    ],
)
async def test_an_operation_that_fails_is_told_by_its_type(client: Client, parcel: str, text: str) -> None:
    script = Script({"track": {"parcel": parcel}}, "done")
    policy = ToolPolicy(effect="safe", timeout=3 if parcel == "slow" else 20)
    async with carrier(client, Carrier()) as endpoint:
        async with working(client, parcels(endpoint, script, policy)) as runs:
            handle = await runs.start("parcels", "go")
            await handle.result()
            assert await only(handle) == ("failed", text)


async def test_an_endpoint_that_isnt_there_doesnt_hang_the_run(client: Client, cache: int) -> None:
    script = Script({"track": {"parcel": "P-1"}}, "done")
    async with working(client, parcels("nowhere", script), cache=cache) as runs:
        handle = await runs.start("parcels", "go")
        await handle.result()
        assert await only(handle) == ("failed", "The call was not made: there is no Nexus endpoint 'nowhere'.")


async def test_an_endpoint_without_a_worker_is_given_up_in_time(client: Client) -> None:
    name = f"empty-{uuid.uuid4().hex[:8]}"
    target = EndpointTarget(worker=EndpointTarget.Worker(namespace=client.namespace, task_queue=name))
    await client.operator_service.create_nexus_endpoint(
        CreateNexusEndpointRequest(spec=EndpointSpec(name=name, target=target))
    )
    script = Script({"track": {"parcel": "P-1"}}, "done")
    policy = ToolPolicy(effect="safe", schedule_to_start=1)
    async with working(client, parcels(name, script, policy)) as runs:
        handle = await runs.start("parcels", "go")
        await handle.result()
        outcome, text = await only(handle)
        assert outcome == "failed"
        assert text.startswith("The call was never started: no worker took it in time.")
