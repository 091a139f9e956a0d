"""A model server for tests: answers with a text, in the protocol of the path that is called.

It keeps every request, so that a test can look at what reached the provider.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ModelServer:
    """Where the server is, what it answers with, and what it was asked."""

    url: str = ""
    status: int = 200
    requests: list[dict[str, Any]] = field(default_factory=list)


def _anthropic(text: str) -> list[dict[str, Any]]:
    usage = {"input_tokens": 1000, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]


def _openai(text: str) -> list[Any]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    delta = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    return [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": usage},
        "[DONE]",
    ]


@contextmanager
def model_server(text: str = "hello") -> Iterator[ModelServer]:
    """A server that runs as long as the context."""
    served = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

        def do_POST(self) -> None:
            """Answer a request for a reply."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            served.requests.append({"path": self.path, "headers": headers, "body": body})
            if served.status != 200:
                self._send("application/json", json.dumps({"error": {"message": "Incorrect API key provided"}}))
                return
            events = _anthropic(text) if self.path.endswith("/messages") else _openai(text)
            lines = []
            for event in events:
                name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                data = event if isinstance(event, str) else json.dumps(event)
                lines.append(f"{name}data: {data}\n\n")
            self._send("text/event-stream", "".join(lines))

        def do_GET(self) -> None:
            """List models, or show a page."""
            rows = [{"id": name, "object": "model"} for name in ("large", "small")]
            self._send("application/json", json.dumps({"object": "list", "data": rows}))

        def _send(self, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(served.status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
