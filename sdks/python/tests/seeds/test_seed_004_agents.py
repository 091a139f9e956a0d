"""Document 004: its samples about agents, in sessions of the runtime.

The samples stand in `samples/004_uses.md`. What an agent does is scripted; what reaches the model is looked at
behind a server that stands for the provider.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from support.looking import call, result_of, results_by_tool, run, text_of
from support.model_server import model_server
from support.samples import execute, playbook, public_names, sample, values

from qoder_agent_sdk import AgentDefinition, QoderAgentOptions, QoderSDKClient, SystemMessage

pytestmark = pytest.mark.anyio

FILE = "004_uses"

SERVER = Path(__file__).parent.parent / "support" / "small_server.py"


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples name no directory, and a `python` that is on the path."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


@pytest.fixture
def delegating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets a model that delegates to an agent, and what the model of the agent says."""

    def use(agent: str, *replies: dict[str, Any]) -> None:
        own = [{**reply, "when": {"purpose": "subagent", **reply.get("when", {})}} for reply in replies]
        delegate = call("Agent", agent=agent, prompt="Go ahead.")
        model = playbook(tmp_path, {"when": {"turn": 1}, "toolCalls": [delegate]}, *own, {"text": "Done."})
        monkeypatch.setenv("QODER_MODEL", model)

    return use


@pytest.fixture
def user_allows(isolated_home: Path) -> Any:
    """Writes the settings of the user."""

    def write(*rules: str) -> None:
        folder = isolated_home / ".qoder"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps({"permissions": {"allow": list(rules)}}))

    return write


async def options_of(title: str) -> QoderAgentOptions:
    names = await execute(sample(FILE, title), public_names())
    options: QoderAgentOptions = names["options"]
    return options


async def answer_of_agent(options: QoderAgentOptions) -> str:
    """What the agent told the session that started it."""
    messages = await run("go", options)
    assert result_of(messages).result == "Done."
    return text_of(results_by_tool(messages)["Agent"])


