"""Servers built with the `mcp` package can be used in process too.

The connection is driven by hand here; a session with such a server is in
`test_custom_tools.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import McpError

from qoder_agent_sdk import OptionTypeError
from qoder_agent_sdk._backend import new_signal
from qoder_agent_sdk._mcp.foreign import ForeignConnection

pytestmark = pytest.mark.anyio


def fast_server() -> FastMCP:
    server = FastMCP("adder")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    return server


async def ask(connection: ForeignConnection, method: str, params: dict[str, Any]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    return await connection.handle(message, new_signal())


async def initialized(instance: Any) -> ForeignConnection:
    connection = ForeignConnection(instance)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    assert (await ask(connection, "initialize", client))["result"]["serverInfo"]["name"]
    acknowledged = await connection.handle({"jsonrpc": "2.0", "method": "notifications/initialized"}, new_signal())
    assert acknowledged == {"jsonrpc": "2.0", "result": {}}
    return connection


async def test_a_fastmcp_server_lists_and_calls() -> None:
    connection = await initialized(fast_server())
    try:
        tools = (await ask(connection, "tools/list", {}))["result"]["tools"]
        assert [each["name"] for each in tools] == ["add"]
        result = (await ask(connection, "tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}))["result"]
        assert result["content"][0]["text"] == "5"
    finally:
        await connection.close()


async def test_a_low_level_server_answers_what_it_lacks_with_an_error() -> None:
    connection = await initialized(Server("bare"))
    try:
        assert (await ask(connection, "tools/list", {}))["error"]["code"] == -32601
    finally:
        await connection.close()


async def test_a_server_that_asks_its_client_is_refused_and_does_not_wait_for_ever() -> None:
    server = FastMCP("asker")

    @server.tool()
    async def ask_roots(context: Context[Any, Any, Any]) -> str:
        """Asks the client for its roots."""
        try:
            await context.session.list_roots()
        except McpError as error:
            return f"refused: {error}"
        return "answered"

    connection = await initialized(server)
    try:
        answer = await ask(connection, "tools/call", {"name": "ask_roots", "arguments": {}})
        assert "refused: 'roots/list' is not available" in answer["result"]["content"][0]["text"]
    finally:
        await connection.close()


async def test_something_else_is_refused() -> None:
    with pytest.raises(OptionTypeError, match="cannot serve as an in-process MCP server"):
        ForeignConnection(object())
