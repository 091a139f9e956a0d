"""In-process servers that were built with the `mcp` package itself.

A low-level `mcp.server.Server` or a `FastMCP` may be given as the `instance` of
an `sdk` server. It runs as a task of its own over two in-memory streams; this
file moves JSON-RPC messages between those streams and the session. `mcp` is
imported here only, when such a server is used.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from .._backend import BackgroundTask, spawn
from .._errors import OptionTypeError
from .server import METHOD_NOT_FOUND, rpc_error

INTERNAL_ERROR = -32603


def low_level_server(instance: Any) -> Any:
    """The object with `run` and `create_initialization_options`; a FastMCP holds one inside."""
    inner = getattr(instance, "_mcp_server", instance)
    if hasattr(inner, "run") and hasattr(inner, "create_initialization_options"):
        return inner
    raise OptionTypeError(
        f"{type(instance).__name__} cannot serve as an in-process MCP server; "
        "use create_sdk_mcp_server(), mcp.server.Server or FastMCP"
    )


class ForeignConnection:
    """One session's connection to a server of the `mcp` package."""

    def __init__(self, instance: Any) -> None:
        """Prepare a connection; the server starts with the first message."""
        self._server = low_level_server(instance)
        self._task: BackgroundTask | None = None
        self._waiting: dict[Any, _Answer] = {}
        self._to_server: Any = None
        self._from_server: Any = None

    async def handle(self, message: dict[str, Any], signal: asyncio.Event) -> dict[str, Any]:
        """Hand one JSON-RPC message to the server and wait for its answer."""
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCMessage

        if self._task is None:
            self._start()
        wrapped = SessionMessage(JSONRPCMessage.model_validate(message))
        if "id" not in message:
            await self._to_server.send(wrapped)
            return {"jsonrpc": "2.0", "result": {}}
        answer = self._waiting[message["id"]] = _Answer()
        try:
            await self._to_server.send(wrapped)
            await answer.arrived.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return rpc_error(message["id"], INTERNAL_ERROR, "the MCP server has ended")
        finally:
            self._waiting.pop(message["id"], None)
        return answer.message

    async def close(self) -> None:
        """End the server."""
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        self._to_server, server_reads = anyio.create_memory_object_stream[Any](100)
        server_writes, self._from_server = anyio.create_memory_object_stream[Any](100)

        async def run() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self._collect_answers)
                await self._server.run(server_reads, server_writes, self._server.create_initialization_options())
                group.cancel_scope.cancel()

        async def run_and_release() -> None:
            try:
                await run()
            finally:
                for stream in (self._to_server, server_reads, server_writes, self._from_server):
                    stream.close()
                for identifier, answer in self._waiting.items():
                    answer.give(rpc_error(identifier, INTERNAL_ERROR, "the MCP server has ended"))

        self._task = spawn(run_and_release, "qoder-mcp-server")

    async def _collect_answers(self) -> None:
        async for wrapped in self._from_server:
            message = wrapped.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            if "method" in message:
                await self._refuse(message)
                continue
            answer = self._waiting.get(message.get("id"))
            if answer is not None:
                answer.give(message)

    async def _refuse(self, message: dict[str, Any]) -> None:
        """What the server asks has no way to the runtime; one that waits for an answer must not wait for ever."""
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCMessage

        if "id" in message:
            text = f"'{message['method']}' is not available to a server inside the host program"
            refusal = JSONRPCMessage.model_validate(rpc_error(message["id"], METHOD_NOT_FOUND, text))
            await self._to_server.send(SessionMessage(refusal))


class _Answer:
    """An answer that may not have come yet."""

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.message: dict[str, Any] = {}

    def give(self, message: dict[str, Any]) -> None:
        self.message = message
        self.arrived.set()