async def request_of(options: QoderAgentOptions, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What reaches the model."""
    with model_server() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert result_of(await run("hi", options)).result == "hello"
    body: dict[str, Any] = server.requests[0]["body"]
    return body


def tools_in(body: dict[str, Any]) -> set[str]:
    return {each["name"] for each in body["tools"]}


async def test_agents_of_the_options(delegating: Any, project: Path) -> None:
    (project / "code.py").write_text("password = 'hunter2'\n")
    delegating(
        "reviewer",
        {"when": {"turn": 1}, "toolCalls": [call("Write", file_path="new.txt", content="x")]},
        {"when": {"turn": 2}, "toolCalls": [call("Read", file_path="code.py")]},
        {"when": {"lastToolResultContains": "hunter2"}, "text": "There is a password in the code."},
    )
    assert "There is a password in the code." in await answer_of_agent(await options_of("4 QoderAgentOptions.agents"))
    assert not (project / "new.txt").exists(), "only the listed tools"


async def test_the_agent_of_the_main_session(monkeypatch: pytest.MonkeyPatch) -> None:
    body = await request_of(await options_of("5 QoderAgentOptions.agent"), monkeypatch)
    assert tools_in(body) == {"Read", "Grep", "Glob"}
    assert "Break work into steps, risks, and validation checks." in json.dumps(body["system"])


async def test_a_server_of_the_session(delegating: Any, user_allows: Any, project: Path) -> None:
    (project / "servers").mkdir()
    shutil.copy(SERVER, project / "servers/orders.py")
    user_allows("mcp__orders__lookup_order")
    delegating(
        "support",
        {"when": {"turn": 1}, "toolCalls": [call("mcp__orders__lookup_order", order_id="O-1001")]},
        {"when": {"lastToolResultContains": 'orders knows: {"order_id": "O-1001"}'}, "text": "It was found."},
    )
    assert "It was found." in await answer_of_agent(await options_of("12 mcpServers"))


async def test_a_server_of_the_agent_alone(delegating: Any, user_allows: Any, project: Path) -> None:
    (project / "servers").mkdir()
    shutil.copy(SERVER, project / "servers/kb.py")
    user_allows("mcp__kb__search")
    delegating(
        "searcher",
        {"when": {"turn": 1}, "toolCalls": [call("mcp__kb__search", query="refunds")]},
        {"when": {"lastToolResultContains": 'kb knows: {"query": "refunds"}'}, "text": "Entry 7 says so."},
    )
    (agent,) = values(sample(FILE, "13 mcpServers"), public_names())
    options = QoderAgentOptions(allowed_tools=["Agent"], agents={"searcher": agent})
    assert "Entry 7 says so." in await answer_of_agent(options)


async def test_the_type_of_mcp_servers() -> None:
    names = await execute(sample(FILE, "11 mcpServers"), {"Any": Any})
    assert get_type_hints(AgentDefinition)["mcpServers"] == names["__annotations__"]["mcpServers"]


async def agent_with(title: str) -> AgentDefinition:
    """An agent with the field that a sample sets."""
    fields = await execute(sample(FILE, title), {})
    fields.pop("__builtins__")
    return AgentDefinition(**{"description": "Does it.", "prompt": "Do it.", **fields})


async def test_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model uses it to decide when to invoke the agent."""
    body = await request_of(QoderAgentOptions(agents={"a": await agent_with("7 description")}), monkeypatch)
    assert "Runs project tests, analyzes failing output, and suggests fixes." in json.dumps(body)


async def test_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    options = QoderAgentOptions(agents={"a": await agent_with("8 prompt")}, agent="a")
    system = json.dumps((await request_of(options, monkeypatch))["system"])
    assert "You are a security reviewer.\\nCheck for authentication bypass" in system


@pytest.mark.parametrize("title", ["9 tools", "10 disallowedTools"])
async def test_tools(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = QoderAgentOptions(agents={"a": await agent_with(title)}, agent="a")
    tools = tools_in(await request_of(options, monkeypatch))
    assert not {"Bash", "Write"} & tools and {"Read", "Grep", "Glob"} <= tools
    assert (len(tools) == 3) is (title == "9 tools")


async def test_skills(project: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain skill names and plugin-qualified names are both supported."""
    plugin = project / "sdk-test-plugin"
    for folder, name, text in (
        (isolated_home / ".qoder/skills/review", "review", "Look at the error paths first."),
        (plugin / "skills/sdk-echo", "sdk-echo", "Say everything twice."),
    ):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n{text}\n")
    options = QoderAgentOptions(
        agents={"a": await agent_with("14 skills")}, agent="a", plugins=[{"type": "local", "path": str(plugin)}]
    )
    body = json.dumps(await request_of(options, monkeypatch))
    assert "Look at the error paths first." in body and "Say everything twice." in body


async def test_initial_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the first user input, before anybody says a word."""
    asked = "Start by scanning authentication and session management code."
    monkeypatch.setenv("QODER_MODEL", playbook(tmp_path, {"when": {"contains": asked}, "text": "I scan."}))
    options = QoderAgentOptions(agents={"a": await agent_with("15 initialPrompt")}, agent="a")
    async with QoderSDKClient(options) as client:
        messages = [message async for message in client.receive_response()]
    assert result_of(messages).result == "I scan."


async def test_max_turns(delegating: Any, project: Path) -> None:
    turns = [
        {"when": {"turn": turn}, "toolCalls": [call("Bash", command=f"mkdir turn-{turn}")]} for turn in range(1, 10)
    ]
    delegating("a", *turns)
    options = QoderAgentOptions(allowed_tools=["Agent", "Bash"], agents={"a": await agent_with("16 maxTurns")})
    await run("go", options)
    assert sorted(each.name for each in project.iterdir()) == [f"turn-{turn}" for turn in range(1, 7)]


async def test_supported_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QODER_MODEL", playbook(tmp_path, {"text": "Here they are.", "repeat": True}))
    names = await execute(sample(FILE, "20 AgentInfo"), public_names())
    agents = {each["name"]: each for each in names["agents"]}
    assert agents["reviewer"]["description"] == "Reviews code quality."
    assert not agents["reviewer"].get("model")
    assert "general-purpose" in agents, "built-in agents are listed too"
    options = names["options"]
    async with QoderSDKClient(options) as client:
        assert {each["name"] for each in client.supported_agents()} == set(agents)
        await client.query("hi")
        (init,) = [
            each.data
            async for each in client.receive_response()
            if isinstance(each, SystemMessage) and each.subtype == "init"
        ]
    assert set(init["agents"]) == set(agents)
