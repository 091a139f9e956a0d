"""Every method of the client: the request it sends and what it makes of the answer.

A fake runtime notes the request and answers as told. What the real runtime does
with these requests is tested with the features they belong to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import OptionTypeError, OptionValueError, QoderAgentOptions, QoderSDKClient

pytestmark = pytest.mark.anyio

# name, arguments, keywords, request without subtype, answer, result
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any], Any, Any]] = [
    ("interrupt", (), {}, {"subtype": "interrupt"}, {"still_queued": ["u"]}, {"still_queued": ["u"]}),
    ("set_permission_mode", ("plan",), {}, {"subtype": "set_permission_mode", "mode": "plan"}, {}, None),
    ("set_model", ("auto",), {}, {"subtype": "set_model", "model": "auto"}, {}, None),
    ("set_model", (), {}, {"subtype": "set_model", "model": None}, {}, None),
    ("stop_task", ("t",), {}, {"subtype": "stop_task", "task_id": "t"}, {}, None),
    ("apply_flag_settings", ({"a": 1},), {}, {"subtype": "apply_flag_settings", "settings": {"a": 1}}, {}, None),
    (
        "rewind_files",
        ("u",),
        {},
        {"subtype": "rewind_files", "user_message_id": "u"},
        {"canRewind": True},
        {"canRewind": True},
    ),
    (
        "rewind_files",
        ("u",),
        {"dry_run": True},
        {"subtype": "rewind_files", "user_message_id": "u", "dry_run": True},
        {"canRewind": False},
        {"canRewind": False},
    ),
    ("rewind", ("u",), {"scope": "both"}, {"subtype": "rewind", "user_message_id": "u", "scope": "both"}, {}, {}),
    ("get_context_usage", (), {}, {"subtype": "get_context_usage"}, {"totalTokens": 1}, {"totalTokens": 1}),
    (
        "get_available_models",
        (),
        {},
        {"subtype": "get_available_models"},
        {"models": [{"value": "m"}]},
        [{"value": "m"}],
    ),
    (
        "get_available_models",
        (),
        {"fetch_strategy": "live"},
        {"subtype": "get_available_models", "fetchStrategy": "live"},
        {},
        [],
    ),
    ("list_byok_providers", (), {}, {"subtype": "get_byok_config"}, {"providers": [{"key": "p"}]}, [{"key": "p"}]),
    ("supported_commands", (), {}, {"subtype": "supported_commands"}, {"commands": [{"name": "c"}]}, [{"name": "c"}]),
    ("account_info", (), {}, {"subtype": "account_info"}, {"account": {"email": "e"}}, {"email": "e"}),
    ("get_usage_info", (), {}, {"subtype": "get_usage_info"}, {"usageInfo": None}, None),
    ("get_usage_info", (), {}, {"subtype": "get_usage_info"}, {"usageInfo": {"userId": "u"}}, {"userId": "u"}),
    ("cancel_async_message", ("u",), {}, {"subtype": "cancel_async_message", "uuid": "u"}, {"cancelled": True}, True),
    ("background_tasks", (), {}, {"subtype": "background_tasks"}, {"moved": False}, False),
    ("background_tasks", ("t",), {}, {"subtype": "background_tasks", "tool_use_id": "t"}, {"moved": True}, True),
    (
        "add_directories",
        ([Path("/a"), "/b"],),
        {},
        {"subtype": "add_directories", "directories": ["/a", "/b"]},
        {"added": ["/a"]},
        ["/a"],
    ),
    (
        "generate_session_title",
        ("d",),
        {"persist": True},
        {"subtype": "generate_session_title", "description": "d", "persist": True},
        {"title": "T"},
        "T",
    ),
    ("set_goal_max_turns", (3,), {}, {"subtype": "set_goal_max_turns", "maxTurns": 3}, {}, None),
    ("set_goal_max_turns", (None,), {}, {"subtype": "set_goal_max_turns", "maxTurns": None}, {}, None),
    ("list_agents", (), {}, {"subtype": "list_agents"}, {"agents": [{"name": "a"}]}, [{"name": "a"}]),
    ("list_hooks", (), {}, {"subtype": "list_hooks"}, {"hooks": [{"event": "Stop"}]}, [{"event": "Stop"}]),
    ("list_skills", (), {}, {"subtype": "list_skills"}, {"skills": [{"name": "s"}]}, [{"name": "s"}]),
    ("list_memory", (), {}, {"subtype": "list_memory"}, {"files": [{"path": "/m"}]}, [{"path": "/m"}]),
    ("list_tools", (), {}, {"subtype": "list_tools"}, {"tools": [{"name": "Read"}]}, [{"name": "Read"}]),
    ("list_permission_rules", (), {}, {"subtype": "list_permission_rules"}, {"mode": "plan"}, {"mode": "plan"}),
    ("set_effort", ("high",), {}, {"subtype": "set_effort", "effort": "high"}, {}, None),
    ("set_effort", (None,), {}, {"subtype": "set_effort", "effort": None}, {}, None),
    (
        "update_permissions",
        ([{"type": "setMode", "mode": "plan", "destination": "session"}],),
        {},
        {
            "subtype": "update_permissions",
            "updates": [{"type": "setMode", "mode": "plan", "destination": "session"}],
        },
        {},
        None,
    ),
    ("set_session_title", ("T",), {}, {"subtype": "set_session_title", "title": "T"}, {}, None),
    ("run_command", ("ls",), {}, {"subtype": "run_command", "command": "ls"}, {}, None),
    ("task_output", ("b1",), {}, {"subtype": "task_output", "task_id": "b1"}, {"output": "done"}, "done"),
    ("reload_mcp_servers", (), {}, {"subtype": "mcp_reload"}, {"added": ["a"]}, {"added": ["a"]}),
    ("list_plugins", (), {}, {"subtype": "list_plugins"}, {"plugins": [{"name": "p"}]}, [{"name": "p"}]),
    ("reload_plugins", (), {}, {"subtype": "reload_plugins"}, {"error_count": 0}, {"error_count": 0}),
    ("get_mcp_status", (), {}, {"subtype": "mcp_status"}, {}, {"mcpServers": []}),
    (
        "set_mcp_servers",
        ({"a": {"command": "c"}},),
        {},
        {"subtype": "mcp_set_servers", "servers": {"a": {"command": "c"}}},
        {"added": ["a"]},
        {"added": ["a"], "removed": [], "errors": {}},
    ),
    ("reconnect_mcp_server", ("s",), {}, {"subtype": "mcp_reconnect", "serverName": "s"}, {}, None),
    ("toggle_mcp_server", ("s", False), {}, {"subtype": "mcp_toggle", "serverName": "s", "enabled": False}, {}, None),
    (
        "mcp_authenticate",
        ("s",),
        {"redirect_uri": "app://x"},
        {"subtype": "mcp_authenticate", "serverName": "s", "redirectUri": "app://x"},
        {"requiresUserAction": False},
        {"requiresUserAction": False},
    ),
    (
        "mcp_submit_oauth_callback_url",
        ("s", "http://x"),
        {},
        {"subtype": "mcp_submit_oauth_callback_url", "serverName": "s", "callbackUrl": "http://x"},
        {},
        None,
    ),
    (
        "inject_mcp_token",
        ("s", {"access_token": "t"}),
        {},
        {"subtype": "inject_mcp_token", "serverName": "s", "token": {"access_token": "t"}},
        {},
        None,
    ),
    ("mcp_clear_auth", ("s",), {}, {"subtype": "mcp_clear_auth", "serverName": "s"}, {}, None),
]


@pytest.mark.parametrize(("name", "arguments", "keywords", "request_", "answer", "result"), CASES)
async def test_a_method_sends_its_request_and_gives_its_answer(
    name: str,
    arguments: Any,
    keywords: Any,
    request_: Any,
    answer: Any,
    result: Any,
    fake_runtime: Any,
    tmp_path: Path,
) -> None:
    seen = tmp_path / "seen.json"
    script = (
        f"handshake()\nmessage = read()\nopen({str(seen)!r}, 'w').write(json.dumps(message['request']))\n"
        f"answer(message, {answer!r})\nwait_for_end()"
    )
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        assert await getattr(client, name)(*arguments, **keywords) == result
    assert json.loads(seen.read_text()) == request_


REFUSED = """
handshake()
while (message := read()) is not None:
    response = {'subtype': 'error', 'request_id': message['request_id'], 'error': 'not today'}
    send({'type': 'control_response', 'response': response})
