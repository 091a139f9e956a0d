"""How the servers of this folder are reached: over stdin and stdout, or on a free port of this machine.

A server on a port prints one line, `{"url": ...}`, once it accepts connections.
"""

from __future__ import annotations

import json
import socket
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer

PATHS = {"http": "/mcp", "sse": "/sse"}


def serve(server: MCPServer, transport: str) -> None:
    """Serve until the process is ended."""
    if transport == "stdio":
        anyio.run(server.run_stdio_async)
        return
    listener = listening()
    application = server.sse_app() if transport == "sse" else server.streamable_http_app()
    serve_application(application, listener, PATHS[transport])


def listening() -> socket.socket:
    """A socket on a free port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    return listener


def address(listener: socket.socket) -> str:
    """The address of a socket, without a path."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


class _Announcing(uvicorn.Server):
    """Prints its address when it is ready, and not before."""

    line = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        print(self.line, flush=True)


def serve_application(application: Any, listener: socket.socket, path: str) -> None:
    """Serve an application on a socket."""
    server = _Announcing(uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1))
    server.line = json.dumps({"url": address(listener) + path})
    anyio.run(lambda: server.serve(sockets=[listener]))
