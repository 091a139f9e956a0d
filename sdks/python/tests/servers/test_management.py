"""Document 003, runtime management: status, its changes, and adding, removing, reconnecting and switching servers off.

With real servers; each change shows in the rows, in the messages and in what the model can call.
"""

from __future__ import annotations

from typing import Any, get_args

import anyio
import pytest
from support.asking import drain
from support.looking import results_by_tool, run, text_of
from support.real_servers import asking, calling, everything, installed, results, rows, settled, status_is

import qoder_agent_sdk
from qoder_agent_sdk import (
    ControlRequestError,
    ControlRequestTimeoutError,
    QoderSDKClient,
    SystemMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

pytestmark = pytest.mark.anyio

ECHO = "mcp__every__echo"
STATUSES = {"pending", "connecting", "connected", "failed", "needs-auth", "disabled"}


@tool("greet", "Greets.", {"name": str})
async def greet(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Hello, {args['name']}"}]}


def time_server() -> dict[str, Any]:
    return {"command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]}


async def test_query_gives_messages_and_no_way_to_change_servers() -> None:
    managing = {
        "get_mcp_status",
        "set_mcp_servers",
        "reconnect_mcp_server",
        "toggle_mcp_server",
        "mcp_authenticate",
        "mcp_submit_oauth_callback_url",
        "inject_mcp_token",
        "mcp_clear_auth",
    }
    assert managing <= set(dir(QoderSDKClient))
    stream = query(prompt="go")
    assert not managing & set(dir(stream))
    await stream.aclose()


async def test_the_words_for_a_status() -> None:
    assert set(get_args(qoder_agent_sdk.McpServerConnectionStatus)) == STATUSES
    for name in ("McpToolInfo", "McpToolAnnotations", "McpServerStatus"):
        assert name in qoder_agent_sdk.__all__


async def test_the_status_has_a_row_for_every_server(scripted: Any) -> None:
    servers = {
        "inside": create_sdk_mcp_server("inside", tools=[greet]),
        "every": everything(),
        "broken": {"command": "/nonexistent/server"},
    }
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers=servers)) as client:
        at_once = await rows(client)
        assert set(at_once) == set(servers)
        assert {row["status"] for row in at_once.values()} <= STATUSES
        seen = await settled(client)
    assert {name: row["status"] for name, row in seen.items()} == {
        "inside": "connected",
        "every": "connected",
        "broken": "failed",
    }
    assert seen["broken"]["error"] and "error" not in seen["every"]
    echo = next(each for each in seen["every"]["tools"] if each["name"] == "echo")
    assert set(echo) == {"name", "description", "annotations"}
    assert echo["annotations"] == {"readOnly": True, "destructive": False, "openWorld": False}


async def test_connect_does_not_wait_for_servers(scripted: Any) -> None:
    silent = {"command": "/bin/sleep", "args": ["1000"]}
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers={"silent": silent})) as client:
        assert (await rows(client))["silent"]["status"] in ("pending", "connecting")
        assert (await client.get_server_info())["commands"] is not None


async def test_every_change_is_told_to_the_callback_and_on_the_stream(scripted: Any) -> None:
    told: list[tuple[str, str]] = []

    async def changed(servers: list[Any]) -> None:
        told.extend((row["name"], row["status"]) for row in servers)

    servers = {"every": everything(), "broken": {"command": "/nonexistent/server"}}
    options = calling(scripted, (ECHO, {"message": "x"}), mcp_servers=servers, on_mcp_status_change=changed)
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.toggle_mcp_server("every", False)
        await client.toggle_mcp_server("every", True)
        await client.query("go")
        messages = await drain(client)
    streamed = [
        (row["name"], row["status"])
        for message in messages
        if isinstance(message, SystemMessage) and message.subtype == "mcp_status_change"
        for row in message.data["servers"]
    ]
    of_one = [status for name, status in streamed if name == "every"]
    assert of_one == ["connecting", "connected", "disabled", "connecting", "connected"]
    assert [status for name, status in streamed if name == "broken"] == ["connecting", "failed"]
    assert told == streamed


async def test_the_messages_have_whole_rows(scripted: Any) -> None:
    patience = {"QODER_MCP_START_WAIT_MS": "60000"}
    options = scripted({"text": "Hi.", "repeat": True}, mcp_servers={"asking": asking()}, env=patience)
    messages = await run("go", options)
    changes = [each for each in messages if isinstance(each, SystemMessage) and each.subtype == "mcp_status_change"]
    (row,) = changes[-1].data["servers"]
    assert row["status"] == "connected" and row["serverInfo"] == {
        "name": "asking",
        "title": "The asking server",
        "version": "1.2.3",
    }
    assert {"book", "fail"} <= {each["name"] for each in row["tools"]}


