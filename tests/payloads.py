"""Payloads that go into a store, and an agent that reads them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio.client import Client

from perdure import App

MB = 1_000_000
LARGE = 6_000_000


def echo(asked: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers with the number of characters and the digest of the prompt."""
    text = str(asked[0].parts[-1].content)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    return ModelResponse(parts=[TextPart(f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()}")])


def reader(**more: Any) -> App:
    """An agent that says what it read."""
    return App(agents=[Agent(FunctionModel(echo), name="reads", **more)])


def files(folder: Path) -> list[Path]:
    """The files in a folder, at any depth."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def storage_of(client: Client) -> Any:
    """The payload store of a client."""
    return client.data_converter.external_storage
