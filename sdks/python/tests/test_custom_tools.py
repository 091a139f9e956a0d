"""Custom tools in sessions with the real runtime.

The model follows a playbook that calls the tools; what they return is looked at in
the messages of the run.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations
from support.asking import drain
from support.looking import call, result_of, results_by_tool, run, text_of, tool_results_of

from qoder_agent_sdk import AssistantMessage, QoderSDKClient, SystemMessage, create_sdk_mcp_server, tool

pytestmark = pytest.mark.anyio


def turns(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "Done."}]


@tool("add", "Adds two numbers.", {"a": int, "b": int}, annotations=ToolAnnotations(readOnlyHint=True, title="Add"))
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("fail", "Fails.", {})
async def fail(args: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("it broke")


@tool("look", "Shows a picture.", {})
async def look(args: dict[str, Any]) -> dict[str, Any]:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    return {"content": [{"type": "image", "data": pixel, "mimeType": "image/png"}, {"type": "text", "text": "a pixel"}]}


ALL = ["mcp__calc__add", "mcp__calc__fail", "mcp__calc__look"]


def calc() -> Any:
    return {"calc": create_sdk_mcp_server(name="calc", tools=[add, fail, look])}


async def test_a_tool_is_offered_called_and_answered(scripted: Any) -> None:
    options = scripted(*turns(call("mcp__calc__add", a=2, b=3)), mcp_servers=calc(), allowed_tools=ALL)
    messages = await run("go", options)
    init = next(each for each in messages if isinstance(each, SystemMessage) and each.subtype == "init")
    assert set(ALL) <= set(init.data["tools"])
    assert text_of(results_by_tool(messages)["mcp__calc__add"]) == "5"
    assert result_of(messages).result == "Done."


async def test_several_calls_of_one_turn_keep_their_results(scripted: Any) -> None:
    options = scripted(
        *turns(call("mcp__calc__add", a=1, b=1), call("mcp__calc__fail"), call("mcp__calc__look")),
        mcp_servers=calc(),
        allowed_tools=ALL,
    )
    results = results_by_tool(await run("go", options))
    assert text_of(results["mcp__calc__add"]) == "2"
    assert results["mcp__calc__fail"].is_error is True and "it broke" in text_of(results["mcp__calc__fail"])
    assert "a pixel" in text_of(results["mcp__calc__look"])


async def test_wrong_arguments_are_an_error_that_the_model_sees(scripted: Any) -> None:
    options = scripted(*turns(call("mcp__calc__add", a="two", b=3)), mcp_servers=calc(), allowed_tools=ALL)
    result = results_by_tool(await run("go", options))["mcp__calc__add"]
    assert result.is_error is True and "a" in text_of(result)


async def test_without_permission_a_tool_does_not_run(scripted: Any) -> None:
    ran = []

    @tool("delete", "Deletes everything.", {})
    async def delete(args: Any) -> dict[str, Any]:
        ran.append(args)
        return {"content": []}

    options = scripted(
        *turns(call("mcp__danger__delete")),
        mcp_servers={"danger": create_sdk_mcp_server(name="danger", tools=[delete])},
    )
    result = results_by_tool(await run("go", options))["mcp__danger__delete"]
    assert ran == [] and result.is_error is True


async def test_deny_beats_allow(scripted: Any) -> None:
    options = scripted(
        *turns(call("mcp__calc__add", a=1, b=1)),
        mcp_servers=calc(),
        allowed_tools=["mcp__calc__add"],
        disallowed_tools=["mcp__calc__add"],
    )
    (result,) = tool_results_of(await run("go", options))
    assert result.is_error is True


async def test_a_name_with_hyphens_is_kept(scripted: Any) -> None:
    servers = {"my-tools": create_sdk_mcp_server(name="my-tools", tools=[add])}
    options = scripted(
        *turns(call("mcp__my-tools__add", a=1, b=1)), mcp_servers=servers, allowed_tools=["mcp__my-tools__add"]
    )
    assert text_of(results_by_tool(await run("go", options))["mcp__my-tools__add"]) == "2"


async def test_the_status_shows_servers_and_annotations(scripted: Any) -> None:
    options = scripted({"text": "Hi.", "repeat": True}, mcp_servers=calc())
    async with QoderSDKClient(options) as client:
        await client.query("hello")
        await drain(client)
        (row,) = (await client.get_mcp_status())["mcpServers"]
    assert row["name"] == "calc" and row["status"] == "connected"
    rows = {each["name"]: each for each in row["tools"]}
    assert set(rows) == {"add", "fail", "look"}
    assert rows["add"]["annotations"] == {"readOnly": True}
    assert not rows["fail"].get("annotations")


async def test_one_config_serves_several_queries(scripted: Any) -> None:
    servers = calc()
    for _ in range(2):
        options = scripted(*turns(call("mcp__calc__add", a=1, b=1)), mcp_servers=servers, allowed_tools=ALL)
        assert text_of(results_by_tool(await run("go", options))["mcp__calc__add"]) == "2"


async def test_an_interrupt_sets_the_signal_of_a_running_call(scripted: Any) -> None:
    started, signalled = anyio.Event(), anyio.Event()

    @tool("wait", "Waits.", {})
    async def wait(args: Any, extra: Any) -> dict[str, Any]:
        started.set()
        await extra.signal.wait()
        signalled.set()
        return {"content": []}

    servers = {"slow": create_sdk_mcp_server(name="slow", tools=[wait])}
    options = scripted(*turns(call("mcp__slow__wait")), mcp_servers=servers, allowed_tools=["mcp__slow__wait"])
    async with QoderSDKClient(options) as client:
        await client.query("go")
        with anyio.fail_after(60):
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    await started.wait()
                    await client.interrupt()
            await signalled.wait()


async def test_a_slow_call_is_waited_for(scripted: Any) -> None:
    @tool("slow", "Takes its time.", {})
    async def slow(args: Any) -> dict[str, Any]:
        await anyio.sleep(1)
        return {"content": [{"type": "text", "text": "at last"}]}

    servers = {"s": create_sdk_mcp_server(name="s", tools=[slow])}
    options = scripted(*turns(call("mcp__s__slow")), mcp_servers=servers, allowed_tools=["mcp__s__slow"])
    assert text_of(results_by_tool(await run("go", options))["mcp__s__slow"]) == "at last"


async def test_a_server_of_the_mcp_package_works_in_process(scripted: Any) -> None:
    server = FastMCP("adder")

    @server.tool()
    def double(number: int) -> str:
        """Doubles a number."""
        return str(2 * number)

    servers: Any = {"adder": {"type": "sdk", "name": "adder", "instance": server}}
    options = scripted(
        *turns(call("mcp__adder__double", number=21)), mcp_servers=servers, allowed_tools=["mcp__adder__double"]
    )
    assert "42" in text_of(results_by_tool(await run("go", options))["mcp__adder__double"])


async def test_unsupported_content_is_left_out_with_a_warning(scripted: Any, caplog: pytest.LogCaptureFixture) -> None:
    @tool("sing", "Sings.", {})
    async def sing(args: Any) -> dict[str, Any]:
        return {"content": [{"type": "audio", "data": "QQ=="}, {"type": "text", "text": "la la"}]}

    servers = {"s": create_sdk_mcp_server(name="s", tools=[sing])}
    options = scripted(*turns(call("mcp__s__sing")), mcp_servers=servers, allowed_tools=["mcp__s__sing"])
    with caplog.at_level(logging.WARNING, "qoder_agent_sdk"):
        result = results_by_tool(await run("go", options))["mcp__s__sing"]
    assert text_of(result) == "la la" and "audio" in caplog.text
