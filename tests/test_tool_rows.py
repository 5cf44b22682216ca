"""The table of rows in docs/tools.md: every row is there once, every test it names exists, every "no" has a reason."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.equality_cases import CASES

ROOT = Path(__file__).parent.parent
IDS = [
    *(f"S0-{number:02}" for number in range(1, 36)),
    *(f"S1-{number:02}" for number in range(1, 19)),
    *(f"S2-type-{number:02}" for number in range(1, 14)),
    *(f"S2-{number:02}" for number in range(1, 27)),
    *(f"S3-{number:02}" for number in range(1, 25)),
]
ROW = re.compile(r"^\| (S\d-\S+) \| (.*?) \| (.*?) \| (.*?) ?\|$", re.M)
NAME = re.compile(r"`(tests/test_\w+\.py)::(test_\w+)(?:\[(.+?)\])?`")
NAMED_AFTER_A_ROW = re.compile(r"test_s([0-3])_(?:(type)_)?(\d\d)_")
EQUALITY = "tests/test_equality.py"
SHORTEST_REASON = 40


def rows() -> list[tuple[str, str]]:
    """Id and proof of each row, in order."""
    return [(id, proof) for id, _, proof, _ in ROW.findall((ROOT / "docs" / "tools.md").read_text())]


@lru_cache
def functions(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The tests of a file by name; none where there is no such file."""
    if not (ROOT / path).is_file():
        return {}
    tree = ast.parse((ROOT / path).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: node for node in found if node.name.startswith("test_")}


@lru_cache
def texts(path: str) -> list[str]:
    """The strings in a file, which ids of parameters are made of."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def problem(path: str, name: str, parameter: str) -> str:
    """What is wrong with a name; empty = nothing."""
    if name not in functions(path):
        return "there is no such test"
    if not parameter:
        return ""
    test = functions(path)[name]
    if not any("parametrize" in ast.unparse(decorator) for decorator in test.decorator_list):
        return "it takes no parameters"
    if path == EQUALITY:
        return "" if parameter.removeprefix("cached-") in CASES else "the equality table has no such case"
    return "" if any(text.startswith(parameter) for text in texts(path)) else "it has no such parameter"


def test_every_row_is_there_once() -> None:
    assert [id for id, _ in rows()] == IDS


@pytest.mark.parametrize(("id", "proof"), rows(), ids=[id for id, _ in rows()])
def test_a_row_names_tests_that_exist_or_says_why_not(id: str, proof: str) -> None:
    if proof.startswith("no: "):
        assert len(proof) >= SHORTEST_REASON
        assert "TODO" not in proof
        return
    names: list[tuple[str, str, str]] = NAME.findall(proof)
    assert NAME.sub("", proof).replace("<br>", "") == "", "only names of tests"
    assert names
    wrong = {"::".join(name): why for name in names if (why := problem(*name))}
    assert not wrong


def test_tests_are_named_after_rows_that_there_are() -> None:
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for name in functions(path.relative_to(ROOT).as_posix()):
            if found := NAMED_AFTER_A_ROW.match(name):
                system, kind, number = found.groups()
                assert "-".join(part for part in (f"S{system}", kind, number) if part) in IDS, f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (("tests/test_nothing.py", "test_x", ""), "no such test"),
        (("tests/test_package.py", "test_x", ""), "no such test"),
        (("tests/test_replay.py", "test_there_are_histories", "x"), "takes no parameters"),
        ((EQUALITY, "test_perdure_runs_it_like_agent_run", "cached-s9"), "no such case"),
        (
            ("tests/test_cases_options.py", "test_case_l1_an_option_works_as_in_a_plain_run", "x" * 9),
            "no such parameter",
        ),
    ],
)
def test_a_name_that_is_wrong_is_found(name: tuple[str, str, str], why: str) -> None:
    assert why in problem(*name)