"""


async def test_catalogs_that_cannot_be_fetched_do_not_raise(fake_runtime: Any) -> None:
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(REFUSED))) as client:
        assert await client.get_available_models() == []
        assert await client.list_byok_providers() is None


async def test_arguments_that_cannot_work_are_refused_before_anything_is_sent(fake_runtime: Any) -> None:
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime("handshake()\nwait_for_end()"))) as client:
        with pytest.raises(OptionTypeError, match="settings must be a dict"):
            await client.apply_flag_settings("x")  # type: ignore[arg-type]
        with pytest.raises(OptionTypeError, match="servers must be a dict"):
            await client.set_mcp_servers("x")  # type: ignore[arg-type]
        with pytest.raises(OptionValueError, match="stdio, sse, http, sdk"):
            await client.set_mcp_servers({"a": {"type": "ws", "url": "u"}})  # type: ignore[typeddict-item]
        with pytest.raises(OptionTypeError, match="async iterable"):
            await client.query(3)  # type: ignore[arg-type]


async def test_a_prompt_may_carry_an_id(fake_runtime: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    script = f"handshake()\nopen({str(seen)!r}, 'w').write(json.dumps([read(), read()]))\nresult()\nwait_for_end()"

    async def messages() -> Any:
        yield {"type": "user", "message": {"content": "two"}, "uuid": "u-2", "priority": "now"}

    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))) as client:
        await client.query("one", message_uuid="u-1")
        with pytest.raises(OptionValueError, match="message_uuid goes with a text"):
            await client.query(messages(), message_uuid="u-1")
        await client.query(messages())
        async for _message in client.receive_response():
            pass
    first, second = json.loads(seen.read_text())
    assert first == {
        "type": "user",
        "message": {"role": "user", "content": "one"},
        "parent_tool_use_id": None,
        "session_id": "default",
        "uuid": "u-1",
    }
    assert second["uuid"] == "u-2" and second["priority"] == "now"
    assert second["message"] == {"role": "user", "content": "two"}