async def test_replacing_all_servers(scripted: Any) -> None:
    start = {"every": everything(), "kept": time_server()}
    name = "mcp__new__greet"
    options = calling(
        scripted,
        (ECHO, {"message": "gone?"}),
        (name, {"name": "Ada"}),
        ("mcp__kept__get_current_time", {"timezone": "UTC"}),
        mcp_servers=start,
    )
    async with QoderSDKClient(options) as client:
        await settled(client)
        wanted: dict[str, Any] = {
            "kept": start["kept"],
            "new": create_sdk_mcp_server("new", tools=[greet]),
            "broken": {"command": "/nonexistent/server"},
        }
        changed = await client.set_mcp_servers(wanted)
        assert set(changed) == {"added", "removed", "errors"}
        assert (sorted(changed["added"]), changed["removed"]) == (["broken", "new"], ["every"])
        assert set(changed["errors"]) == {"broken"} and "/nonexistent/server" in changed["errors"]["broken"]
        seen = await settled(client)
        assert {name: row["status"] for name, row in seen.items()} == {
            "kept": "connected",
            "new": "connected",
            "broken": "failed",
        }
        given = await results(client)
    assert given[ECHO].is_error
    assert text_of(given[name]) == "Hello, Ada"
    assert not given["mcp__kept__get_current_time"].is_error


async def test_a_changed_configuration_is_removed_and_added(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers={"time": time_server()})) as client:
        await settled(client)
        other = {**time_server(), "args": ["--local-timezone", "Asia/Tokyo"]}
        changed = await client.set_mcp_servers({"time": other})
        assert changed == {"added": ["time"], "removed": ["time"], "errors": {}}
        assert await client.set_mcp_servers({"time": other}) == {"added": [], "removed": [], "errors": {}}
        assert await client.set_mcp_servers({}) == {"added": [], "removed": ["time"], "errors": {}}
        assert await rows(client) == {}


async def test_tools_of_added_servers_are_the_models_from_the_next_turn_on(scripted: Any) -> None:
    options = calling(scripted, (ECHO, {"message": "new"}))
    async with QoderSDKClient(options) as client:
        await client.set_mcp_servers({"every": everything()})
        await status_is(client, "every", "connected")
        await client.query("go")
        messages = await drain(client)
    assert text_of(results_by_tool(messages)[ECHO]) == "Echo: new"
    (init,) = [each for each in messages if isinstance(each, SystemMessage) and each.subtype == "init"]
    assert ECHO in init.data["tools"]
    assert {"name": "every", "status": "connected"}.items() <= init.data["mcp_servers"][0].items()


async def test_reconnecting_a_server_that_failed(tmp_path: Any, scripted: Any) -> None:
    program = tmp_path / "late-server"
    options = calling(
        scripted, (ECHO, {"message": "late"}), mcp_servers={"every": {"command": str(program), "args": ["stdio"]}}
    )
    async with QoderSDKClient(options) as client:
        await status_is(client, "every", "failed")
        with pytest.raises(ControlRequestError, match="late-server"):
            await client.reconnect_mcp_server("every")
        program.symlink_to(everything()["command"])
        await client.reconnect_mcp_server("every")
        row = (await rows(client))["every"]
        assert row["status"] == "connected" and "error" not in row
        assert text_of((await results(client))[ECHO]) == "Echo: late"
        with pytest.raises(ControlRequestError, match="absent"):
            await client.reconnect_mcp_server("absent")


async def test_a_server_that_is_switched_off_is_disconnected_and_has_no_tools(scripted: Any) -> None:
    options = calling(scripted, (ECHO, {"message": "off"}), mcp_servers={"every": everything()})
    async with QoderSDKClient(options) as client:
        await status_is(client, "every", "connected")
        await client.toggle_mcp_server("every", False)
        row = (await rows(client))["every"]
        assert row["status"] == "disabled" and not row.get("tools")
        assert (await results(client))[ECHO].is_error


async def test_a_server_that_is_switched_on_again_can_be_called(scripted: Any) -> None:
    options = calling(scripted, (ECHO, {"message": "on"}), mcp_servers={"every": everything()})
    async with QoderSDKClient(options) as client:
        await status_is(client, "every", "connected")
        await client.toggle_mcp_server("every", False)
        await client.toggle_mcp_server("every", True)
        assert (await rows(client))["every"]["status"] == "connected"
        assert text_of((await results(client))[ECHO]) == "Echo: on"
        with pytest.raises(ControlRequestError, match="absent"):
            await client.toggle_mcp_server("absent", True)


async def test_a_control_request_about_a_silent_server_runs_into_its_timeout(scripted: Any) -> None:
    silent = {"command": "/bin/sleep", "args": ["1000"]}
    options = scripted({"text": "Hi."}, mcp_servers={"silent": silent})
    async with QoderSDKClient(options) as client:
        # Only now, so that a slow start of the runtime does not count.
        options.control_request_timeout_ms = 300
        with anyio.fail_after(60), pytest.raises(ControlRequestTimeoutError, match="within 300 ms"):
            await client.reconnect_mcp_server("silent")
        options.control_request_timeout_ms = 60_000
        assert (await rows(client))["silent"]["status"] != "connected"
