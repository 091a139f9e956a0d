"""Document 000: defining tools, their schemas, their results.

The samples stand in `samples/000_definitions.md` with their indentation restored;
each is run here and its effect is looked at.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import pytest
from support.samples import execute, public_names, returned, sample

from qoder_agent_sdk import create_sdk_mcp_server, tool
from qoder_agent_sdk._backend import new_signal

pytestmark = pytest.mark.anyio

FILE = "000_definitions"


def text(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


async def call(defined: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    connection = create_sdk_mcp_server(name="s", tools=[defined])["instance"].connect()
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": defined.name, "arguments": arguments},
    }
    answer: dict[str, Any] = await connection.handle(message, new_signal())
    return answer


async def schema_of(title: str) -> dict[str, Any]:
    names = await execute(sample(FILE, title), public_names())

    @tool("t", "d", names["input_schema"])
    async def handler(args: Any) -> dict[str, Any]:
        return {"content": []}

    return create_sdk_mcp_server(name="s", tools=[handler])["instance"].tools["t"].schema


async def test_one_parameter() -> None:
    names = await execute(sample(FILE, "one parameter"), public_names())
    assert text(await call(names["search_docs"], {"query": "refunds"})) == "Searching: refunds"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancellation(anyio_backend: str) -> None:
    names = await execute(sample(FILE, "cancellation"), {**public_names(), "asyncio": asyncio})
    assert text(await call(names["watch"], {"max": 2})) == "done"
    connection = create_sdk_mcp_server(name="s", tools=[names["watch"]])["instance"].connect()
    signal = new_signal()
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "watch", "arguments": {"max": 10**9}},
    }
    running = asyncio.create_task(connection.handle(message, signal))
    await asyncio.sleep(0.05)
    signal.set()
    assert text(await running).startswith("aborted at ")


async def test_simple_dict() -> None:
    assert await schema_of("simple dict") == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "max_results": {"type": "integer"},
            "include_archived": {"type": "boolean"},
        },
        "required": ["query", "max_results", "include_archived"],
    }


async def test_annotated_dict() -> None:
    assert (await schema_of("annotated dict"))["properties"] == {
        "query": {"type": "string", "description": "Search keywords"},
        "max_results": {"type": "integer", "description": "Maximum number of snippets to return"},
    }


async def test_typed_dict() -> None:
    names = await execute(sample(FILE, "typed dict"), public_names())
    assert text(await call(names["search_docs"], {"query": "x"})) == "x (5)"
    assert text(await call(names["search_docs"], {"query": "x", "max_results": 2})) == "x (2)"
    assert (await call(names["search_docs"], {}))["result"]["isError"] is True


async def test_json_schema() -> None:
    names = await execute(sample(FILE, "json schema"), {})
    assert await schema_of("json schema") == names["input_schema"]


async def test_annotations_and_server() -> None:
    names = await execute(sample(FILE, "annotations"), public_names())
    names = await execute(sample(FILE, "server"), names)
    config = names["kb_tools"]
    assert (config["type"], config["name"]) == ("sdk", "kb")
    row = config["instance"].tools["search_docs"].listing()
    assert row["annotations"] == {
        "title": "Search docs",
        "readOnlyHint": True,
        "destructiveHint": False,
        "openWorldHint": False,
    }


async def test_signature() -> None:
    names = await execute("from __future__ import annotations\n" + sample(FILE, "signature"), {})
    ours, documented = inspect.signature(tool), inspect.signature(names["tool"])
    assert [(each.name, each.kind, each.default) for each in ours.parameters.values()] == [
        (each.name, each.kind, each.default) for each in documented.parameters.values()
    ]


async def test_business_failure() -> None:
    value = await returned(sample(FILE, "business failure"), {"json": json})

    @tool("t", "d", {})
    async def handler(args: Any) -> Any:
        return value

    answer = await call(handler, {})
    assert answer["result"]["isError"] is True
    assert json.loads(text(answer))["error"] == "VALIDATION_ERROR"


async def test_unexpected_exception() -> None:
    class Response:
        ok = False

    class Service:
        async def fetch(self, user_id: str) -> Response:
            return Response()

    names = await execute(sample(FILE, "unexpected exception"), {**public_names(), "user_service": Service()})
    answer = await call(names["fetch_user"], {"user_id": "u"})
    text = "RuntimeError: User service failed"
    assert answer["result"] == {"content": [{"type": "text", "text": text}], "isError": True}


@pytest.mark.parametrize(("title", "expected"), [("text result", "done"), ("structured result", '"O-1001"')])
async def test_results(title: str, expected: str) -> None:
    value = await returned(sample(FILE, title), {"json": json})

    @tool("t", "d", {})
    async def handler(args: Any) -> Any:
        return value

    answer = await call(handler, {})
    assert answer["result"]["isError"] is False
    assert expected in text(answer)
