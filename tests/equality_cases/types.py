"""Arguments and results of every type (D1, D2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import Tool, ToolReturn
from pydantic_ai.messages import BinaryContent, ImageUrl
from typing_extensions import TypedDict

from tests.equality_cases.base import Case, case, simple
from tests.equality_cases.tools import PIXEL


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    name: str
    price: Decimal = Decimal("1.10")
    at: datetime | None = None
    code: int = Field(default=1, alias="theCode")


@dataclass
class Point:
    x: int
    y: float = 0.5


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool = True


class Row(TypedDict):
    id: UUID
    tags: set[str]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "model": (Item, {"name": "a", "theCode": 3}),
    "model_with_defaults": (Item, {"name": "a"}),
    "model_by_name": (Item, {"name": "a", "code": 4, "at": "2024-01-02T03:04:05Z"}),
    "dataclass": (Point, {"x": "1"}),
    "list_of_models": (list[Item], [{"name": "a"}, {"name": "b", "price": "2.50"}]),
    "dict_of_models": (dict[str, Item], {"k": {"name": "a"}}),
    "dict_by_int": (dict[int, str], {"1": "a"}),
    "optional": (Item | None, None),
    "discriminated": (Pet, {"kind": "dog"}),
    "list_of_discriminated": (list[Pet], [{"kind": "dog"}, {"kind": "cat", "lives": 3}]),
    "union": (int | str, "1"),
    "datetime": (datetime, "2024-01-02T03:04:05+02:00"),
    "naive_datetime": (datetime, "2024-01-02T03:04:05.123456"),
    "date": (date, "2024-01-02"),
    "timedelta": (timedelta, "PT1H30M"),
    "decimal": (Decimal, "0.10"),
    "uuid": (UUID, "12345678123456781234567812345678"),
    "enum": (Color, "red"),
    "set": (set[int], [3, 1, 3]),
    "frozenset": (frozenset[str], ["a"]),
    "tuple": (tuple[int, str], [1, "a"]),
    "tuple_of_many": (tuple[int, ...], [1, 2]),
    "bytes": (bytes, "h\u00e9"),
    "float": (float, 1),
    "float_of_an_int_literal": (float, "3"),
    "big_int": (int, 12345678901234567890123),
    "bool": (bool, "yes"),
    "typed_dict": (Row, {"id": "12345678-1234-5678-1234-567812345678", "tags": ["b"]}),
    "any": (Any, {"a": [1, None, {"b": 1.5}]}),
    "nested": (dict[str, list[tuple[Color, Point]]], {"a": [["blue", {"x": 1, "y": 2}]]}),
}


def argument(kind: Any, value: Any) -> Case:
    saw: list[Any] = []

    def take(value: Any, other: int = 5) -> str:
        saw.append((type(value).__name__, repr(value), other))
        return repr(value)

    take.__annotations__ = {"value": kind, "other": int, "return": str}
    return simple({"take": {"value": value}}, "done", saw=saw, tools=[Tool(take)])


@case
def d1_single_model_argument() -> Case:
    saw: list[Any] = []

    def take(item: Item) -> str:
        saw.append(repr(item))
        return item.name

    return simple(
        {"take": {"name": "a", "theCode": 7}}, {"take": {"item": {"name": "b"}}}, "done", saw=saw, tools=[take]
    )


RESULTS: dict[str, Any] = {
    "none": None,
    "text": "text",
    "empty_text": "",
    "number": 1.5,
    "bool": True,
    "nan": float("nan"),
    "infinity_in_a_dict": {"x": float("inf"), "y": [float("nan")]},
    "bytes": b"abc",
    "binary_bytes": b"\xff\xfe\x00",
    "nested_bytes": {"a": [b"abc"]},
    "nested_binary_bytes": {"a": [b"\xff"]},
    "like_binary_content": {"data": "aGk=", "media_type": "image/png", "kind": "binary"},
    "like_image_url": {"url": "https://example.com/a.png", "kind": "image-url"},
    "like_nested_binary_content": {"files": [{"data": "aGk=", "media_type": "image/png", "kind": "binary"}]},
    "image": PIXEL,
    "image_url": ImageUrl(url="https://example.com/a.png"),
    "list_with_image": ["see", PIXEL, {"a": 1}],
    "dict_with_image": {"image": PIXEL},
    "text_file": BinaryContent(data=b"hello", media_type="text/plain"),
    "tuple": (1, "a"),
    "set": {3},
    "decimal": Decimal("1.10"),
    "datetime": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    "timedelta": timedelta(hours=1),
    "uuid": UUID("12345678123456781234567812345678"),
    "enum": Color.RED,
    "model": Item(name="a"),
    "models": [Item(name="a"), Point(1)],
    "dataclass": Point(1),
    "dict_by_int": {1: "a", 2: {3: None}},
    "surrogates": "a\U0001f600b",
    "json_text": '{"a": 1}',
    "tool_return_of_a_model": ToolReturn(
        Item(name="a"), content=["x", PIXEL], metadata={"at": datetime(2024, 1, 2, tzinfo=UTC)}
    ),
}


def result(value: Any) -> Case:
    def give() -> Any:
        return value

    return simple({"give": {}}, "done", tools=[give])


for name, (kind, value) in ARGUMENTS.items():
    case_name = f"d1_{name}"

    def build_argument(kind: Any = kind, value: Any = value) -> Case:
        return argument(kind, value)

    build_argument.__name__ = case_name
    case(build_argument)

for name, value in RESULTS.items():

    def build_result(value: Any = value) -> Case:
        return result(value)

    build_result.__name__ = f"d2_{name}"
    case(build_result)
