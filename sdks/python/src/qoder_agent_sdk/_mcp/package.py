"""Our in-process servers for programs that drive them with the `mcp` package.

`McpServer` builds a `mcp.server.lowlevel.Server` here the first time one of its
methods of that name is used. Calls go through the same code as those of the
runtime, so that a tool behaves alike under both. Only this file and
`foreign` import `mcp`, which takes longer than starting a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.lowlevel import Server

from .._backend import new_signal

if TYPE_CHECKING:
    from .server import McpServer


def package_server(server: McpServer) -> Server[Any, Any]:
    """The tools of `server` as a server of the `mcp` package."""
    made: Server[Any, Any] = Server(server.name, server.version)

    async def list_tools(_: types.ListToolsRequest | None) -> types.ServerResult:
        rows = [types.Tool.model_validate(tool.listing()) for tool in server.tools.values()]
        return types.ServerResult(types.ListToolsResult(tools=rows))

    async def call_tool(request: types.CallToolRequest) -> types.ServerResult:
        signal = new_signal()
        try:
            result = await server.connect().call(request.params.name, request.params.arguments or {}, signal)
        except BaseException:
            # The package cancels a call by cancelling its task.
            signal.set()
            raise
        return types.ServerResult(types.CallToolResult.model_validate(result))

    # Not by the decorators of the package: those check arguments in words of their own.
    made.request_handlers[types.ListToolsRequest] = list_tools
    made.request_handlers[types.CallToolRequest] = call_tool
    return made
