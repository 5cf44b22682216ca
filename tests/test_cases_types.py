"""Cases D and E1: types and bytes across the boundary, and what can't be written at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage
from pydantic_ai.settings import ModelSettings
from temporalio.client import Client

from perdure import App, DurableAgent
from tests.harness import Runs, failure_of, messages, working
from tests.reading import returns
from tests.scripts import Script


class Item(BaseModel):
    sku: str
    count: int = 1


@dataclass
class Point:
    x: int
    y: float


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def names(value: Any) -> Any:
    """The type of each leaf."""
    if isinstance(value, list):
        return [names(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: names(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, BaseModel):
        return {type(value).__name__: names(dict(value))}
    return type(value).__name__


def one_model(item: Item) -> Any:
    return names(item)


def model_beside(item: Item, note: str) -> Any:
    return names([item, note])


def data_class(at: Point, label: str = "") -> Any:
    return [names(at), type(at.x).__name__, type(at.y).__name__, names(label)]


def listed(items: list[Item]) -> Any:
    return names(items)


def mapped(items: dict[str, Item]) -> Any:
    return names(items)


def optional(first: Item | None = None, second: Item | None = None) -> Any:
    return names([first, second])


def union(pets: list[Pet]) -> Any:
    return names(pets)


TYPED: dict[str, tuple[Any, dict[str, Any]]] = {
    "one_model": (one_model, {"sku": "a", "count": "2"}),
    "model_beside": (model_beside, {"item": {"sku": "a"}, "note": "n"}),
    "data_class": (data_class, {"at": {"x": 1, "y": 2}}),
    "listed": (listed, {"items": [{"sku": "a"}, {"sku": "b", "count": 2}]}),
    "mapped": (mapped, {"items": {"k": {"sku": "a"}}}),
    "optional": (optional, {"first": None, "second": {"sku": "b"}}),
    "union": (union, {"pets": [{"kind": "dog", "name": "Rex"}, {"kind": "cat", "lives": 9}]}),
}


@pytest.mark.parametrize("name", list(TYPED))
async def test_case_d1_tools_get_the_types_they_declare(client: Client, cache: int, name: str) -> None:
    function, args = TYPED[name]
    script = Script({name: args}, "done")
    agent = Agent(script.model, name="typed", tools=[function])
    plain = returns((await agent.run("go")).all_messages())
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        handle = await runs.start("typed", "go")
        await handle.result()
        durable = returns(await messages(handle))
    assert [(part.content, part.outcome) for part in durable] == [(part.content, "success") for part in plain]


IMAGE = BinaryContent(b"\x89PNG\xff\x00", media_type="image/png")
RESULTS: dict[str, Any] = {
    "raw": b"\xff\x00",
    "raw_utf8": b"plain",
    "nested_bytes": {"a": [b"\xff"]},
    "image": IMAGE,
    "listed_image": ["see", IMAGE],
    "mapped_image": {"image": IMAGE},
    "nan": {"value": float("nan"), "most": float("inf")},
    "looks_like_image": {"kind": "binary", "data": "AAEC", "media_type": "image/png"},
    "looks_like_url": [{"kind": "image-url", "url": "https://example.invalid/a.png"}],
}


def read(conversation: Sequence[ModelMessage]) -> list[Any]:
    """What a model reads of the tool results: the text, and each item of content with its bytes."""
    return [
        (part.model_response_str(), [_item(item) for item in part.content_items(mode="str")], part.outcome)
        for part in returns(conversation)
    ]


def _item(item: Any) -> Any:
    return (item.data, item.media_type) if isinstance(item, BinaryContent) else item


@pytest.mark.parametrize("name", list(RESULTS))
async def test_case_d2_the_model_reads_the_same_as_in_a_plain_run(client: Client, cache: int, name: str) -> None:
    ran: list[str] = []

    def fetch() -> Any:
        ran.append("fetch")
        return RESULTS[name]

    script = Script({"fetch": {}}, "done")
    agent = Agent(script.model, name="binary", tools=[fetch])
    await agent.run("go")
    plain = read(script.requests[-1])
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        await runs.run("binary", "go")
    assert read(script.requests[-1]) == plain
    assert len(ran) == 2, "once in the plain run, once in the durable one"


async def test_case_e1_deps_that_no_json_can_hold_stay_on_the_worker(client: Client, cache: int) -> None:
    def deps(params: Any, resources: Any) -> Any:
        return {"lock": threading.Lock(), "thing": object()}

    script = Script("done")
    app = App(agents=[DurableAgent(Agent(script.model, name="deps"), deps=deps)])
    async with working(client, app, cache=cache) as runs:
        assert (await runs.run("deps", "go"))["output"] == "done"


async def test_case_e1_model_settings_that_no_json_can_hold_stay_on_the_worker(client: Client, cache: int) -> None:
    script = Script("done")
    settings = ModelSettings(timeout=object())  # pyright: ignore[reportArgumentType]
    app = App(agents=[Agent(script.model, name="settings", model_settings=settings)])
    async with working(client, app, cache=cache) as runs:
        assert (await runs.run("settings", "go"))["output"] == "done"
    assert type(dict(script.infos[0].model_settings or {})["timeout"]) is object


def a_lock() -> Any:
    return threading.Lock()


def an_object() -> Any:
    return {"value": object()}


def a_generator() -> Any:
    def numbers() -> Iterator[Any]:
        yield object()

    return numbers()


@pytest.mark.parametrize(
    ("make", "type_name"),
    [(a_lock, "lock"), (an_object, "object"), (a_generator, "generator")],
    ids=["lock", "object", "generator"],
)
async def test_case_e1_a_result_that_no_json_can_hold_is_told_to_the_model(
    client: Client, cache: int, make: Any, type_name: str
) -> None:
    ran: list[str] = []

    def fetch() -> Any:
        ran.append("fetch")
        return make()

    script = Script({"fetch": {}}, "done")
    async with working(client, App(agents=[Agent(script.model, name="lost", tools=[fetch])]), cache=cache) as runs:
        handle = await runs.start("lost", "go")
        assert (await handle.result())["output"] == "done"
        (part,) = returns(await messages(handle))
    assert part.outcome == "failed"
    assert type_name in part.model_response_str()
    assert ran == ["fetch"]


async def test_case_e1_an_output_that_no_json_can_hold_ends_the_run_typed(client: Client, cache: int) -> None:
    def make() -> Any:
        return threading.Lock()

    script = Script({"final_result": {}})
    agent = Agent(script.model, name="unwritten", output_type=make)
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        failure = await runs.failure("unwritten", "go")
    assert failure.type == "NotCarried"
    assert "lock" in failure.message


async def test_case_e1_deps_that_fail_end_the_run(client: Client) -> None:
    def deps(params: Any, resources: Any) -> Any:
        raise TypeError("no pool for 'eu'")

    app = App(agents=[DurableAgent(Agent(Script("done").model, name="deps"), deps=deps, model_attempts=2)])
    async with working(client, app) as runs:
        failure = await failure_of(await _started(runs))
    assert failure.type == "TypeError"
    assert "worker's log" in failure.message, "the text of an exception may hold a secret"


async def _started(runs: Runs) -> Any:
    return await runs.start("deps", "go")
