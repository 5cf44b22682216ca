"""The support example without perdure: the plain agent, its offline model and its database."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from pydantic_ai import AgentRunResult, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelResponse, PartDeltaEvent, TextPart, ToolCallPart

from examples.support.agent import Deps, support
from examples.support.answer import Answer
from examples.support.conversation import Result, Turn
from examples.support.rules import next_step
from examples.support.store import OrderNotFound, Refund, RefundRefused, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "support.db")


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


async def ask(store: Store, prompt: str, history: Sequence[ModelMessage] = ()) -> AgentRunResult[Answer]:
    return await support.run(prompt, deps=Deps(store), message_history=history)


def tools_called(result: AgentRunResult[Answer]) -> list[list[str]]:
    """The tools of each step, the output tool left out."""
    steps = [message for message in result.new_messages() if isinstance(message, ModelResponse)]
    names = [[call.tool_name for call in step.tool_calls if call.tool_name != "final_result"] for step in steps]
    return [step for step in names if step]


def call_ids(messages: Sequence[ModelMessage]) -> list[str]:
    return [part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    return [part.content for message in messages for part in message.parts if isinstance(part, TextPart)]


async def test_a_question_about_an_order_is_looked_up(store: Store) -> None:
    result = await ask(store, "Where is order A-1004?")
    assert tools_called(result) == [["lookup_order"]]
    assert result.output.order_id == "A-1004"
    assert result.output.refunded_cents == 0
    assert "Electric kettle" in result.output.reply
    assert "is shipped" in result.output.reply


async def test_a_refund_finds_the_order_by_its_item_and_leaves_a_note(store: Store) -> None:
    result = await ask(store, "Please refund the headphones of ada@example.com.")
    assert tools_called(result) == [["search_orders"], ["lookup_order"], ["refund"], ["add_note"]]
    assert result.output == Answer(
        reply="I refunded $89.90 for order A-1003 (refund R-1).", order_id="A-1003", refunded_cents=8990
    )
    order = store.find_order("A-1003")
    assert order.refunded_cents == 8990
    assert order.notes == ["Refunded $89.90 at the customer's request (R-1)."]


async def test_a_named_amount_is_what_is_refunded(store: Store) -> None:
    result = await ask(store, "Refund $12.50 of A-1013, it came late")
    assert tools_called(result) == [["lookup_order"], ["refund"], ["add_note"]]
    assert store.find_order("A-1013").refunded_cents == result.output.refunded_cents == 1250


async def test_several_orders_are_looked_up_in_parallel(store: Store) -> None:
    result = await ask(store, "What about A-1004, a-1009 and A-1011?")
    assert tools_called(result) == [["lookup_order"] * 3]
    assert result.output.order_id is None
    assert all(order_id in result.output.reply for order_id in ("A-1004", "A-1009", "A-1011"))


async def test_several_orders_are_refunded_in_parallel(store: Store) -> None:
    result = await ask(store, "Refund A-1013 and A-1014.")
    assert tools_called(result) == [["lookup_order"] * 2, ["refund"] * 2, ["add_note"] * 2]
    assert result.output.refunded_cents == 3790 + 11900


async def test_an_unknown_order_is_said_politely_beside_a_known_one(store: Store) -> None:
    result = await ask(store, "Where are A-9999 and A-1004?")
    assert tools_called(result) == [["lookup_order"] * 2]
    assert "I'm sorry, I could not find an order A-9999." in result.output.reply
    assert result.output.order_id == "A-1004"


async def test_an_unknown_order_alone_ends_without_an_order(store: Store) -> None:
    result = await ask(store, "Where is A-9999?")
    assert result.output == Answer(
        reply="I'm sorry, I could not find an order A-9999.", order_id=None, refunded_cents=0
    )


async def test_a_customer_is_found_by_name(store: Store) -> None:
    result = await ask(store, "What did Grace Hopper order?")
    assert tools_called(result) == [["search_orders"], ["lookup_order"] * 3]
    assert "Mechanical keyboard" in result.output.reply


async def test_an_unknown_customer_is_said(store: Store) -> None:
    result = await ask(store, "Where are the orders of nobody@example.com?")
    assert tools_called(result) == [["search_orders"]]
    assert result.output.reply == "I'm sorry, I found no orders of nobody@example.com."


async def test_an_ambiguous_refund_asks_which_order(store: Store) -> None:
    result = await ask(store, "I am ada@example.com and want my money back")
    assert tools_called(result) == [["search_orders"]]
    assert result.output.reply == "Which of your orders do you mean: A-1026, A-1009, A-1003, A-1001?"
    assert result.output.refunded_cents == 0


async def test_nothing_recognisable_asks_for_an_order_number(store: Store) -> None:
    result = await ask(store, "Hello, how are you?")
    assert tools_called(result) == []
    assert "its number" in result.output.reply


@pytest.mark.parametrize(
    "prompt", ["Hello, has the refund for A-1003 arrived?", "I don't want a refund, just tell me about A-1003"]
)
async def test_speaking_of_a_refund_pays_nothing(store: Store, prompt: str) -> None:
    assert tools_called(await ask(store, prompt)) == [["lookup_order"]]
    assert store.find_order("A-1003").refunded_cents == 0


async def test_more_than_was_paid_is_refused(store: Store) -> None:
    result = await ask(store, "Refund $500 of A-1013")
    assert tools_called(result) == [["lookup_order"], ["refund"]]
    assert "I could not refund order A-1013: 50000 cents can't be refunded: 3790" in result.output.reply
    assert store.find_order("A-1013").refunded_cents == 0


@pytest.mark.parametrize(("order_id", "reason"), [("A-1030", "It has not been paid."), ("A-1013", "nothing left")])
async def test_nothing_is_refunded_where_nothing_is_left(store: Store, order_id: str, reason: str) -> None:
    store.refund("A-1013", 3790, key="before")
    result = await ask(store, f"Refund {order_id}")
    assert tools_called(result) == [["lookup_order"]]
    assert reason in result.output.reply


async def test_a_dictated_note_is_kept_once(store: Store) -> None:
    for _ in range(2):
        result = await ask(store, "Please add a note to A-1004: leave it with the neighbour")
        assert tools_called(result) == [["lookup_order"], ["add_note"]]
        assert "I added your note to order A-1004." in result.output.reply
    assert store.find_order("A-1004").notes == ["leave it with the neighbour"]


async def test_the_next_turn_points_back_to_the_order(store: Store) -> None:
    first = await ask(store, "Where is A-1013?")
    second = await ask(store, "It is broken. Please refund it.", first.all_messages())
    assert tools_called(second) == [["lookup_order"], ["refund"], ["add_note"]]
    assert second.output.refunded_cents == 3790
    ids = call_ids(second.all_messages())
    assert len(set(ids)) == len(ids) == 6


async def test_streaming_makes_the_same_messages(store: Store) -> None:
    prompt = "Where are A-1004 and A-9999?"
    plain = await ask(store, prompt)
    async with support.run_stream_events(prompt, deps=Deps(store)) as stream:
        events = [event async for event in stream]
    assert stream.result is not None
    assert stream.result.output == plain.output
    assert call_ids(stream.result.all_messages()) == call_ids(plain.all_messages())
    assert texts(stream.result.all_messages()) == texts(plain.all_messages()) == ["Looking up A-1004, A-9999."]
    assert len([event for event in events if isinstance(event, PartDeltaEvent)]) > 10


async def test_the_same_refund_twice_pays_once(store: Store) -> None:
    for _ in range(2):
        result = await ask(store, "Refund $10 of A-1013")
        assert result.output.refunded_cents == 1000
    order = store.find_order("A-1013")
    assert order.refunded_cents == 1000
    assert order.notes == ["Refunded $10.00 at the customer's request (R-1)."]


WHAT = "The refund of $37.90 for order A-1013 was not"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Finance said no.", f"{WHAT} approved: Finance said no."),
        ("The call was denied.", f"{WHAT} approved."),
        (ToolDenied().message, f"{WHAT} approved."),
        ("No decision came in time, so …", f"{WHAT} made: nobody decided it in time. Please ask again."),
    ],
)
def test_a_denied_refund_is_said_with_its_reason_and_not_asked_for_again(store: Store, text: str, reply: str) -> None:
    looked_up = Result("lookup_order", {"order_id": "A-1013"}, True, store.find_order("A-1013").model_dump_json())
    denied = Result("refund", {"order_id": "A-1013", "cents": 3790}, False, text, denied=True)
    turn = Turn("Refund A-1013", [looked_up, denied], last_order_id=None, calls_so_far=2)
    assert next_step(turn) == Answer(reply=reply, order_id="A-1013", refunded_cents=0)


def test_a_key_is_good_for_one_refund(store: Store) -> None:
    first = store.refund("A-1013", 3790, key="k")
    assert store.refund("A-1013", 3790, key="k") == first == Refund(id="R-1", order_id="A-1013", cents=3790)
    with pytest.raises(RefundRefused, match="was used for 3790 cents of order A-1013"):
        store.refund("A-1014", 3790, key="k")
    with pytest.raises(RefundRefused, match="0 of order A-1013 are left"):
        store.refund("A-1013", 1, key="other")
    with pytest.raises(OrderNotFound, match="'A-9999'"):
        store.refund("A-9999", 1, key="other")


def test_processes_refunding_with_one_key_pay_once(store: Store, pool: ProcessPoolExecutor) -> None:
    refunds = [pool.submit(store.refund, "A-1013", 1000, "one key") for _ in range(8)]
    assert {refund.result().id for refund in refunds} == {"R-1"}
    assert store.find_order("A-1013").refunded_cents == 1000


def test_processes_refunding_together_never_pay_more_than_was_paid(store: Store, pool: ProcessPoolExecutor) -> None:
    refunds = [pool.submit(store.refund, "A-1013", 1000, f"key {number}") for number in range(8)]
    errors = [refund.exception() for refund in refunds]
    assert [type(error) for error in errors if error] == [RefundRefused] * 5
    assert store.find_order("A-1013").refunded_cents == 3000


def test_processes_creating_the_database_together_seed_it_once(tmp_path: Path, pool: ProcessPoolExecutor) -> None:
    stores = list(pool.map(Store.open, [tmp_path / "new.db"] * 8))
    assert len(stores[0].search_orders("@example.com")) == 20
    assert [item.name for item in stores[0].find_order("A-1001").items] == ["Desk lamp", "Light bulb"]


def test_the_path_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store.open().path.resolve() == tmp_path / "support.db"
    monkeypatch.setenv("PERDURE_SUPPORT_DB", str(tmp_path / "other.db"))
    assert Store.open().find_order("A-1030").paid_cents == 0
