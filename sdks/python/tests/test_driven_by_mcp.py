"""Our in-process servers, driven by the `mcp` package instead of the runtime.

Its clients speak with the `instance` over streams in memory, as tests of a
program do, and its transports can serve it to others. The package is loaded
when it is asked for and not before.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest
from mcp import ClientSession
from mcp.server.lowlevel import NotificationOptions
from mcp.shared.memory import create_client_server_memory_streams, create_connected_server_and_client_session
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsRequest,
    TextContent,
    ToolAnnotations,
)

from qoder_agent_sdk import ToolInvocationContext, create_sdk_mcp_server, tool

pytestmark = pytest.mark.anyio


@tool("add", "Adds two numbers.", {"a": int, "b": int}, annotations=ToolAnnotations(readOnlyHint=True))
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("fail", "Fails.", {})
async def fail(_: dict[str, Any]) -> dict[str, Any]:
    return {}["database"]


def instance() -> Any:
    return create_sdk_mcp_server(name="calc", version="2.1.0", tools=[add, fail])["instance"]


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def test_a_client_session_in_memory_lists_and_calls() -> None:
    async with create_connected_server_and_client_session(instance()) as client:
        (first, second) = (await client.list_tools()).tools
        assert (first.name, second.name) == ("add", "fail")
        assert first.inputSchema["required"] == ["a", "b"]
        assert first.annotations is not None and first.annotations.readOnlyHint is True
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert (text_of(result), result.isError) == ("5", False)


async def test_failures_are_those_that_the_runtime_sees() -> None:
    async with create_connected_server_and_client_session(instance()) as client:
        for name, arguments, text in (
            ("fail", {}, "KeyError: 'database'"),
            ("add", {"a": "x", "b": 1}, "invalid arguments for tool 'add'"),
            ("absent", {}, "has no tool 'absent'; it has: add, fail"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.isError and text in text_of(result), name


async def test_run_serves_streams_and_introduces_the_server() -> None:
    server = instance()
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run, *server_streams, server.create_initialization_options())
            async with ClientSession(*client_streams) as client:
                introduced = await client.initialize()
                assert (introduced.serverInfo.name, introduced.serverInfo.version) == ("calc", "2.1.0")
                assert introduced.capabilities.tools is not None
                await client.send_ping()
            group.cancel_scope.cancel()


async def test_a_cancelled_call_is_told_to_its_handler() -> None:
    contexts: list[ToolInvocationContext] = []
    started = anyio.Event()

    @tool("wait", "Waits.", {})
    async def wait(_: dict[str, Any], context: ToolInvocationContext) -> dict[str, Any]:
        contexts.append(context)
        started.set()
        await anyio.sleep_forever()
        return {"content": []}

    server: Any = create_sdk_mcp_server(name="slow", tools=[wait])["instance"]
    async with create_connected_server_and_client_session(server) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "wait", {})
        await started.wait()
        group.cancel_scope.cancel()
    assert contexts[0].signal.is_set()


async def test_handlers_can_be_called_directly() -> None:
    server = instance()
    listed = await server.request_handlers[ListToolsRequest](ListToolsRequest(method="tools/list"))
    assert [each.name for each in listed.root.tools] == ["add", "fail"]
    request = CallToolRequest(method="tools/call", params=CallToolRequestParams(name="add", arguments={"a": 1, "b": 1}))
    assert (await server.request_handlers[CallToolRequest](request)).root.content[0].text == "2"
    assert server.get_capabilities(NotificationOptions(), {}).tools is not None
    assert server.notification_handlers == {}


def test_the_package_is_loaded_when_it_is_asked_for() -> None:
    program = (
        "import sys\n"
        "from qoder_agent_sdk import QoderAgentOptions, create_sdk_mcp_server, query, tool\n"
        "@tool('t', 'Does.', {})\n"
        "async def t(args): return {'content': []}\n"
        "config = create_sdk_mcp_server('s', tools=[t])\n"
        "QoderAgentOptions(mcp_servers={'s': config})\n"
        "assert 'mcp' not in sys.modules, 'loaded too early'\n"
        "config['instance'].create_initialization_options()\n"
        "assert 'mcp' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
