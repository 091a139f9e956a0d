"""The in-process MCP server: what it answers to JSON-RPC messages.

The server is asked directly, without a runtime: lists, calls, results of all kinds,
cancellation.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import anyio
import pytest
from mcp.types import ToolAnnotations

from qoder_agent_sdk import create_sdk_mcp_server, tool
from qoder_agent_sdk._backend import new_signal

pytestmark = pytest.mark.anyio


def connection_with(*tools: Any) -> Any:
    return create_sdk_mcp_server(name="kb", version="2.0", tools=list(tools))["instance"].connect()


async def ask(
    connection: Any, method: str, params: dict[str, Any] | None = None, identifier: Any = 1
) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params or {}}
    answer: dict[str, Any] = await connection.handle(message, new_signal())
    assert answer["jsonrpc"] == "2.0" and answer["id"] == identifier
    return answer


async def call(returned: Any, **arguments: Any) -> dict[str, Any]:
    """What a call gives for what its handler returned (or raised)."""

    @tool("t", "Returns it.", {})
    async def handler(args: dict[str, Any]) -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    answer = await ask(connection_with(handler), "tools/call", {"name": "t", "arguments": arguments})
    result: dict[str, Any] = answer["result"]
    return result


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_known_protocol_version_is_kept(version: str) -> None:
    result = (await ask(connection_with(), "initialize", {"protocolVersion": version}))["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"] == {"name": "kb", "version": "2.0"}


async def test_another_protocol_version_is_answered_with_the_newest() -> None:
    result = (await ask(connection_with(), "initialize", {"protocolVersion": "1999-01-01"}))["result"]
    assert result["protocolVersion"] == "2025-11-25"


async def test_a_notification_is_acknowledged() -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert await connection_with().handle(message, new_signal()) == {"jsonrpc": "2.0", "result": {}}


async def test_ping_and_unknown_methods() -> None:
    assert (await ask(connection_with(), "ping", identifier="a"))["result"] == {}
    assert (await ask(connection_with(), "resources/list"))["error"]["code"] == -32601


async def test_the_tool_list_has_annotations_and_the_result_size() -> None:
    @tool(
        "search",
        "Searches.",
        {"query": str},
        annotations=ToolAnnotations(
            title="Search", readOnlyHint=True, destructiveHint=False, maxResultSizeChars=500_000
        ),
    )
    async def search(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": []}

    tools = (await ask(connection_with(search), "tools/list"))["result"]["tools"]
    assert tools == [
        {
            "name": "search",
            "description": "Searches.",
            "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            "annotations": {"title": "Search", "readOnlyHint": True, "destructiveHint": False},
            "_meta": {"anthropic/maxResultSizeChars": 500_000},
        }
    ]


async def test_a_server_without_tools_has_an_empty_list() -> None:
    assert (await ask(connection_with(), "tools/list"))["result"] == {"tools": []}


CONTENT: list[tuple[Any, Any]] = [
    ({"type": "text", "text": "hi"}, {"type": "text", "text": "hi"}),
    (
        {"type": "image", "data": "QQ==", "mimeType": "image/png"},
        {"type": "image", "data": "QQ==", "mimeType": "image/png"},
    ),
    (
        {"type": "resource_link", "uri": "file:///a", "name": "A", "description": "the a"},
        {"type": "text", "text": "A\nfile:///a\nthe a"},
    ),
    ({"type": "resource", "resource": {"text": "inside"}}, {"type": "text", "text": "inside"}),
]


@pytest.mark.parametrize(("block", "expected"), CONTENT)
async def test_content_is_converted(block: Any, expected: Any) -> None:
    assert await call({"content": [block]}) == {"content": [expected], "isError": False}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "data": "QQ=="},
        {"type": "resource", "resource": {"blob": "QQ=="}},
        {"type": "video"},
        "text",
        {},
    ],
)
async def test_unsupported_content_is_skipped_with_a_warning(block: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "qoder_agent_sdk"):
        result = await call({"content": [block, {"type": "text", "text": "kept"}]})
    assert result["content"] == [{"type": "text", "text": "kept"}]
    assert "tool 't'" in caplog.text


async def test_a_business_failure_is_marked() -> None:
    assert (await call({"content": [], "is_error": True}))["isError"] is True


async def test_the_spelling_of_other_languages_does_not_count() -> None:
    assert (await call({"content": [], "isError": True}))["isError"] is False


async def test_meta_of_a_result_is_not_passed_on() -> None:
    assert await call({"content": [], "_meta": {"a": 1}}) == {"content": [], "isError": False}


async def test_none_is_an_error_that_asks_for_content() -> None:
    result = await call(None)
    assert result["isError"] is True
    assert 'a dict containing "content"' in result["content"][0]["text"]


@pytest.mark.parametrize(("returned", "text"), [("words", "words"), (3, "3"), ([1, 2], "[1, 2]")])
async def test_what_is_no_dict_becomes_text_and_an_error(returned: Any, text: str) -> None:
    assert await call(returned) == {"content": [{"type": "text", "text": text}], "isError": True}


async def test_a_dict_without_content_is_an_error_that_lists_the_keys() -> None:
    result = await call({"result": 1, "other": 2})
    assert result["isError"] is True
    assert "result, other" in result["content"][0]["text"]


async def test_an_exception_becomes_an_error_with_its_type_and_message() -> None:
    assert await call(RuntimeError("User service failed")) == {
        "content": [{"type": "text", "text": "RuntimeError: User service failed"}],
        "isError": True,
    }


async def test_an_unknown_tool_is_an_error_result_that_names_the_tools() -> None:
    answer = await ask(connection_with(), "tools/call", {"name": "absent"})
    assert answer["result"]["isError"] is True
    assert "no tool 'absent'" in answer["result"]["content"][0]["text"]


BAD_ARGUMENTS: list[tuple[Any, dict[str, Any], str]] = [
    ({"a": str}, {}, "'a' is required"),
    ({"a": str}, {"a": 3}, "'a' must be of type string"),
    ({"a": int}, {"a": True}, "'a' must be of type integer"),
    ({"a": int}, {"a": 1.5}, "'a' must be of type integer"),
    ({"a": list[int]}, {"a": [1, "x"]}, r"'a\[1\]' must be of type integer"),
    ({"type": "object", "properties": {"a": {"enum": ["x", "y"]}}}, {"a": "z"}, "one of 'x', 'y'"),
    ({"type": "object", "properties": {"a": {"minimum": 1}}}, {"a": 0}, "at least 1"),
    ({"type": "object", "properties": {"a": {"maximum": 1}}}, {"a": 2}, "at most 1"),
    ({"type": "object", "properties": {"a": {"pattern": "^x"}}}, {"a": "y"}, "match the pattern"),
    ({"type": "object", "properties": {}, "additionalProperties": False}, {"a": 1}, "'a' is not a parameter"),
    ({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}}}, {"a": 1}, "none of the allowed forms"),
]


@pytest.mark.parametrize(("schema", "arguments", "text"), BAD_ARGUMENTS)
async def test_arguments_outside_the_schema_never_reach_the_handler(schema: Any, arguments: Any, text: str) -> None:
    reached = []

    @tool("t", "Takes it.", schema)
    async def handler(args: dict[str, Any]) -> dict[str, Any]:
        reached.append(args)
        return {"content": []}

    answer = await ask(connection_with(handler), "tools/call", {"name": "t", "arguments": arguments})
    assert reached == []
    assert answer["result"]["isError"] is True
    assert re.search(text, answer["result"]["content"][0]["text"])


async def test_the_signal_is_set_when_the_call_is_cancelled() -> None:
    connection: Any = None
    started = anyio.Event()
    seen: list[bool] = []

    @tool("wait", "Waits.", {})
    async def wait(args: Any, extra: Any) -> dict[str, Any]:
        started.set()
        await extra.signal.wait()
        seen.append(extra.signal.is_set())
        return {"content": []}

    connection = connection_with(wait)
    answers: list[dict[str, Any]] = []

    async def run() -> None:
        answers.append(await ask(connection, "tools/call", {"name": "wait"}, identifier=7))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await started.wait()
        await connection.handle(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, new_signal()
        )
    assert seen == [True]
    assert answers[0]["error"]["code"] == -32800


async def test_a_call_that_ignores_its_signal_is_stopped() -> None:
    started = anyio.Event()

    @tool("sleep", "Sleeps.", {})
    async def sleep(args: Any) -> dict[str, Any]:
        started.set()
        await anyio.sleep_forever()
        return {"content": []}

    connection = connection_with(sleep)
    answers: list[dict[str, Any]] = []

    async def run() -> None:
        answers.append(await ask(connection, "tools/call", {"name": "sleep"}, identifier="x"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await connection.handle(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}, new_signal()
            )
    assert answers[0]["error"]["code"] == -32800


async def test_the_signal_is_an_asyncio_event_on_asyncio(anyio_backend: str) -> None:
    signals = []

    @tool("t", "d", {})
    async def handler(args: Any, extra: Any) -> dict[str, Any]:
        signals.append(extra.signal)
        return {"content": []}

    await ask(connection_with(handler), "tools/call", {"name": "t"})
    assert isinstance(signals[0], asyncio.Event) is (anyio_backend == "asyncio")
    assert signals[0].is_set() is False


async def test_one_server_serves_several_sessions() -> None:
    server = create_sdk_mcp_server(name="kb")["instance"]
    for _ in range(2):
        assert (await ask(server.connect(), "tools/list"))["result"] == {"tools": []}
