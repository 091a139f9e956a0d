"""Document 004: its samples of use, against the runtime.

The samples stand in `samples/004_uses.md`. Those about agents are checked where they
leave the SDK; the others run against the runtime.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from support.samples import AGENT_RUNTIME, execute, playbook, public_names, sample
from typing_extensions import NotRequired

from qoder_agent_sdk import AgentDefinition, QoderAgentOptions, QoderSDKClient, create_sdk_mcp_server, tool

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


@pytest.mark.parametrize(
    ("title", "agent"),
    [
        ("4 QoderAgentOptions.agents", "reviewer"),
        ("5 QoderAgentOptions.agent", "planner"),
        ("12 mcpServers", "support"),
    ],
)
async def test_agent_options(title: str, agent: str, fake_runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QODERCLI_PATH", str(fake_runtime(AGENT_RUNTIME)))
    names = await execute(sample(FILE, title), public_names())
    options = names["options"]
    assert isinstance(options.agents[agent], AgentDefinition)
    async with QoderSDKClient(options) as client:
        assert [each["name"] for each in client.supported_agents()] == [agent]
        arguments = (await client.get_server_info())["arguments"]
    assert ("--agent" in arguments) is (options.agent is not None)


async def test_an_agent_with_its_own_server() -> None:
    names = {**public_names()}
    await execute("agent = " + sample(FILE, "13 mcpServers"), names)
    assert names["agent"].mcpServers == [{"kb": {"command": "python", "args": ["servers/kb.py"]}}]


@pytest.mark.parametrize(
    "title",
    ["7 description", "8 prompt", "9 tools", "10 disallowedTools", "14 skills", "15 initialPrompt", "16 maxTurns"],
)
async def test_agent_fields(title: str) -> None:
    fields = await execute(sample(FILE, title), {})
    fields.pop("__builtins__")
    agent = AgentDefinition(**{"description": "d", "prompt": "p", **fields})
    for name, value in fields.items():
        assert getattr(agent, name) == value
    assert QoderAgentOptions(agents={"a": agent}).agents == {"a": agent}


async def test_supported_agents(fake_runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QODERCLI_PATH", str(fake_runtime(AGENT_RUNTIME)))
    names = await execute(sample(FILE, "20 AgentInfo"), public_names())
    agents = {each["name"]: each for each in names["agents"]}
    assert agents["reviewer"]["description"] == "Reviews code quality."
    assert not agents["reviewer"].get("model")


async def test_input_schemas() -> None:
    code = sample(FILE, "45 input_schema")
    names: dict[str, Any] = {"Annotated": Annotated, "TypedDict": TypedDict, "NotRequired": NotRequired}
    await execute(code, names)
    forms: list[Any] = [names["SearchInput"]]
    for piece in code.split("\n\n"):
        expression = "\n".join(line for line in piece.splitlines() if not line.startswith("#"))
        if expression.startswith("{"):
            forms.append(eval(expression, names))
    assert len(forms) == 4
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
    code = sample(FILE, "49 ToolAnnotations").replace("\n\n\nToolAnnotations(", "\n\n\nannotations = ToolAnnotations(")
    names = await execute(code, {})

    @tool("search", "Searches.", {}, annotations=names["annotations"])
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
