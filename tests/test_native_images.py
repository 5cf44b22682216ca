"""Images that a model makes: S2-type-10."""

from __future__ import annotations

import base64
from typing import Any

from pydantic_ai import Agent, BinaryImage
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import BinaryContent, FilePart, ModelResponse, TextPart
from pydantic_ai.native_tools import ImageGenerationTool
from temporalio.client import Client

from perdure import App
from tests.harness import attempts, working
from tests.namespaces import Searching
from tests.native import EVERY, PIXEL, app, failed


async def test_s2_type_10_an_image_is_an_output(client: Client, cache: int) -> None:
    script = Searching([FilePart(PIXEL)], profile=EVERY)
    agent: Agent[None, BinaryImage] = Agent(
        script.model, name="office", output_type=BinaryImage, capabilities=[NativeTool(ImageGenerationTool())]
    )
    async with working(client, App(agents=[agent]), cache=cache) as runs:
        result = await runs.run("office", "go")
    assert result["output"]["media_type"] == "image/png"
    assert base64.urlsafe_b64decode(result["output"]["data"]) == PIXEL.data


async def test_s2_type_10_an_image_over_the_limit_ends_the_run_without_another_attempt(client: Client) -> None:
    large = BinaryContent(data=bytes(2_000_000), media_type="image/png")
    asked: list[int] = []

    def turn(found: Any, info: Any) -> ModelResponse:
        asked.append(len(found))
        return ModelResponse(parts=[FilePart(large), TextPart("done")])

    async with working(client, app(Searching(turn, profile=EVERY), ImageGenerationTool())) as runs:
        handle, failure = await failed(runs, "office")
        assert await attempts(handle) == [1]
        status: Any = await handle.query("status")
    assert failure.type == "OutputTooLarge"
    assert "a step may have 1500000" in failure.message
    assert status["usage"]["requests"] == 1, "what it cost is counted"
    assert asked == [1]
