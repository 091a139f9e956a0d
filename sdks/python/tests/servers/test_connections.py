"""Document 003, external servers: the three ways in, what comes back, and servers that fail alone.

The servers are those of others and ours made with the official package; the runtime connects them itself.
"""

from __future__ import annotations

import os
import signal
import typing
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.asking import drain
from support.looking import call, text_of
from support.real_servers import (
    asking,
    called,
    calling,
    everything,
    installed,
    results,
    rows,
    settled,
    status_is,
    until,
)

import qoder_agent_sdk
from qoder_agent_sdk import QoderSDKClient, UserMessage, create_sdk_mcp_server, query, tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What the runtime does is the same on every event loop; methods and callbacks are tested on both."""
    return "asyncio"


WAYS = ["stdio", "sse", "http"]
NOWHERE = {"type": "http", "url": "http://127.0.0.1:9/mcp"}


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_is_connected_discovered_and_called(way: str, everything_over: Any, scripted: Any) -> None:
    name = "mcp__every-thing__echo"
    options = calling(scripted, (name, {"message": "hello"}), mcp_servers={"every-thing": everything_over(way)})
    async with QoderSDKClient(options) as client:
        row = (await settled(client))["every-thing"]
        assert row["status"] == "connected", row
        assert row["config"]["type"] == way
        assert row["serverInfo"]["name"].endswith("everything")
        assert "echo" in [each["name"] for each in row["tools"]]
        result = (await results(client))[name]
    assert not result.is_error
    assert text_of(result) == "Echo: hello"


async def test_the_three_methods_work_side_by_side(everything_over: Any, scripted: Any) -> None:
    @tool("greet", "Greets.", {"name": str})
    async def greet(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"Hello, {args['name']}"}]}

    servers = {
        "inside": create_sdk_mcp_server("inside", tools=[greet]),
        "child": everything_over("stdio"),
        "far": everything_over("http"),
    }
    calls = [
        ("mcp__inside__greet", {"name": "Ada"}),
        ("mcp__child__get-sum", {"a": 2, "b": 3}),
        ("mcp__far__get-sum", {"a": 20, "b": 3}),
    ]
    given = await called(calling(scripted, *calls, mcp_servers=servers))
    assert [text_of(given[name]) for name, _ in calls] == [
        "Hello, Ada",
        "The sum of 2 and 3 is 5.",
        "The sum of 20 and 3 is 23.",
    ]


async def test_query_waits_for_servers_before_the_first_model_call(everything_over: Any, scripted: Any) -> None:
    name = "mcp__far__echo"
    options = calling(scripted, (name, {"message": "hi"}), mcp_servers={"far": everything_over("http")})
    texts = [str(message) async for message in query(prompt="go", options=options)]
    assert any("Echo: hi" in text for text in texts), texts


@pytest.mark.parametrize("config", [{"type": "stdio"}, {}])
async def test_the_type_of_a_child_process_may_be_left_out(config: dict[str, Any], scripted: Any) -> None:
    time = {**config, "command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]}
    name = "mcp__time__convert_time"
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    given = await called(calling(scripted, (name, arguments), mcp_servers={"time": time}))
    assert "21:00" in text_of(given[name])


async def test_arguments_reach_a_child_process(project: Path, scripted: Any) -> None:
    (project / "note.txt").write_text("buy milk")
    files = {"command": installed("node_modules/.bin/mcp-server-filesystem"), "args": [str(project)]}
    name = "mcp__files__read_text_file"
    given = await called(calling(scripted, (name, {"path": str(project / "note.txt")}), mcp_servers={"files": files}))
    assert "buy milk" in text_of(given[name])


async def test_the_environment_reaches_a_child_process(scripted: Any) -> None:
    name = "mcp__asking__variable"
    server = {**asking(), "env": {"FRUIT": "pear"}}
    given = await called(calling(scripted, (name, {"name": "FRUIT"}), mcp_servers={"asking": server}))
    assert text_of(given[name]) == "pear"


async def test_a_child_process_ends_with_the_session(scripted: Any) -> None:
    name = "mcp__asking__variable"
    given = await called(calling(scripted, (name, {"name": "pid"}), mcp_servers={"asking": asking()}))
    process = int(text_of(given[name]))
    with anyio.fail_after(60):
        while True:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                break
            await anyio.sleep(0.05)


async def test_a_child_process_that_dies_has_failed_and_the_next_call_starts_it_again(scripted: Any) -> None:
    name = "mcp__asking__variable"
    replies = [{"when": {"turn": turn}, "toolCalls": [call(name, name="pid")]} for turn in (1, 3)]
    options = scripted(
        *replies, {"text": "Done.", "repeat": True}, mcp_servers={"asking": asking()}, allowed_tools=[name]
    )
    async with QoderSDKClient(options) as client:
        await status_is(client, "asking", "connected")
        first = int(text_of((await results(client))[name]))
        os.kill(first, signal.SIGKILL)
        assert (await status_is(client, "asking", "failed"))["error"]
        assert int(text_of((await results(client))[name])) != first
        assert (await rows(client))["asking"]["status"] == "connected"


@pytest.mark.parametrize("way", ["sse", "http"])
async def test_headers_reach_a_remote_server(way: str, asking_over: Any, scripted: Any) -> None:
    server = {**asking_over(way), "headers": {"X-Fruit": "pear", "Authorization": "Bearer secret-of-mine"}}
    name = "mcp__asking__header"
    options = calling(scripted, (name, {"name": "x-fruit"}), mcp_servers={"asking": server})
    async with QoderSDKClient(options) as client:
        row = (await settled(client))["asking"]
        assert text_of((await results(client))[name]) == "pear"
    assert "secret-of-mine" not in str(row)


async def test_a_command_that_cannot_start_harms_no_other(scripted: Any) -> None:
    servers = {"broken": {"command": "/nonexistent/server"}, "good": everything()}
    name = "mcp__good__echo"
    async with QoderSDKClient(calling(scripted, (name, {"message": "fine"}), mcp_servers=servers)) as client:
        seen = await settled(client)
        assert seen["broken"]["status"] == "failed" and "/nonexistent/server" in seen["broken"]["error"]
        assert not seen["broken"].get("tools")
        assert text_of((await results(client))[name]) == "Echo: fine"


async def test_a_command_that_speaks_no_mcp_harms_no_other(scripted: Any) -> None:
    servers = {"babble": {"command": "/bin/echo", "args": ["good morning"]}, "good": everything()}
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers=servers)) as client:
        seen = await settled(client)
    assert (seen["babble"]["status"], seen["good"]["status"]) == ("failed", "connected")
    assert seen["babble"]["error"]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_an_address_that_nobody_answers_harms_no_other(kind: str, scripted: Any) -> None:
    servers = {"far": {**NOWHERE, "type": kind}, "good": everything()}
    name = "mcp__good__echo"
    async with QoderSDKClient(calling(scripted, (name, {"message": "fine"}), mcp_servers=servers)) as client:
        seen = await until(client, lambda seen: seen["good"]["status"] == "connected")
        assert text_of((await results(client))[name]) == "Echo: fine"
        assert seen["far"]["status"] != "connected"
        failed = await status_is(client, "far", "failed")
        assert failed["error"]


async def test_an_error_of_a_tool_is_an_error_result(scripted: Any) -> None:
    name = "mcp__asking__fail"
    given = await called(calling(scripted, (name, {"reason": "no tables left"}), mcp_servers={"asking": asking()}))
    assert given[name].is_error
    assert "no tables left" in text_of(given[name])


async def test_arguments_that_do_not_fit_the_schema_are_an_error_result(scripted: Any) -> None:
    name = "mcp__every__get-sum"
    given = await called(calling(scripted, (name, {"a": "two"}), mcp_servers={"every": everything()}))
    assert given[name].is_error and text_of(given[name])


async def test_images_come_as_images(scripted: Any) -> None:
    name = "mcp__every__get-tiny-image"
    given = await called(calling(scripted, (name, {}), mcp_servers={"every": everything()}))
    content = given[name].content
    assert isinstance(content, list)
    image = next(block for block in content if block["type"] == "image")
    assert image["source"]["media_type"] == "image/png" and image["source"]["data"].startswith("iVBOR")


async def test_structured_content_is_kept_beside_the_text(scripted: Any) -> None:
    name = "mcp__every__get-structured-content"
    options = calling(scripted, (name, {"location": "Chicago"}), mcp_servers={"every": everything()})
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.query("go")
        messages = await drain(client)
    (given,) = [each for each in messages if isinstance(each, UserMessage) and each.tool_use_result is not None]
    assert isinstance(given.tool_use_result, dict)
    assert set(given.tool_use_result["structuredContent"]) == {"temperature", "conditions", "humidity"}


async def test_a_long_result_is_cut_and_says_so(scripted: Any) -> None:
    name = "mcp__every__echo"
    given = await called(calling(scripted, (name, {"message": "x" * 60_000}), mcp_servers={"every": everything()}))
    text = text_of(given[name])
    assert not given[name].is_error
    assert text.count("x") < 51_000 and len(text) > text.count("x") > 10_000


async def test_links_to_resources_come_as_text(scripted: Any) -> None:
    name = "mcp__every__get-resource-links"
    given = await called(calling(scripted, (name, {"count": 2}), mcp_servers={"every": everything()}))
    assert "demo://resource" in text_of(given[name])


async def test_an_unknown_tool_of_a_connected_server_is_an_error_result(scripted: Any) -> None:
    name = "mcp__every__fly"
    given = await called(calling(scripted, (name, {}), mcp_servers={"every": everything()}))
    assert given[name].is_error and name in text_of(given[name])


async def test_the_row_shows_hints_of_servers_of_others(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers={"asking": asking()})) as client:
        await settled(client)
        tools = {each["name"]: each for each in (await rows(client))["asking"]["tools"]}
    assert tools["book"]["annotations"] == {"readOnly": False, "destructive": True, "openWorld": True}
    assert tools["header"]["annotations"] == {"readOnly": True}
    assert "annotations" not in tools["fail"]
    assert tools["fail"]["description"] == "Fails for a reason."


async def test_the_configurations_have_the_documented_keys() -> None:
    def keys(name: str) -> set[str]:
        return set(typing.get_type_hints(getattr(qoder_agent_sdk, name)))

    assert keys("McpStdioServerConfig") == {"type", "command", "args", "env", "tools"}
    assert keys("McpSSEServerConfig") == {"type", "url", "headers", "tools"}
    assert keys("McpHttpServerConfig") == {"type", "url", "headers", "tools"}
    assert keys("McpSdkServerConfig") == {"type", "name", "instance", "tools"}
