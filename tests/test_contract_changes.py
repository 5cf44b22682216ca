"""`perdure check --contracts` and `--against`: what has changed in the tools of an App, and what of it breaks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts import Json
from perdure.schemas import problems
from perdure.toolsets.changes import EXPORT, changes
from tests.command import perdure

APP = '''
from pydantic import BaseModel, Field
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.test import TestModel
from perdure import App
from perdure.toolsets.contract import ToolContract
from perdure.toolsets.contract_toolset import ContractToolset


class Order(BaseModel):
    order_id: str
    cents: float = 1


class Refund(BaseModel):
    cents: int
    note: str = ""


contracts = ContractToolset(id="contracts")
contracts.external(ToolContract("refund", "Refund.", Order, Refund, version="1"))


def look(n: int) -> str:
    """Look something up."""
    return str(n)


make = Agent
app = App(agents=[make(TestModel(), name="shop", toolsets=[contracts], tools=[look])])
'''
NEW = (
    APP.replace("cents: float = 1", "cents: int = 1\n    why: str | None = None\n    who: str")
    .replace('note: str = ""', "day: int")
    .replace("look", "find")
)
CHANGED = """\
breaking: shop look: is gone
breaking: shop refund arguments.cents: was number, is integer
breaking: shop refund arguments.who: is new, and required
breaking: shop refund result.note: is gone
compatible: shop find: is new
compatible: shop refund arguments.why: is new
compatible: shop refund result.day: is new
compatible: shop refund: version is still 1
"""


async def test_what_breaks_is_named_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "new.py").write_text(NEW)
    done = await perdure("check", "shop:app", "--contracts", "old.json", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    exported: Json = json.loads((tmp_path / "old.json").read_text())
    assert not problems(EXPORT, exported)
    refund = exported["agents"]["shop"]["tools"]["refund"]
    assert (refund["version"], refund["input"]["required"]) == ("1", ["order_id"])
    done = await perdure("check", "shop:app", "--against", "old.json", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "perdure: nothing has changed")
    done = await perdure("check", "new:app", "--against", "old.json", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (1, CHANGED, "perdure: 4 breaking, 4 compatible")
    done = await perdure("check", "new:app", "--against", "old.json", "--json", cwd=tmp_path)
    assert done.code == 1
    assert json.loads(done.out)["changes"][0] == {
        "agent": "shop",
        "tool": "look",
        "at": "",
        "what": "is gone",
        "breaking": True,
    }


async def test_a_file_that_is_no_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "bad.json").write_text('{"perdure_contracts": 1, "agents": {"shop": {"tools": []}}}')
    for file, message in (
        ("missing.json", "can't be read"),
        ("shop.py", "can't be read"),
        ("bad.json", "is not of type"),
    ):
        done = await perdure("check", "shop:app", "--against", file, cwd=tmp_path)
        assert done.code == 2
        assert message in " ".join(done.err.split())
    done = await perdure("check", "shop:app", "--against", "bad.json", "--contracts", "./bad.json", cwd=tmp_path)
    assert done.code == 2
    assert "give another file" in " ".join(done.err.split())


async def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "folder").mkdir()
    await perdure("check", "shop:app", cwd=tmp_path)
    before = sorted(os.listdir(tmp_path))
    for file, reason in (("nowhere/x.json", "No such file or directory"), ("folder", "Is a directory")):
        done = await perdure("check", "shop:app", "--contracts", file, cwd=tmp_path)
        assert done.code == 2
        assert f"{file} can't be written: {reason}" in " ".join(done.err.replace("│", " ").split())
        assert "Traceback" not in done.err
    assert sorted(os.listdir(tmp_path)) == before


def export(**tools: Any) -> Json:
    """An export of one agent with these tools."""
    return {"perdure_contracts": 1, "agents": {"shop": {"tools": tools}}}


STILL = ("", "version is still 1", False)
NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
TOOL: Json = {"version": "1", "description": "A.", "input": NUMBER, "output": NUMBER}
CHANGES: list[tuple[Json, list[tuple[str, str, bool]]]] = [
    (TOOL, []),
    (TOOL | {"version": "2"}, [("", "version was 1, is 2", False)]),
    (TOOL | {"description": "B."}, [("", "other description", False)]),
    (TOOL | {"input": {**NUMBER, "default": 1}}, [("arguments", "other words or defaults", False), STILL]),
    (TOOL | {"input": {"type": "number"}}, [("arguments", "was integer, is number", False), STILL]),
    (TOOL | {"input": TEXT}, [("arguments", "was integer, is string", True), STILL]),
    (TOOL | {"output": {"type": "number"}}, [("result", "was integer, is number", True), STILL]),
    (TOOL | {"output": {}}, [("result", "was integer, is anything", True), STILL]),
    (TOOL | {"output": {"const": 1}}, [("result", "was integer, is 1", False), STILL]),
]


@pytest.mark.parametrize(("new", "rows"), CHANGES)
def test_each_part_of_a_contract_is_compared(new: Json, rows: list[tuple[str, str, bool]]) -> None:
    found = changes(export(tool=TOOL), export(tool=new))
    assert [(change.at, change.what, change.breaking) for change in found] == rows
    assert {(change.agent, change.tool) for change in found} <= {("shop", "tool")}


def test_an_agent_that_is_gone_breaks() -> None:
    other: Json = {"agents": {"desk": {"tools": {}}}}
    assert [(change.agent, change.what, change.breaking) for change in changes(export(), other)] == [
        ("shop", "is gone", True),
        ("desk", "is new", False),
    ]
