"""The app of the long benchmarks: an agent that reads one page per step, as many as its last message asks for."""

import os
import random

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import App, DurableAgent, Limits

AGENT = "reader"
COMPACT_ABOVE = "COMPACT_ABOVE"
"""The environment variable that says above how many tokens the conversation is compacted; 0 = never."""
PAGE = 1024
"""Characters of a page."""
WORDS = [
    "harbour",
    "letter",
    "winter",
    "orchard",
    "engine",
    "silver",
    "garden",
    "morning",
    "question",
    "river",
    "station",
    "window",
    "number",
    "country",
    "evening",
    "market",
    "island",
    "paper",
    "mountain",
    "history",
    "kitchen",
    "teacher",
    "journey",
    "village",
    "shadow",
    "bridge",
    "season",
    "captain",
    "story",
    "promise",
]
"""What pages are made of: prose, which packs as prose does."""

pages = FunctionToolset[None](id="pages")


@pages.tool_plain
def read(n: int) -> str:
    """Read a page."""
    chosen = random.Random(n)
    text = f"page {n}:"
    while len(text) < PAGE:
        text += f" {chosen.choice(WORDS)}{chosen.choice(['', 's', ',', '.'])}"
    return text[:PAGE]


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Read as many pages as the last message of the user says, then answer."""
    begun = next(at for at in range(len(messages) - 1, -1, -1) if _asked(messages[at]))
    taken = _last_page(messages[begun:])
    if taken < int(_asked(messages[begun]).split()[-1]):
        return ModelResponse([ToolCallPart("read", {"n": taken + 1})])
    return ModelResponse([TextPart(f"read {taken} pages")])


def _last_page(messages: list[ModelMessage]) -> int:
    """The page that was read last: a summary may stand for those before."""
    calls = [call for message in messages if isinstance(message, ModelResponse) for call in message.tool_calls]
    return int(calls[-1].args_as_dict()["n"]) if calls else 0


def _asked(message: ModelMessage) -> str:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
    return str(prompts[-1]) if prompts else ""


def summarise(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Stands in for the model that compaction asks."""
    return ModelResponse([TextPart("Pages were read, one after the other. " + read(0))])


model = FunctionModel(script, model_name="scripted")
durable = DurableAgent(
    Agent(model, name=AGENT, toolsets=[pages]),
    models={"short": FunctionModel(summarise, model_name="short")},
    compact_above=int(os.environ.get(COMPACT_ABOVE, "0")),
    compact_with="short",
    limits=Limits(turn_requests=None),
)
app = App(agents=[durable])
