"""Document 004: its samples of use, against the runtime.

The samples stand in `samples/004_uses.md`; those about agents are in `test_seed_004_agents.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from support.samples import execute, playbook, public_names, sample, values
from typing_extensions import NotRequired

from qoder_agent_sdk import QoderAgentOptions, create_sdk_mcp_server, tool

pytestmark = pytest.mark.anyio

FILE = "004_uses"


@pytest.fixture(autouse=True)
def in_project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples name no model and no directory."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("QODER_MODEL", playbook(tmp_path, {"text": "Here I am.", "repeat": True}))


async def test_connect_with_a_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    names = {**public_names(), "options": QoderAgentOptions()}
    names = await execute(sample(FILE, "2 QoderSDKClient"), names)
    client = names["client"]
    try:
        messages = [message async for message in client.receive_response()]
    finally:
        await client.disconnect()
    assert messages[-1].result == "Here I am."


async def test_authentication_imports() -> None:
    names = await execute(sample(FILE, "3 Authentication"), {})
    assert names["access_token"]("t").type == "accessToken"
    assert names["access_token_from_env"]().env_var == "QODER_PERSONAL_ACCESS_TOKEN"
    assert names["access_token_from_env"]("MY_PAT").env_var == "MY_PAT"
    assert names["qodercli_auth"]().type == "qodercli"


async def test_input_schemas() -> None:
    names: dict[str, Any] = {"Annotated": Annotated, "TypedDict": TypedDict, "NotRequired": NotRequired}
    simple, annotated, complete = values(sample(FILE, "45 input_schema"), names)
    forms: list[Any] = [simple, annotated, names["SearchInput"], complete]
    for form in forms:

        @tool("search", "Searches.", form)
        async def search(args: Any) -> Any:
            return {"content": []}

        schema = create_sdk_mcp_server(name="s", tools=[search])["instance"].tools["search"].schema
        assert schema["required"][0] == "query" and schema["properties"]["query"]["type"] == "string"


async def test_watch_takes_a_context() -> None:
    names = await execute(sample(FILE, "48 ToolInvocationContext"), public_names())
    server = create_sdk_mcp_server(name="s", tools=[names["watch"]])
    assert server["instance"].tools["watch"].takes_context is True


async def test_tool_annotations() -> None:
    (annotations,) = values(sample(FILE, "49 ToolAnnotations"), {})

    @tool("search", "Searches.", {}, annotations=annotations)
    async def search(args: Any) -> Any:
        return {"content": []}

    row = create_sdk_mcp_server(name="s", tools=[search])["instance"].tools["search"].listing()
    assert row["annotations"] == {
        "title": "Search docs",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert row["_meta"] == {"anthropic/maxResultSizeChars": 500_000}
