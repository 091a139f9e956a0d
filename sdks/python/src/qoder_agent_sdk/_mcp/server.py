"""In-process MCP servers: the JSON-RPC side of custom tools.

Written by hand because the `mcp` package takes far longer to import than a
session takes to start. A server holds the checked tools; a connection holds
what belongs to one session, namely the calls that run, so that one server can
serve many sessions at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from .._backend import cancel_after_grace
from .results import call_tool_result, error_result, exception_text
from .schema_check import check_value

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions
    from mcp.types import ServerCapabilities

    from .tools import RegisteredTool

logger = logging.getLogger("qoder_agent_sdk")

#: Newest last; another version is answered with the newest.
PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
REQUEST_CANCELLED = -32800


class McpServer:
    """A named set of tools that run in this process."""

    def __init__(self, name: str, version: str, tools: dict[str, RegisteredTool]) -> None:
        """Made by `create_sdk_mcp_server()`, which checks the tools."""
        self.name = name
        self.version = version
        self.tools = tools

        self._package_server: Server[Any, Any] | None = None

    def connect(self) -> McpConnection:
        """A connection for one session."""
        return McpConnection(self)

    # ---- as `mcp.server.Server` has it, for programs that drive the server with the `mcp` package

    @property
    def request_handlers(self) -> dict[type, Callable[..., Awaitable[Any]]]:
        """What answers each type of request of the `mcp` package."""
        return self._in_package().request_handlers

    @property
    def notification_handlers(self) -> dict[type, Callable[..., Awaitable[None]]]:
        """What takes each type of notification of the `mcp` package."""
        return self._in_package().notification_handlers

    def create_initialization_options(self, *arguments: Any, **options: Any) -> InitializationOptions:
        """What the server says of itself, for `run()`."""
        return self._in_package().create_initialization_options(*arguments, **options)

    def get_capabilities(self, *arguments: Any, **options: Any) -> ServerCapabilities:
        """What the server can do."""
        return self._in_package().get_capabilities(*arguments, **options)

    async def run(
        self, read_stream: Any, write_stream: Any, initialization_options: InitializationOptions, **options: Any
    ) -> None:
        """Serve a client of the `mcp` package over two streams until they end."""
        await self._in_package().run(read_stream, write_stream, initialization_options, **options)

    def _in_package(self) -> Server[Any, Any]:
        if self._package_server is None:
            from .package import package_server

            self._package_server = package_server(self)
        return self._package_server


class McpConnection:
    """The requests of one session to a server."""

    def __init__(self, server: McpServer) -> None:
        """A connection without running calls."""
        self._server = server
        self._running: dict[Any, _Call] = {}

    async def handle(self, message: dict[str, Any], signal: asyncio.Event) -> dict[str, Any]:
        """Answer one JSON-RPC message; a notification is only acknowledged."""
        method = message.get("method")
        params = message.get("params") or {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(params.get("requestId"))
            return {"jsonrpc": "2.0", "result": {}}
        identifier = message["id"]
        if method == "initialize":
            return _result(identifier, self._initialize(params))
        if method == "ping":
            return _result(identifier, {})
        if method == "tools/list":
            return _result(identifier, {"tools": [tool.listing() for tool in self._server.tools.values()]})
        if method == "tools/call":
            return await self._call_tool(identifier, params, signal)
        return rpc_error(identifier, METHOD_NOT_FOUND, f"MCP server '{self._server.name}' has no method '{method}'")

    async def close(self) -> None:
        """Nothing to release: running calls end with the requests they belong to."""

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self._server.name, "version": self._server.version},
        }

    async def _call_tool(self, identifier: Any, params: dict[str, Any], signal: asyncio.Event) -> dict[str, Any]:
        name = params.get("name")
        if not isinstance(name, str):
            return rpc_error(identifier, INVALID_PARAMS, "tools/call needs the name of a tool")
        call = self._running[identifier] = _Call(signal)
        try:
            result = await self._run(call, name, params.get("arguments") or {})
        finally:
            self._running.pop(identifier, None)
        if result is None:
            return rpc_error(identifier, REQUEST_CANCELLED, f"the call of tool '{name}' was cancelled")
        return _result(identifier, result)

    async def call(self, name: str, arguments: Any, signal: asyncio.Event) -> dict[str, Any]:
        """The result of a call without a request id, which only its signal cancels."""
        return await self._run(_Call(signal), name, arguments) or error_result("the call was cancelled")

    async def _run(self, call: _Call, name: str, arguments: Any) -> dict[str, Any] | None:
        tool = self._server.tools.get(name)
        if tool is None:
            known = ", ".join(self._server.tools) or "none"
            return error_result(f"MCP server '{self._server.name}' has no tool '{name}'; it has: {known}")
        problem = check_value(arguments, tool.schema)
        if problem:
            return error_result(f"invalid arguments for tool '{name}': {problem}")
        return await call.run(tool, arguments)

    def _cancel(self, identifier: Any) -> None:
        call = self._running.get(identifier)
        if call is not None:
            call.cancel()


class _Call:
    """One running tool call."""

    def __init__(self, signal: asyncio.Event) -> None:
        self._signal = signal
        self._scope = anyio.CancelScope()
        self._cancelled = False

    async def run(self, tool: RegisteredTool, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The result of the handler, or None when the call was cancelled."""
        from .tools import ToolInvocationContext

        name = tool.definition.name
        result: dict[str, Any] | None = None
        with self._scope:
            try:
                if tool.takes_context:
                    returned = await tool.definition.handler(arguments, ToolInvocationContext(signal=self._signal))
                else:
                    returned = await tool.definition.handler(arguments)
                result = call_tool_result(returned, name)
            except Exception as error:
                logger.error("the handler of tool '%s' raised an exception", name, exc_info=True)
                result = error_result(exception_text(error))
        return None if self._cancelled else result

    def cancel(self) -> None:
        self._cancelled = True
        cancel_after_grace(self._signal, self._scope.cancel)


def _result(identifier: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": result}


def rpc_error(identifier: Any, code: int, text: str) -> dict[str, Any]:
    """A JSON-RPC error response."""
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": text}}
