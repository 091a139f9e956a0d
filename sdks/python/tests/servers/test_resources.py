"""What servers have besides tools: resources that the model reads, prompts that are commands, directories they ask for.

With the server of others that has a bit of everything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.asking import drain
from support.looking import result_of, text_of
from support.real_servers import called, calling, everything, settled

from qoder_agent_sdk import QoderSDKClient

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What the runtime does is the same on every event loop; methods and callbacks are tested on both."""
    return "asyncio"


TEXT = "demo://resource/dynamic/text/1"


async def test_resources_are_listed_and_read(scripted: Any) -> None:
    calls = [("ListMcpResources", {"server": "every"}), ("ReadMcpResource", {"server": "every", "uri": TEXT})]
    given = await called(calling(scripted, *calls, mcp_servers={"every": everything()}, allowed_tools=["mcp__every"]))
    assert "demo://resource" in text_of(given["ListMcpResources"])
    assert not given["ReadMcpResource"].is_error
    assert "Resource 1" in text_of(given["ReadMcpResource"])


async def test_a_server_that_is_not_there_has_no_resources(scripted: Any) -> None:
    name = "ReadMcpResource"
    given = await called(
        calling(scripted, (name, {"server": "other", "uri": TEXT}), mcp_servers={"every": everything()})
    )
    assert given[name].is_error and "other" in text_of(given[name])


async def test_prompts_are_commands(scripted: Any) -> None:
    replies = [{"when": {"contains": "weather in Paris"}, "text": "It rains."}, {"text": "What?", "repeat": True}]
    async with QoderSDKClient(scripted(*replies, mcp_servers={"every": everything()})) as client:
        await settled(client)
        names = [each["name"] for each in await client.supported_commands()]
        assert "mcp__every__simple-prompt" in names and "mcp__every__args-prompt" in names
        await client.query("/mcp__every__args-prompt Paris")
        assert result_of(await drain(client)).result == "It rains."


async def test_servers_are_told_the_directories_of_the_session(project: Path, tmp_path: Path, scripted: Any) -> None:
    other = tmp_path / "other"
    other.mkdir()
    name = "mcp__every__get-roots-list"
    given = await called(calling(scripted, (name, {}), mcp_servers={"every": everything()}, add_dirs=[other]))
    assert project.as_uri() in text_of(given[name]) and other.as_uri() in text_of(given[name])


async def test_a_form_of_a_server_of_others_is_answered(scripted: Any) -> None:
    async def on_elicitation(request: dict[str, Any]) -> Any:
        properties = request["requestedSchema"]["properties"]
        defaults = {key: value["default"] for key, value in properties.items() if "default" in value}
        return {"action": "accept", "content": {**defaults, "name": "Ada"}}

    name = "mcp__every__trigger-elicitation-request"
    options = calling(scripted, (name, {}), mcp_servers={"every": everything()}, on_elicitation=on_elicitation)
    text = text_of((await called(options))[name])
    raw = json.loads(text[text.index("{") :])
    assert raw["action"] == "accept"
    assert (raw["content"]["name"], raw["content"]["integer"]) == ("Ada", 42)
