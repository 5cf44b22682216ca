"""Tool results over the limit of their policy: told or cut; whatever it is, the tool runs once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryContent, ToolReturn
from temporalio.client import Client

from perdure import DeclarationError, ToolPolicy
from perdure.activities.large_result import head_and_tail
from perdure.contracts import MAX_STORED, MIN_RESULT
from tests.large_results import LIMIT, Rule, answer, policy
from tests.payloads import MB, files

IMAGE = BinaryContent(b"\x89PNG" + bytes(MB - 4), media_type="image/png")
"""A megabyte, and a third more as JSON."""


@pytest.mark.parametrize("rule", ["fail", "truncate", "store"])
async def test_a_result_just_under_the_limit_is_as_it_was(stored: Client, folder: Path, rule: Rule) -> None:
    text = "é" * (LIMIT // 2)
    part = await answer(stored, text, policy(rule))
    assert (part.outcome, part.content) == ("success", text)
    assert files(folder) == []


async def test_just_over_the_limit_fail_tells_the_sizes(client: Client, cache: int) -> None:
    part = await answer(client, "é" * (LIMIT // 2) + "x", policy("fail"), cache)
    assert (part.outcome, part.content) == (
        "failed",
        "The tool ran, but its result has 3001 bytes; a result may have 3000. Ask for less.",
    )


@pytest.mark.parametrize("text", ["x" * (LIMIT + 1), "é" * 50_000, "𝄞" * 50_000, "aé𝄞" * 20_000], ids=len)
async def test_just_over_the_limit_truncate_leaves_head_and_tail(client: Client, text: str) -> None:
    part = await answer(client, text, policy("truncate"))
    cut = str(part.content)
    assert part.outcome == "success"
    assert LIMIT - 10 <= len(cut.encode()) <= LIMIT
    head, missing, size, tail = re.split(r"\n\[… (\d+) of (\d+) bytes are left out here …\]\n", cut)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert abs(len(head.encode()) - len(tail.encode())) < 10
    assert int(size) == len(text.encode()) == len(head.encode()) + int(missing) + len(tail.encode())


async def test_truncate_cuts_the_json_that_the_model_would_read(client: Client) -> None:
    rows = [{"id": number, "name": "é"} for number in range(1000)]
    whole = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    part = await answer(client, rows, policy("truncate"))
    cut = str(part.content)
    assert cut.startswith(whole[:1000])
    assert cut.endswith(whole[-1000:])
    assert f"of {len(whole.encode())} bytes are left out" in cut
    assert len(cut.encode()) <= LIMIT


async def test_truncate_leaves_a_structured_result_under_the_limit_structured(client: Client) -> None:
    part = await answer(client, [{"id": 1}], policy("truncate"))
    assert part.content == [{"id": 1}]


@pytest.mark.parametrize("text", ['"\\\n' * 700_000, "x" * 3 * MB], ids=["quotes", "plain"])
async def test_truncate_without_a_limit_of_its_own_leaves_what_can_be_carried(client: Client, text: str) -> None:
    """As JSON the first is twice as large as the model reads it."""
    cut = str((await answer(client, text, policy("truncate", None))).content)
    assert text.startswith(cut[:1000])
    assert 500_000 < len(json.dumps(cut, ensure_ascii=False).encode()) < 1_500_000


def test_head_and_tail_fit_whatever_the_limit() -> None:
    text = "aé𝄞" * 1000
    for most in range(MIN_RESULT, MIN_RESULT + 50):
        assert most - 10 <= len(head_and_tail(text, most).encode()) <= most


@pytest.mark.parametrize("over", [False, True], ids=["just under", "just over"])
async def test_with_a_store_a_result_may_have_what_its_policy_says(stored: Client, cache: int, over: bool) -> None:
    most = 6 * MB
    part = await answer(stored, "x" * (most + over), policy("fail", most), cache)
    if over:
        assert (
            part.content
            == f"The tool ran, but its result has {most + 1} bytes; a result may have {most}. Ask for less."
        )
    else:
        assert part.content == "x" * most


async def test_without_a_limit_of_its_own_a_result_has_one_with_a_store_too(stored: Client, cache: int) -> None:
    part = await answer(stored, "x" * 1_500_000, None, cache)
    assert re.search(r"its result has 15001\d\d bytes; a result may have 1500000\.", str(part.content))
    assert (await answer(stored, "x" * 1_499_500, None, cache)).outcome == "success"


async def test_an_image_of_a_megabyte_is_carried(client: Client, cache: int) -> None:
    part = await answer(client, IMAGE, None, cache)
    assert part.outcome == "success"
    assert [getattr(file, "data", None) for file in part.files] == [IMAGE.data]


@pytest.mark.parametrize("rule", ["fail", "truncate", "store"])
async def test_images_are_never_cut_or_kept(stored: Client, rule: Rule) -> None:
    for result in ([IMAGE, IMAGE], ["text", IMAGE, IMAGE], ToolReturn(return_value="two", content=[IMAGE, IMAGE])):
        part = await answer(stored, result, policy(rule, None))
        assert part.outcome == "failed"
        assert re.fullmatch(
            r"The tool ran, but its result has 266\d\d\d\d bytes; a result may have 1500000\. "
            r"Files and images are never cut\. Ask for less\.",
            str(part.content),
        )


async def test_with_a_store_several_images_are_carried(stored: Client, cache: int) -> None:
    part = await answer(stored, [IMAGE] * 3, policy("fail", 5 * MB), cache)
    assert [getattr(file, "data", None) for file in part.files] == [IMAGE.data] * 3


@pytest.mark.parametrize("most", [0, MIN_RESULT - 1, MAX_STORED + 1])
def test_a_limit_out_of_bounds_is_refused(most: int) -> None:
    with pytest.raises(DeclarationError, match=f"max_result_bytes={most} must be from 1000 to 8000000"):
        ToolPolicy(max_result_bytes=most)
    ToolPolicy(max_result_bytes=MIN_RESULT)
    ToolPolicy(max_result_bytes=MAX_STORED)


def test_an_unknown_rule_is_refused() -> None:
    rule: Any = "drop"
    with pytest.raises(DeclarationError, match="on_large_result='drop' is none of"):
        ToolPolicy(on_large_result=rule)
