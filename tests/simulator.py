"""A model provider to test against: a real HTTP server that speaks OpenAI's Chat Completions and follows a script.

    with Simulator([calls(call("lookup", {"id": 7})), http_error(503), text("Found it.")]) as simulator:
        result = await agent.run("Where is 7?", model=simulator.model(retries=1))
    assert len(simulator.requests) == 3

Each request takes the next turn, streamed or not as the request asks. One that OpenAI would refuse, such as one with
an unanswered tool call, gets its 400 and takes no turn. One past the end of the script gets a 500 that says so and
that clients don't retry.
"""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import uvicorn
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.openai_wire import USAGE, Call, Exchange, Json, Reply, complaint, error_body

# A pool of idle connections would outlive the test, and be reported as unclosed.
CLOSE = [("connection", "close")]


@dataclass(frozen=True)
class HttpError:
    status: int
    retry_after: float | None
    body: Json
    retriable: bool = True


@dataclass(frozen=True)
class Hang:
    seconds: float
    then: Reply


@dataclass(frozen=True)
class Cut:
    after: int
    reply: Reply
    clean: bool


Turn = Reply | HttpError | Hang | Cut


def text(content: str, *, finish_reason: str = "stop", usage: tuple[int, int] = USAGE) -> Reply:
    return Reply(content, finish_reason=finish_reason, usage=usage)


def call(name: str, args: Json | str, id: str | None = None) -> Call:
    """One tool call. `args` as a string is sent as it is, and so are an empty and a repeated `id`."""
    return Call(name, args if isinstance(args, str) else json.dumps(args), id)


def calls(*each: Call, content: str | None = None, usage: tuple[int, int] = USAGE) -> Reply:
    """Tool calls, with text before them if `content` is given."""
    return Reply(content, each, "tool_calls", usage)


def broken_args(raw: str, *, name: str | None = None, id: str | None = None) -> Reply:
    """A call of the tool `name`, else of the request's first tool, with `raw` for arguments."""
    return Reply(None, (Call(name, raw, id),), "tool_calls")


def http_error(status: int, retry_after: float | None = None, body: Json | None = None) -> HttpError:
    return HttpError(status, retry_after, body or error_body(f"simulated {status}", "simulated"))


def hang(seconds: float, then: Reply | None = None) -> Hang:
    """Say nothing for so long, then reply. A client that has gone away by then has used the turn up."""
    return Hang(seconds, then or text("late"))


def cut_stream(after: int, reply: Reply | None = None, *, clean: bool = False) -> Cut:
    """Break the connection after so many events of a stream, or halfway through a body that isn't streamed.

    With `clean` a stream ends after these events as if it was whole, but without a finish reason.
    """
    return Cut(after, reply or text("This sentence is cut off before it ends."), clean)


@dataclass(frozen=True)
class Received:
    """A request as the server got it."""

    body: Json
    headers: dict[str, str]
    """Names in lower case."""
    time: float
    """`time.monotonic()` on arrival."""


class CutOff(Exception):
    """Makes uvicorn drop the connection in the middle of a response."""


class Simulator:
    """Serves `script` on a free port of 127.0.0.1 while entered."""

    base_url: str

    def __init__(self, script: Sequence[Turn]) -> None:
        self.requests: list[Received] = []
        self._script = list(script)
        self._taken = 0
        self._failures: list[Exception] = []
        self._ready = threading.Event()
        self._socket = socket.socket()
        routes = [Route("/v1/chat/completions", self._complete, methods=["POST"])]
        app = Starlette(routes=routes, lifespan=self._lifespan)
        # `critical`: uvicorn logs each connection that is cut off on purpose as an error.
        config = uvicorn.Config(app, log_config=None, log_level="critical", lifespan="on", ws="none", headers=CLOSE)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="simulator")

    def __enter__(self) -> Self:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()  # from here on requests wait, even before uvicorn accepts
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        if self._failures:
            raise ExceptionGroup("The simulator itself failed", self._failures) from error

    @property
    def turns_left(self) -> int:
        return len(self._script) - self._taken

    def model(self, name: str = "gpt-4o", *, retries: int = 0, timeout: float = 30) -> OpenAIChatModel:
        """A client of this server, whose SDK repeats a failed request up to `retries` times."""
        provider = OpenAIProvider(base_url=self.base_url, api_key="test")
        return OpenAIChatModel(name, provider=provider, settings=ModelSettings(max_retries=retries, timeout=timeout))

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._ready.set()
        yield

    async def _complete(self, request: Request) -> Response:
        try:
            body: Json = await request.json()
            self.requests.append(Received(body, dict(request.headers), time.monotonic()))
            if reason := complaint(body):
                return _refuse(HttpError(400, None, error_body(reason, "invalid_request_error")))
            return await self._play(self._next_turn(), body)
        except Exception as error:
            self._failures.append(error)  # raised on exit, where the test sees it
            return _refuse(HttpError(500, None, error_body(f"{error!r}", "simulator_failure"), retriable=False))

    def _next_turn(self) -> Turn:
        if not self.turns_left:
            message = f"Script exhausted: request {len(self.requests)} came after all {self._taken} turns"
            return HttpError(500, None, error_body(message, "script_exhausted"), retriable=False)
        self._taken += 1
        return self._script[self._taken - 1]

    async def _play(self, turn: Turn, body: Json) -> Response:
        number = len(self.requests)
        match turn:
            case Reply():
                return _answer(Exchange(body, turn, number))
            case Cut():
                return _answer(Exchange(body, turn.reply, number), turn)
            case Hang():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), turn.seconds)
                return _answer(Exchange(body, turn.then, number))
            case HttpError():
                return _refuse(turn)


def _answer(exchange: Exchange, cut: Cut | None = None) -> Response:
    if exchange.request.get("stream"):
        pieces = exchange.events()[: cut.after if cut else None]
        breaks = cut is not None and not cut.clean
        return StreamingResponse(_send(pieces, breaks), media_type="text/event-stream")
    body = json.dumps(exchange.completion())
    pieces = [body[: len(body) // 2]] if cut else [body]
    return StreamingResponse(_send(pieces, cut is not None), media_type="application/json")


def _refuse(error: HttpError) -> Response:
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if not error.retriable:
        headers["x-should-retry"] = "false"
    return JSONResponse(error.body, error.status, headers)


async def _send(pieces: Sequence[str], breaks: bool) -> AsyncGenerator[str]:
    for piece in pieces:
        yield piece
    if breaks:
        raise CutOff
