"""Options: defaults, names and values that are refused before a process starts.

Nothing here starts a process: whatever is wrong with options is said when they are
made or when a session is asked for.
"""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any, get_args

import pytest

from qoder_agent_sdk import (
    AgentDefinition,
    FurtherHookEvent,
    HookEvent,
    HookMatcher,
    OptionTypeError,
    OptionValueError,
    QoderAgentOptions,
    QoderSDKClient,
    QoderSDKError,
    access_token,
    query,
)

DOCUMENTED_DEFAULTS: dict[str, Any] = {
    "auth": None,
    "on_auth_expired": None,
    "tools": None,
    "allowed_tools": [],
    "disallowed_tools": [],
    "can_use_tool": None,
    "permission_mode": None,
    "allow_dangerously_skip_permissions": False,
    "permission_prompt_tool_name": None,
    "model": None,
    "fallback_model": None,
    "resolve_model": None,
    "resolve_model_timeout_ms": 500,
    "system_prompt": None,
    "cwd": None,
    "env": {},
    "cli_path": None,
    "session_id": None,
    "resume": None,
    "continue_conversation": False,
    "fork_session": False,
    "max_turns": None,
    "include_partial_messages": False,
    "mcp_servers": {},
    "allowed_mcp_server_names": [],
    "strict_mcp_config": False,
    "hooks": None,
    "agents": None,
    "agent": None,
    "settings": None,
    "setting_sources": None,
    "add_dirs": [],
    "extra_args": {},
    "plugins": [],
    "skills": None,
    "enable_file_checkpointing": None,
    "thinking": None,
    "control_request_timeout_ms": 60_000,
    "on_mcp_oauth_required": None,
    "on_mcp_status_change": None,
    "on_elicitation": None,
}


async def three(_one: Any, _two: Any, _three: Any) -> dict[str, Any]:
    return {}


def test_documented_fields_have_their_documented_defaults() -> None:
    options = QoderAgentOptions()
    assert {name: getattr(options, name) for name in DOCUMENTED_DEFAULTS} == DOCUMENTED_DEFAULTS


def test_lists_and_dicts_are_not_shared_between_options() -> None:
    first, second = QoderAgentOptions(), QoderAgentOptions()
    first.allowed_tools.append("Read")
    first.env["A"] = "b"
    assert second.allowed_tools == [] and second.env == {}


def test_options_can_be_copied_and_replaced() -> None:
    options = QoderAgentOptions(model="auto", allowed_tools=["Read"])
    assert copy.copy(options) == copy.deepcopy(options) == options
    changed = replace(options, model="lite")
    assert (changed.model, changed.allowed_tools, options.model) == ("lite", ["Read"], "auto")
    with pytest.raises(OptionValueError, match="must not be empty"):
        replace(options, model="")


def test_there_is_no_tool_config_in_python() -> None:
    assert "tool_config" not in {each.name for each in fields(QoderAgentOptions)}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("allowedTools", "allowed_tools"), ("permision_mode", "permission_mode"), ("max_turn", "max_turns")],
)
def test_an_unknown_name_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"no option '{name}'; did you mean '{meant}'"):
        QoderAgentOptions(**{name: None})


def test_an_unknown_name_that_resembles_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'zzzzzzzz'$"):
        QoderAgentOptions(**{"zzzzzzzz": 1})


WRONG_TYPES = [
    ("tools", "Read", "list of strings"),
    ("allowed_tools", ["Read", 3], "allowed_tools"),
    ("allowed_tools", None, "must not be None"),
    ("disallowed_tools", "Bash", "disallowed_tools"),
    ("can_use_tool", "yes", "must be a function"),
    ("can_use_tool", lambda name: None, "3 parameters"),
    ("resolve_model", lambda: None, "1 parameter"),
    ("on_auth_expired", lambda one, two: None, "on_auth_expired"),
    ("on_elicitation", lambda one, two, three: None, "on_elicitation"),
    ("on_mcp_oauth_required", 3, "must be a function"),
    ("max_turns", "3", "whole number"),
    ("max_turns", True, "whole number"),
    ("model", 3, "model must be a string"),
    ("system_prompt", 3, "system_prompt"),
    ("cwd", 3, "a string or a Path"),
    ("env", {"A": 1}, "env must map strings"),
    ("mcp_servers", [], "mcp_servers must be a dict"),
    ("mcp_servers", {"a": "b"}, "must be a dict"),
    ("hooks", {"PreToolUse": HookMatcher(hooks=[])}, "list of HookMatcher"),
    ("hooks", {"PreToolUse": [{"hooks": []}]}, "HookMatcher objects"),
    ("hooks", {"PreToolUse": [HookMatcher(hooks=[lambda one: None])]}, "3 parameters"),
    ("agents", {"a": {"description": "d", "prompt": "p"}}, "AgentDefinition"),
    ("settings", 3, "settings"),
    ("setting_sources", "user", "must be a list"),
    ("add_dirs", "/tmp", "list of directories"),
    ("plugins", {"type": "local"}, "must be a list"),
    ("thinking", "adaptive", "must be a dict"),
    ("fork_session", "yes", "True or False"),
    ("auth", "token", "access_token"),
    ("extra_args", ["--debug"], "dict of strings"),
]


@pytest.mark.parametrize(("name", "value", "text"), WRONG_TYPES)
def test_a_wrong_type_is_refused_by_name(name: str, value: Any, text: str) -> None:
    with pytest.raises(OptionTypeError, match=text) as caught:
        QoderAgentOptions(**{name: value})
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, QoderSDKError)
    assert name in str(caught.value)


