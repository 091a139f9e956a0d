"""Document 003, where servers come from and which of them count: files, settings, allowlists, policies of tools.

Everything is shown with real servers; what is not connected has no row or says why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.looking import text_of
from support.real_servers import called, calling, everything, installed, results, settled

from qoder_agent_sdk import (
    PermissionResultAllow,
    PermissionResultDeny,
    QoderSDKClient,
    ToolPermissionContext,
    create_sdk_mcp_server,
    tool,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What the runtime does is the same on every event loop; methods and callbacks are tested on both."""
    return "asyncio"


ECHO = "mcp__every__echo"
#: Makes the project's own files count.
TRUST = ("QODER_TRUST", "1")


def time_server() -> dict[str, Any]:
    return {"command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]}


def written(path: Path, servers: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


async def names(options: Any) -> set[str]:
    async with QoderSDKClient(options) as client:
        return set(await settled(client))


@tool("greet", "Greets.", {"name": str})
async def greet(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Hello, {args['name']}"}]}


@pytest.mark.parametrize("kind", [str, Path])
async def test_servers_may_be_the_path_of_a_file(kind: Any, tmp_path: Path, scripted: Any) -> None:
    path = written(tmp_path / "servers.json", {"every": everything()})
    given = await called(calling(scripted, (ECHO, {"message": "from a file"}), mcp_servers=kind(path)))
    assert text_of(given[ECHO]) == "Echo: from a file"


async def test_servers_of_the_users_settings_are_loaded(isolated_home: Path, scripted: Any) -> None:
    written(isolated_home / ".qoder" / "settings.json", {"every": everything()})
    options = calling(scripted, (ECHO, {"message": "mine"}), mcp_servers={"time": time_server()})
    async with QoderSDKClient(options) as client:
        seen = await settled(client)
        assert {name: row["status"] for name, row in seen.items()} == {"every": "connected", "time": "connected"}
        assert seen["every"]["scope"] == "user"
        assert text_of((await results(client))[ECHO]) == "Echo: mine"


async def test_servers_of_a_project_wait_for_trust_and_approval(
    project: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch, scripted: Any
) -> None:
    written(project / ".mcp.json", {"every": everything()})
    assert await names(scripted({"text": "Hi."})) == set()
    monkeypatch.setenv(*TRUST)
    async with QoderSDKClient(scripted({"text": "Hi."})) as client:
        row = (await settled(client))["every"]
    assert row["status"] == "disabled" and "approv" in row["error"]

    approving = {"mcp": {"enabledProjectMcpServers": ["every"]}}
    (isolated_home / ".qoder").mkdir(exist_ok=True)
    (isolated_home / ".qoder" / "settings.json").write_text(json.dumps(approving))
    given = await called(calling(scripted, (ECHO, {"message": "approved"})))
    assert text_of(given[ECHO]) == "Echo: approved"


async def test_strict_uses_only_the_configured_servers(
    project: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch, scripted: Any
) -> None:
    monkeypatch.setenv(*TRUST)
    written(isolated_home / ".qoder" / "settings.json", {"mine": everything()})
    written(project / ".mcp.json", {"ours": everything()})
    servers = {"time": time_server()}
    assert await names(scripted({"text": "Hi."}, mcp_servers=servers)) == {"mine", "ours", "time"}
    assert await names(scripted({"text": "Hi."}, mcp_servers=servers, strict_mcp_config=True)) == {"time"}


async def test_only_allowed_servers_are_connected(scripted: Any) -> None:
    servers = {
        "every": everything(),
        "time": time_server(),
        "far": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
    }
    options = calling(scripted, (ECHO, {"message": "let in"}), mcp_servers=servers, allowed_mcp_server_names=["every"])
    async with QoderSDKClient(options) as client:
        assert set(await settled(client)) == {"every"}
        assert text_of((await results(client))[ECHO]) == "Echo: let in"


async def test_an_empty_allowlist_lets_all_in(scripted: Any) -> None:
    servers = {"every": everything(), "time": time_server()}
    assert await names(scripted({"text": "Hi."}, mcp_servers=servers, allowed_mcp_server_names=[])) == set(servers)


async def test_servers_in_the_program_are_not_filtered(scripted: Any) -> None:
    servers = {"inside": create_sdk_mcp_server("inside", tools=[greet]), "time": time_server()}
    options = scripted({"text": "Hi."}, mcp_servers=servers, allowed_mcp_server_names=["other"])
    assert await names(options) == {"inside"}


def policy(name: str, decision: str) -> dict[str, str]:
    return {"name": name, "permission_policy": decision}


async def test_always_allow_needs_no_permission(scripted: Any) -> None:
    server = {**everything(), "tools": [policy("echo", "always_allow")]}
    options = calling(scripted, (ECHO, {"message": "allowed"}), mcp_servers={"every": server}, allowed_tools=[])
    assert text_of((await called(options))[ECHO]) == "Echo: allowed"


async def test_without_a_policy_permission_is_needed(scripted: Any) -> None:
    options = calling(scripted, (ECHO, {"message": "?"}), mcp_servers={"every": everything()}, allowed_tools=[])
    assert (await called(options))[ECHO].is_error


@pytest.mark.parametrize("answer", [True, False])
async def test_always_ask_asks_although_a_rule_allows(answer: bool, scripted: Any) -> None:
    asked: list[str] = []

    async def can_use_tool(name: str, _: dict[str, Any], __: ToolPermissionContext) -> Any:
        asked.append(name)
        return PermissionResultAllow() if answer else PermissionResultDeny(message="not today")

    server = {**everything(), "tools": [policy("echo", "always_ask")]}
    options = calling(scripted, (ECHO, {"message": "asked"}), mcp_servers={"every": server}, can_use_tool=can_use_tool)
    result = (await called(options))[ECHO]
    assert asked == [ECHO]
    assert text_of(result) == "Echo: asked" if answer else result.is_error and "not today" in text_of(result)


async def test_always_deny_denies_although_a_rule_allows(scripted: Any) -> None:
    server = {**everything(), "tools": [policy("echo", "always_deny")]}
    result = (await called(calling(scripted, (ECHO, {"message": "no"}), mcp_servers={"every": server})))[ECHO]
    assert result.is_error and "Echo: no" not in text_of(result)


async def test_a_policy_is_for_one_tool_of_its_server(scripted: Any) -> None:
    servers = {"every": {**everything(), "tools": [policy("echo", "always_deny")]}, "other": everything()}
    calls = [
        (ECHO, {"message": "a"}),
        ("mcp__every__get-sum", {"a": 1, "b": 1}),
        ("mcp__other__echo", {"message": "b"}),
    ]
    given = await called(calling(scripted, *calls, mcp_servers=servers))
    assert [bool(given[name].is_error) for name, _ in calls] == [True, False, False]


async def test_policies_hold_for_servers_in_the_program(scripted: Any) -> None:
    server = {**create_sdk_mcp_server("inside", tools=[greet]), "tools": [policy("greet", "always_allow")]}
    name = "mcp__inside__greet"
    given = await called(calling(scripted, (name, {"name": "Ada"}), mcp_servers={"inside": server}, allowed_tools=[]))
    assert text_of(given[name]) == "Hello, Ada"


async def test_variables_are_put_into_a_configuration_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Any
) -> None:
    monkeypatch.setenv("SERVER_PROGRAM", everything()["command"])
    path = written(tmp_path / "servers.json", {"every": {"command": "${SERVER_PROGRAM}", "args": ["${HOW:-stdio}"]}})
    given = await called(calling(scripted, (ECHO, {"message": "expanded"}), mcp_servers=path))
    assert text_of(given[ECHO]) == "Echo: expanded"


async def test_a_server_for_git_reads_a_repository(project: Path, scripted: Any) -> None:
    git = shutil.which("git")
    assert git, "git is needed by mcp-server-git"
    subprocess.run([git, "init", "-q", str(project)], check=True)
    (project / "new.txt").write_text("new")
    server = {"command": installed("venv/bin/mcp-server-git"), "args": ["--repository", str(project)]}
    name = "mcp__git__git_status"
    given = await called(calling(scripted, (name, {"repo_path": str(project)}), mcp_servers={"git": server}))
    assert "new.txt" in text_of(given[name])
