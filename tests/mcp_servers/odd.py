"""A real MCP server of the protocol before 2026, by hand, so that it can answer what no library lets it answer.

`odd.py stdio JOURNAL` or `odd.py http JOURNAL PORT`. A tool writes a line to the journal when it runs; what it then
answers is its argument `how`. The tools that it lists are those of the file `tools.json` beside the journal.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JOURNAL = Path(sys.argv[2])
SESSIONS = JOURNAL.with_name("sessions").exists()
"""Whether it gives sessions, over HTTP, and knows none of those before it was started."""
SESSION = f"session-{os.getpid()}"
ANSWERS: dict[str, dict[str, Any]] = {
    "ok": {"content": [{"type": "text", "text": "done"}], "structuredContent": {"n": 1}},
    "schema": {"content": [], "structuredContent": {"n": "secret"}},
    "kind": {"content": [{"type": "hologram", "text": "secret"}]},
    "image": {"content": [{"type": "image", "data": "!secret!", "mimeType": "image/png"}]},
}
"""What a tool answers, by `how`."""
HTTP: dict[str, tuple[int, str, bytes]] = {
    "empty": (200, "application/json", b""),
    "page": (200, "text/html", b"<html>secret</html>"),
    "cut": (200, "text/event-stream", b"event: message\ndata: {secret\n\n"),
    "accepted": (202, "text/plain", b""),
    "moved": (302, "text/plain", b"secret"),
}
"""What is in place of an answer, over HTTP, by `how`; a number is a status with an ordinary text."""


def ran(line: str) -> None:
    """One line, in one write."""
    with JOURNAL.open("a") as journal:
        journal.write(f"{line}\n")


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """To a request, as the protocol has it."""
    method: str = message["method"]
    params: dict[str, Any] = message.get("params") or {}
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        server = {"name": "odd", "version": "1"}
        version = params["protocolVersion"]
        return reply | {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
    if method == "ping":
        return reply | {"result": {}}
    if method == "tools/list":
        ran("list")
        return reply | {"result": {"tools": json.loads(JOURNAL.with_name("tools.json").read_text())}}
    if method == "tools/call":
        return reply | {"result": ANSWERS.get(params["arguments"].get("how"), ANSWERS["ok"])}
    return reply | {"error": {"code": -32601, "message": f"unknown method {method}"}}


class Handler(BaseHTTPRequestHandler):
    """One request over HTTP."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """It sends nothing by itself."""
        self._send(405, "text/plain", b"")

    do_DELETE = do_GET

    def do_POST(self) -> None:
        """A message."""
        message: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method: str = message.get("method", "")
        params: dict[str, Any] = message.get("params") or {}
        if SESSIONS and method not in ("initialize", "server/discover") and not self._known():
            return self._send(404, "text/plain", b"no such session")
        if "id" not in message:
            return self._send(202, "text/plain", b"")
        if method != "tools/call":
            return self._send(200, "application/json", json.dumps(answer(message)).encode())
        how: str = params["arguments"].get("how", "ok")
        ran(f"{params['name']} {how}")
        if how.isdigit():
            return self._send(int(how), "text/plain", b"secret")
        if how in HTTP:
            return self._send(*HTTP[how])
        return self._send(200, "application/json", json.dumps(answer(message)).encode())

    def _known(self) -> bool:
        return self.headers.get("mcp-session-id") == SESSION

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if SESSIONS:
            self.send_header("mcp-session-id", SESSION)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(body)


def ask(message: dict[str, Any]) -> None:
    """Ask the client in the middle of a call, and go on with whatever it says."""
    how: str = message["params"]["arguments"]["how"]
    text = {"type": "text", "text": "Sure?"}
    sampling: dict[str, Any] = {"messages": [{"role": "user", "content": text}], "maxTokens": 5}
    eliciting: dict[str, Any] = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
    params = sampling if how.startswith("sampling") else eliciting
    print(json.dumps({"jsonrpc": "2.0", "id": "asked", "method": how, "params": params}), flush=True)
    said: str = json.loads(sys.stdin.readline())["error"]["message"]
    content = [{"type": "text", "text": f"went on: {said}"}]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}), flush=True)


def over_stdio() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            ran(f"{message['params']['name']} {message['params']['arguments'].get('how', 'ok')}")
            if message["params"]["arguments"].get("how") in ("elicitation/create", "sampling/createMessage"):
                ask(message)
                continue
        if "id" in message and "method" in message:
            print(json.dumps(answer(message)), flush=True)


if __name__ == "__main__":
    ran(f"start {os.getpid()}")
    if sys.argv[1] == "stdio":
        over_stdio()
    else:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()
