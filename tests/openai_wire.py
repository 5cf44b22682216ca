"""OpenAI's Chat Completions on the wire: what a server refuses, and the bodies and stream events it answers with."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHUNK = 8
"""Characters per streamed piece."""
USAGE = (100, 20)
"""Input and output tokens of a reply."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    name: str | None
    """None stands for the first tool of the request."""
    args: str
    id: str | None
    """None stands for a fresh one; empty and repeated ids are sent as they are."""


@dataclass(frozen=True)
class Reply:
    """A good answer."""

    content: str | None
    calls: tuple[Call, ...] = ()
    finish_reason: str = "stop"
    usage: tuple[int, int] = USAGE


@dataclass(frozen=True)
class Exchange:
    """A reply to a request: the `number`th of the server, so that ids differ."""

    request: Json
    reply: Reply
    number: int

    def completion(self) -> Json:
        """The body of an answer that isn't streamed."""
        message: Json = {"role": "assistant", "content": self.reply.content, "refusal": None}
        if self.reply.calls:
            message["tool_calls"] = [self._call(index, call) for index, call in enumerate(self.reply.calls)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reply.finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def events(self) -> list[str]:
        """The server-sent events of a streamed answer."""
        options: Json = self.request.get("stream_options") or {}
        wants_usage = options.get("include_usage", False)
        head = self._head("chat.completion.chunk") | ({"usage": None} if wants_usage else {})
        chunks = [{**head, "choices": [self._delta(delta)]} for delta in self._deltas()]
        chunks.append({**head, "choices": [self._delta({}, self.reply.finish_reason)]})
        if wants_usage:
            chunks.append({**head, "choices": [], "usage": self._usage()})
        return [f"data: {data}\n\n" for data in (*map(json.dumps, chunks), "[DONE]")]

    def _deltas(self) -> Iterator[Json]:
        yield {"role": "assistant", "content": "" if self.reply.content else None}
        for piece in _cut(self.reply.content or ""):
            yield {"content": piece}
        for index, call in enumerate(self.reply.calls):
            whole = self._call(index, call)
            function = {"name": whole["function"]["name"], "arguments": ""}
            yield {"tool_calls": [{"index": index, **whole, "function": function}]}
            for piece in _cut(call.args):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _delta(self, delta: Json, finish_reason: str | None = None) -> Json:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}

    def _call(self, index: int, call: Call) -> Json:
        name = call.name or self.request["tools"][0]["function"]["name"]
        id = f"call_{self.number}_{index}" if call.id is None else call.id
        return {"id": id, "type": "function", "function": {"name": name, "arguments": call.args}}

    def _head(self, kind: str) -> Json:
        model = self.request["model"]
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": int(time.time()), "model": model}

    def _usage(self) -> Json:
        prompt, completion = self.reply.usage
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def complaint(request: Json) -> str | None:
    """Why OpenAI would refuse the request, if it would: checks that each tool call is answered right behind it."""
    for field in ("model", "messages"):
        if not request.get(field):
            return f"you must provide a {field} parameter"
    asked: set[str] = set()
    answered: set[str] = set()
    messages: list[Json] = [*request["messages"], {"role": "end"}]
    for message in messages:
        if message["role"] == "tool":
            answered.add(message["tool_call_id"])
            continue
        if answered - asked:
            return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        if unanswered := sorted(asked - answered):
            return f"'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {unanswered}"
        calls: list[Json] = message.get("tool_calls") or []
        asked, answered = {call["id"] for call in calls}, set()
    return None


def error_body(message: str, kind: str) -> Json:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _cut(text: str) -> list[str]:
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
