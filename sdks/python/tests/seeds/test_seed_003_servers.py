"""Document 003: MCP servers in process, and what a client can do with servers at runtime.

The document has no code left; its statements about in-process servers, status and
runtime management are checked one by one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ToolAnnotations
from support.asking import drain
from support.looking import call, results_by_tool, run, text_of

from qoder_agent_sdk import (
    ControlRequestError,
    QoderAgentOptions,
    QoderSDKClient,
    create_sdk_mcp_server,
    tool,
)

pytestmark = pytest.mark.anyio

visits: list[str] = []


@tool(
    "greet",
    "Greets somebody by name.",
    {"name": str},
    annotations=ToolAnnotations(title="Greet", readOnlyHint=True, destructiveHint=False, idempotentHint=True),
)
async def greet(args: dict[str, Any]) -> dict[str, Any]:
    visits.append(args["name"])
    return {"content": [{"type": "text", "text": f"Hello, {args['name']}! You are number {len(visits)}."}]}


def servers() -> dict[str, Any]:
    return {"my_tools": create_sdk_mcp_server(name="my_tools", tools=[greet])}


def greeting(scripted: Any, name: str = "mcp__my_tools__greet", **options: Any) -> QoderAgentOptions:
    replies = [{"when": {"turn": 1}, "toolCalls": [call(name, name="Ada")]}, {"text": "Done.", "repeat": True}]
    made: QoderAgentOptions = scripted(*replies, allowed_tools=[name], **options)
    return made


async def connected(client: QoderSDKClient) -> dict[str, Any]:
    """The row of the only server, once it is connected."""
    with anyio.fail_after(60):
        while True:
            (row,) = (await client.get_mcp_status())["mcpServers"]
            if row["status"] == "connected":
                return dict(row)
            await anyio.sleep(0.02)


async def test_the_config_has_the_documented_shape() -> None:
    config = servers()["my_tools"]
    assert set(config) == {"type", "name", "instance"}
    assert (config["type"], config["name"]) == ("sdk", "my_tools")


async def test_names_of_tools_have_the_prefix_of_their_server(scripted: Any) -> None:
    result = results_by_tool(await run("go", greeting(scripted, mcp_servers=servers())))["mcp__my_tools__greet"]
    assert "Hello, Ada!" in text_of(result)


async def test_state_outside_the_handler_is_shared_between_queries(scripted: Any) -> None:
    shared = servers()
    visits.clear()
    for number in (1, 2):
        result = results_by_tool(await run("go", greeting(scripted, mcp_servers=shared)))["mcp__my_tools__greet"]
        assert f"number {number}" in text_of(result)


async def test_status_shows_annotations_without_the_suffix_and_only_those_that_were_set(scripted: Any) -> None:
    async with QoderSDKClient(greeting(scripted, mcp_servers=servers())) as client:
        row = await connected(client)
    assert row["tools"] == [
        {
            "name": "greet",
            "description": "Greets somebody by name.",
            "annotations": {"readOnly": True, "destructive": False},
        }
    ]


async def test_a_disabled_server_has_no_tools_until_it_is_enabled_again(scripted: Any) -> None:
    async with QoderSDKClient(greeting(scripted, mcp_servers=servers())) as client:
        await connected(client)
        await client.toggle_mcp_server("my_tools", False)
        (row,) = (await client.get_mcp_status())["mcpServers"]
        assert row["status"] == "disabled" and not row.get("tools")
        await client.toggle_mcp_server("my_tools", True)
        await connected(client)
        await client.query("go")
        assert "Hello, Ada!" in text_of(results_by_tool(await drain(client))["mcp__my_tools__greet"])


async def test_reconnecting(scripted: Any) -> None:
    async with QoderSDKClient(greeting(scripted, mcp_servers=servers())) as client:
        await connected(client)
        await client.reconnect_mcp_server("my_tools")
        await connected(client)
        with pytest.raises(ControlRequestError, match="absent"):
            await client.reconnect_mcp_server("absent")


async def test_in_process_servers_are_never_filtered_by_name(scripted: Any) -> None:
    options = greeting(scripted, mcp_servers=servers(), allowed_mcp_server_names=["other"], strict_mcp_config=True)
    assert "Hello, Ada!" in text_of(results_by_tool(await run("go", options))["mcp__my_tools__greet"])


async def test_replacing_servers_announces_the_new_ones(fake_runtime: Any) -> None:
    script = """
handshake()
request = read()
ask('r1', subtype='mcp_message', server_name='new', message={'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'})
assert read()['response']['response']['mcp_response']['result']['tools'][0]['name'] == 'greet'
answer(request, {'added': list(request['request']['servers']), 'removed': ['old'], 'errors': {}})
read()
ask('r2', subtype='mcp_message', server_name='old', message={'jsonrpc': '2.0', 'id': 2, 'method': 'ping'})
gone = read()['response']['response']['mcp_response']
result(result=gone['error']['message'])
wait_for_end()
"""
    options = QoderAgentOptions(
        cli_path=fake_runtime(script), mcp_servers={"old": create_sdk_mcp_server(name="old", tools=[greet])}
    )
    async with QoderSDKClient(options) as client:
        changed = await client.set_mcp_servers({"new": create_sdk_mcp_server(name="new", tools=[greet])})
        assert changed == {"added": ["new"], "removed": ["old"], "errors": {}}
        await client.query("is the old one gone?")
        (message,) = await drain(client)
    assert "'old'" in str(message.result)  # type: ignore[union-attr]


async def test_servers_may_be_the_path_of_a_file(scripted: Any, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {}}))
    for given in (path, str(path)):
        async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers=given)) as client:
            assert (await client.get_mcp_status())["mcpServers"] == []
