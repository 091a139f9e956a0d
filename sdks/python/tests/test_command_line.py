"""Options become flags and environment variables of the runtime.

Only the translation is looked at; what the runtime makes of the flags is tested with
the features they belong to.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import OptionValueError, QoderAgentOptions, create_sdk_mcp_server
from qoder_agent_sdk._process.command import arguments_for, environment_for
from qoder_agent_sdk._process.launch_files import LaunchFiles


async def allow(_name: str, _arguments: Any, _context: Any) -> Any:
    return None


def flags(files: LaunchFiles | None = None, **options: Any) -> list[str]:
    arguments = arguments_for(QoderAgentOptions(**options), files or LaunchFiles())
    assert arguments[:4] == ["--output-format", "stream-json", "--verbose", "--disable-builtin-skills"]
    assert arguments[-2:] == ["--input-format", "stream-json"]
    return arguments[4:-2]


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"system_prompt": "be brief"}, ["--system-prompt", "be brief"]),
    ({"system_prompt": ""}, ["--system-prompt", ""]),
    ({"system_prompt": {"type": "preset", "preset": "qodercli"}}, []),
    (
        {"system_prompt": {"type": "preset", "preset": "qodercli", "append": "also"}},
        ["--append-system-prompt", "also"],
    ),
    ({"system_prompt": {"type": "file", "path": "p.md"}}, ["--system-prompt-file", "p.md"]),
    ({"tools": []}, ["--tools", ""]),
    ({"tools": ["Read", "Grep"]}, ["--tools", "Read,Grep"]),
    ({"tools": {"type": "preset", "preset": "qodercli"}}, ["--tools", "default"]),
    ({"allowed_tools": ["Read", "Bash(git log *)"]}, ["--allowedTools", "Read,Bash(git log *)"]),
    ({"disallowed_tools": ["Bash"]}, ["--disallowedTools", "Bash"]),
    ({"skills": "all"}, ["--allowedTools", "Skill", "--setting-sources=user,project"]),
    (
        {"skills": ["pdf", "p:x"], "allowed_tools": ["Read"], "setting_sources": ["local"]},
        ["--allowedTools", "Read,Skill(pdf),Skill(p:x)", "--setting-sources=local"],
    ),
    ({"skills": []}, ["--setting-sources=user,project"]),
    ({"permission_mode": "plan"}, ["--permission-mode", "plan"]),
    (
        {"permission_mode": "yolo", "allow_dangerously_skip_permissions": True},
        ["--permission-mode", "bypassPermissions", "--allow-dangerously-skip-permissions"],
    ),
    ({"can_use_tool": allow}, ["--permission-prompt-tool", "stdio"]),
    ({"permission_prompt_tool_name": "mcp__a__b"}, ["--permission-prompt-tool", "mcp__a__b"]),
    ({"model": "auto", "fallback_model": "lite"}, ["--model", "auto", "--fallback-model", "lite"]),
    (
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        ["--thinking", "adaptive", "--thinking-display", "omitted"],
    ),
    ({"thinking": {"type": "disabled"}}, ["--thinking", "disabled"]),
    ({"thinking": {"type": "enabled", "budget_tokens": 9}}, ["--max-thinking-tokens", "9"]),
    ({"effort": "high"}, ["--effort", "high"]),
    ({"continue_conversation": True}, ["--continue"]),
    ({"resume": "-odd title"}, ["--resume=-odd title"]),
    ({"resume": "x", "fork_session": True}, ["--resume=x", "--fork-session"]),
    ({"persist_session": False}, ["--no-session-persistence"]),
    ({"max_turns": 3}, ["--max-turns", "3"]),
    ({"include_partial_messages": True}, ["--include-partial-messages"]),
    ({"include_hook_events": True}, ["--include-hook-events"]),
    ({"settings": {"a": 1}}, ["--settings", '{"a": 1}']),
    ({"settings": "/s.json"}, ["--settings", "/s.json"]),
    ({"setting_sources": []}, ["--setting-sources="]),
    ({"setting_sources": ["user", "local"]}, ["--setting-sources=user,local"]),
    ({"add_dirs": ["/a", Path("/b")]}, ["--add-dir", "/a", "--add-dir", "/b"]),
    ({"plugins": [{"type": "local", "path": "./p"}]}, ["--plugin-dir", "./p"]),
    ({"agent": "planner"}, ["--agent", "planner"]),
    ({"mcp_servers": Path("/m.json")}, ["--mcp-config", "/m.json"]),
    ({"strict_mcp_config": True}, ["--strict-mcp-config"]),
    ({"allowed_mcp_server_names": ["a", "b"]}, ["--allowed-mcp-server-names", "a,b"]),
    ({"extra_args": {"debug": None, "level": "3", "odd": "-1"}}, ["--debug", "--level", "3", "--odd=-1"]),
    (
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
        ["--json-schema", '{"type": "object"}'],
    ),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_options_become_flags(options: dict[str, Any], expected: list[str]) -> None:
    assert flags(**options) == expected


def test_an_in_process_server_is_announced_without_its_instance() -> None:
    server = create_sdk_mcp_server(name="kb")
    name, value = flags(mcp_servers={"kb": server, "other": {"command": "x"}})
    assert name == "--mcp-config"
    assert json.loads(value) == {"mcpServers": {"kb": {"type": "sdk", "name": "kb"}, "other": {"command": "x"}}}


def test_in_process_servers_are_always_among_the_allowed_ones() -> None:
    servers = {"kb": create_sdk_mcp_server(name="kb"), "other": {"command": "x"}}
    assert flags(mcp_servers=servers, allowed_mcp_server_names=["other"])[-1] == "other,kb"
    assert "--allowed-mcp-server-names" not in flags(mcp_servers=servers)


def test_a_sandbox_is_added_to_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('\ufeff{"a": 1}', encoding="utf-8")
    for settings in ({"a": 1}, str(path), '{"a": 1}'):
        _, value = flags(settings=settings, sandbox={"enabled": True})
        assert json.loads(value) == {"a": 1, "sandbox": {"enabled": True}}


def test_settings_that_cannot_be_read_do_not_mix_with_a_sandbox(tmp_path: Path) -> None:
    with pytest.raises(OptionValueError, match="cannot be combined with sandbox"):
        flags(settings=tmp_path / "absent.json", sandbox={"enabled": True})


def test_the_environment_says_who_starts_the_runtime(tmp_path: Path) -> None:
    environment = environment_for(QoderAgentOptions(cwd=tmp_path, enable_file_checkpointing=True))
    assert environment["QODER_ENTRYPOINT"] == "sdk-py"
    assert environment["QODER_SDK_VERSION"] == "0.1.0"
    assert environment["QODER_SDK_READS_SESSION_STATE"] == "1"
    assert environment["QODER_ENABLE_SDK_FILE_CHECKPOINTING"] == "true"
    assert environment["PWD"] == str(tmp_path)


def test_sources_that_nobody_listed_are_marked() -> None:
    name = "QODER_SDK_IMPLIED_SETTING_SOURCES"
    assert environment_for(QoderAgentOptions(skills="all"))[name] == "1"
    assert name not in environment_for(QoderAgentOptions(skills="all", setting_sources=["project"]))
    assert name not in environment_for(QoderAgentOptions())


def test_none_removes_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "1")
    monkeypatch.setenv("KEPT", "1")
    environment = environment_for(QoderAgentOptions(env={"GONE": None, "NEW": "2"}))
    assert "GONE" not in environment
    assert environment["KEPT"] == "1" and environment["NEW"] == "2"


SECRETS: list[tuple[str, dict[str, Any]]] = [
    ("--mcp-config", {"mcp_servers": {"a": {"type": "http", "url": "u", "headers": {"Authorization": "s3cret"}}}}),
    ("--mcp-config", {"mcp_servers": {"a": {"command": "c", "env": {"X": "s3cret"}}}}),
    ("--settings", {"settings": {"providers": [{"apiKey": "s3cret"}]}}),
    ("--settings", {"settings": {"long": "s3cret" + "x" * 200_000}}),
    ("--system-prompt-file", {"system_prompt": "s3cret" + "x" * 200_000}),
]


@pytest.mark.parametrize(("flag", "options"), SECRETS)
def test_secrets_and_long_values_are_not_arguments(flag: str, options: dict[str, Any]) -> None:
    files = LaunchFiles()
    name, value = flags(files, **options)
    assert name == flag and "s3cret" not in value
    path = Path(value)
    assert "s3cret" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files.remove()
    assert not path.parent.exists()
