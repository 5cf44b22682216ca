"""The agent that `perdure dev` serves where there is no other: no key, no network, the same answer every time.

An ordinary Pydantic AI agent with two tools. Its model is a function that looks for sums and time zones in the prompt.
"""

from __future__ import annotations

import ast
import asyncio
import json
import operator
import re
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic_ai import Agent, FunctionToolset, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from perdure import App, DurableAgent, ToolPolicy

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
}
SUM = re.compile(r"[\d(][\d\s.()+*/-]*[+*/-][\d\s.()+*/-]*[\d)]")
ZONE = re.compile(r"\b(?:UTC|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+)\b")
WORD_SECONDS = 0.05
"""Time between two words of an answer, so that there is live text to see."""

tools = FunctionToolset[object](id="demo")


@tools.tool_plain
def calculate(expression: str) -> float:
    """Work out a sum of numbers, such as 17 * (20 + 3)."""
    try:
        return _value(ast.parse(expression[:200].strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, OverflowError) as error:
        raise ModelRetry(f"{expression!r} can't be worked out: {error}") from error


@tools.tool_plain
def clock(zone: str) -> str:
    """Tell the time in a time zone, such as Asia/Tokyo."""
    try:
        return f"{datetime.now(ZoneInfo(zone)):%H:%M}"
    except (KeyError, ValueError) as error:
        raise ModelRetry(f"no time zone {zone!r} is known here") from error


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case _:
            raise SyntaxError("only numbers, + - * / and parentheses")


def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """What the model answers: the calls that the last prompt asks for, then an answer made of what they returned."""
    prompt, arguments, answers = "", dict[str, str](), list[ToolReturnPart]()
    for message in messages:
        for part in message.parts:
            match part:
                case UserPromptPart():
                    prompt, answers = str(part.content), []
                case ToolCallPart():
                    arguments[part.tool_call_id] = str(next(iter(part.args_as_dict().values()), ""))
                case ToolReturnPart():
                    answers.append(part)
                case _:
                    pass
    if answers:
        sentences = [_sentence(answer, arguments[answer.tool_call_id]) for answer in answers]
        return ModelResponse(parts=[TextPart(" ".join(sentences))])
    calls = _calls(prompt, turn=len(messages))
    return ModelResponse(parts=calls or [TextPart("Ask me for a sum, such as 17 * 23, or the time in Asia/Tokyo.")])


def _calls(prompt: str, turn: int) -> list[ModelResponsePart]:
    found = [("calculate", {"expression": match.group().strip()}) for match in SUM.finditer(prompt)]
    found += [("clock", {"zone": match.group()}) for match in ZONE.finditer(prompt)]
    return [ToolCallPart(name, args, tool_call_id=f"call-{turn}-{at}") for at, (name, args) in enumerate(found)]


def _sentence(answer: ToolReturnPart, what: str) -> str:
    if answer.outcome != "success":
        return f"I could not find out about {what}."
    return f"It is {answer.content} in {what}." if answer.tool_name == "clock" else f"{what} is {answer.content}."


async def respond_in_pieces(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """The same answer, word by word."""
    for index, part in enumerate(respond(messages, info).parts):
        if isinstance(part, ToolCallPart):
            arguments = json.dumps(part.args_as_dict())
            yield {index: DeltaToolCall(part.tool_name, arguments, tool_call_id=part.tool_call_id)}
        elif isinstance(part, TextPart):
            for word in re.findall(r"\S+\s*", part.content):
                yield word
                await asyncio.sleep(WORD_SECONDS)


model = FunctionModel(respond, stream_function=respond_in_pieces, model_name="demo")
agent = Agent(model, name="demo", toolsets=[tools], instructions="Answer with the tools.")
app = App(agents=[DurableAgent(agent, version="1", policies={"*": ToolPolicy(effect="safe", timeout=10)})])