WRONG_VALUES = [
    ({"permission_mode": "acceptAll"}, "acceptEdits"),
    ({"permission_mode": "bypassPermissions"}, "allow_dangerously_skip_permissions=True"),
    ({"permission_mode": "yolo"}, "allow_dangerously_skip_permissions=True"),
    ({"can_use_tool": three, "permission_prompt_tool_name": "mcp__a__b"}, "exclude each other"),
    ({"resume": "x", "continue_conversation": True}, "exclude each other"),
    ({"fork_session": True}, "fork_session needs resume"),
    ({"session_id": "not-a-uuid"}, "UUID"),
    ({"session_id": "11111111-2222-4333-8444-555555555555", "resume": "x"}, "fork_session=True"),
    ({"resume_session_at": "x"}, "resume_session_at needs resume"),
    ({"max_turns": 0}, "at least 1"),
    ({"resolve_model_timeout_ms": 0}, "at least 1"),
    ({"control_request_timeout_ms": -1}, "at least 0"),
    ({"model": " "}, "must not be empty"),
    ({"tools": {"type": "preset", "preset": "other"}}, "qodercli"),
    ({"system_prompt": {"type": "preset", "preset": "other"}}, "qodercli"),
    ({"mcp_servers": {"a": {"type": "ws", "url": "x"}}}, "stdio, sse, http, sdk"),
    ({"mcp_servers": {"a": {"type": "sdk", "name": "a"}}}, "create_sdk_mcp_server"),
    ({"mcp_servers": {"a": {"command": ""}}}, "command"),
    ({"mcp_servers": {"a": {"type": "http", "url": ""}}}, "url"),
    ({"mcp_servers": {"a": {"command": "x", "tools": [{"name": "t", "permission_policy": "maybe"}]}}}, "always_allow"),
    ({"plugins": [{"type": "git", "path": "x"}]}, "only"),
    ({"setting_sources": ["global"]}, "user, project, local"),
    ({"skills": "none"}, "'all' or a list"),
    ({"skills": ["a(b)"]}, "not the name of a skill"),
    ({"skills": ["/pdf"]}, "not the name of a skill"),
    ({"skills": ["../pdf"]}, "not the name of a skill"),
    ({"skills": ["a,b"]}, "not the name of a skill"),
    ({"skills": ["*"]}, "not the name of a skill"),
    ({"thinking": {"type": "loud"}}, "adaptive, enabled, disabled"),
    ({"agents": {"a": AgentDefinition(description="", prompt="p")}}, "description must not be empty"),
    ({"agents": {"a": AgentDefinition(description="d", prompt="p", permissionMode="loose")}}, "permissionMode"),  # type: ignore[arg-type]
    ({"hooks": {"PreToolUse": [HookMatcher(hooks=[three], timeout=0)]}}, "timeout must be more than 0"),
    ({"hooks": {"PreTooluse": [HookMatcher(hooks=[three])]}}, "no event 'PreTooluse'; did you mean 'PreToolUse'"),
    ({"hooks": {"Nonsense": []}}, "no event 'Nonsense'; there are PreToolUse, "),
    ({"hooks": {"PreToolUse": [HookMatcher(hooks=[three], timeout=float("inf"))]}}, "timeout must be a finite number"),
    ({"auth": {"type": "password"}}, "'accessToken' or 'qodercli'"),
    ({"auth": {"type": "accessToken"}}, "accessToken"),
    ({"extra_args": {"--debug": None}}, "without leading dashes"),
    ({"proxy": "ftp://x"}, "socks5://"),
    ({"persist_session": False, "enable_file_checkpointing": True}, "persist_session"),
]


@pytest.mark.parametrize(("options", "text"), WRONG_VALUES)
def test_a_wrong_value_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises((OptionValueError, OptionTypeError), match=text):
        QoderAgentOptions(**options)


def test_values_that_were_changed_later_are_checked_when_a_session_starts() -> None:
    options = QoderAgentOptions()
    options.permission_mode = "yolo"
    with pytest.raises(OptionValueError, match="allow_dangerously_skip_permissions"):
        query(prompt="hi", options=options)
    with pytest.raises(OptionValueError, match="allow_dangerously_skip_permissions"):
        QoderSDKClient(options)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "auto"])
def test_every_mode_that_needs_no_guard_is_accepted(mode: Any) -> None:
    assert QoderAgentOptions(permission_mode=mode).permission_mode == mode


@pytest.mark.parametrize("mode", ["bypassPermissions", "yolo"])
def test_the_guard_lets_checks_be_skipped(mode: Any) -> None:
    assert QoderAgentOptions(permission_mode=mode, allow_dangerously_skip_permissions=True).permission_mode == mode


@pytest.mark.parametrize("event", [*get_args(HookEvent), *get_args(FurtherHookEvent)])
def test_every_event_can_be_hooked(event: Any) -> None:
    options = QoderAgentOptions(hooks={event: [HookMatcher(hooks=[three])]})
    assert options.hooks is not None and event in options.hooks


def test_secrets_are_not_printed() -> None:
    options = QoderAgentOptions(
        auth=access_token("s3cret"),
        env={"KEY": "s3cret"},
        proxy="http://user:s3cret@host",
        mcp_servers={"a": {"type": "http", "url": "u", "headers": {"Authorization": "s3cret"}}},
        settings={"apiKey": "s3cret"},
    )
    assert "s3cret" not in repr(options) and "s3cret" not in repr(options.auth)


@pytest.mark.parametrize("prompt", [None, 3, ["hi"]])
def test_a_prompt_must_be_text_or_an_async_iterable(prompt: Any) -> None:
    with pytest.raises(OptionTypeError, match="async iterable"):
        query(prompt=prompt)


def test_query_takes_keywords_only() -> None:
    with pytest.raises(TypeError):
        query("hi")  # type: ignore[misc]
