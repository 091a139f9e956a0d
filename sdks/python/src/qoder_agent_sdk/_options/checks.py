"""Checks of `QoderAgentOptions`, before any process starts.

First the type of every field, then its value, then combinations that exclude
each other. Every error names the option and says what is accepted.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from .._errors import OptionTypeError, OptionValueError
from .._types.permissions import PermissionMode
from .._types.sessions import AgentDefinition, SettingSource
from .auth import check_auth

if TYPE_CHECKING:
    from .options import QoderAgentOptions

Check = Callable[[str, Any], None]


def check_options(options: QoderAgentOptions) -> None:
    """Refuse options that cannot work."""
    for name, check in _CHECKS.items():
        value = getattr(options, name)
        if value is not None:
            check(name, value)
        elif name in _NEVER_NONE:
            raise OptionTypeError(f"{name} must not be None; leave it out for its default")
    _check_combinations(options)


def _check_combinations(options: QoderAgentOptions) -> None:
    if options.can_use_tool is not None and options.permission_prompt_tool_name is not None:
        raise OptionValueError("can_use_tool and permission_prompt_tool_name exclude each other; give one of them")
    if options.permission_mode in ("bypassPermissions", "yolo") and not options.allow_dangerously_skip_permissions:
        raise OptionValueError(
            f"permission_mode '{options.permission_mode}' skips all permission checks; "
            "it also needs allow_dangerously_skip_permissions=True"
        )
    if options.resume is not None and options.continue_conversation:
        raise OptionValueError("resume and continue_conversation exclude each other; give one of them")
    goes_on = options.resume is not None or options.continue_conversation
    if options.fork_session and not goes_on:
        raise OptionValueError("fork_session needs resume (or continue_conversation): it forks an existing session")
    if options.session_id is not None and goes_on and not options.fork_session:
        raise OptionValueError(
            "session_id with resume or continue_conversation needs fork_session=True: it names the new session"
        )
    for name in ("resume_session_at", "resume_drops_turn"):
        if getattr(options, name) is not None and not goes_on:
            raise OptionValueError(f"{name} needs resume (or continue_conversation)")
    if not options.persist_session and options.enable_file_checkpointing:
        raise OptionValueError(
            "enable_file_checkpointing needs persist_session=True: checkpoints belong to a stored session"
        )
    if options.session_store is not None:
        from .._stores.resume import check_store

        check_store(options)


def _of_type(*accepted: type, called: str) -> Check:
    def check(name: str, value: Any) -> None:
        # bool is an int in Python, but never what a number option means.
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise OptionTypeError(f"{name} must be {called}, not {_shown(value)}")

    return check


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} ({text[:60]})" if len(text) <= 60 else type(value).__name__


_text = _of_type(str, called="a string")
_flag = _of_type(bool, called="True or False")
_path = _of_type(str, os.PathLike, called="a string or a Path")


def _filled_text(name: str, value: Any) -> None:
    _text(name, value)
    if not value.strip():
        raise OptionValueError(f"{name} must not be empty")


def _list_of_text(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise OptionTypeError(f"{name} must be a list of strings, not {_shown(value)}")
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise OptionTypeError(f"{name} must be a list of non-empty strings; it contains {_shown(item)}")


def _whole_number(least: int) -> Check:
    number = _of_type(int, called="a whole number")

    def check(name: str, value: Any) -> None:
        number(name, value)
        if value < least:
            raise OptionValueError(f"{name} must be at least {least}, not {value}")

    return check


def _positive_number(name: str, value: Any) -> None:
    _of_type(int, float, called="a number")(name, value)
    if not value > 0:
        raise OptionValueError(f"{name} must be more than 0, not {value}")
    if not math.isfinite(value):
        raise OptionValueError(f"{name} must be a finite number, not {value}")


def _one_of(*choices: str) -> Check:
    def check(name: str, value: Any) -> None:
        if value not in choices:
            raise OptionValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")

    return check


def _session_uuid(name: str, value: Any) -> None:
    import uuid

    _text(name, value)
    try:
        uuid.UUID(value)
    except ValueError:
        raise OptionValueError(f"{name} must be a UUID like {uuid.UUID(int=0)}, not {value!r}") from None


def _callback(parameters: int) -> Check:
    def check(name: str, value: Any) -> None:
        if not callable(value):
            raise OptionTypeError(f"{name} must be a function, not {_shown(value)}")
        if not accepts(value, parameters):
            raise OptionTypeError(
                f"{name} must take {parameters} parameter{'s' if parameters > 1 else ''}: {_shown(value)}"
            )

    return check


def _host_callback(name: str, value: Any) -> None:
    if not callable(value) or not (accepts(value, 1) or accepts(value, 2)):
        raise OptionTypeError(
            f"{name} must be a function that takes the request, and may take options: {_shown(value)}"
        )


def accepts(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True  # some builtins have no signature
    return True


def _auth_expired_callback(name: str, value: Any) -> None:
    if not callable(value) or not (accepts(value, 0) or accepts(value, 1)):
        raise OptionTypeError(f"{name} must be a function that takes the reason, or nothing; not {_shown(value)}")


def _tools(name: str, value: Any) -> None:
    if isinstance(value, dict):
        _preset(name, value)
    else:
        _list_of_text(name, value)


def _preset(name: str, value: dict[str, Any]) -> None:
    if value.get("type") != "preset" or value.get("preset") != "qodercli":
        raise OptionValueError(f"{name} as a dict must be {{'type': 'preset', 'preset': 'qodercli'}}, not {value!r}")


def _system_prompt(name: str, value: Any) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, dict):
        raise OptionTypeError(f"{name} must be a string, a preset or a file, not {_shown(value)}")
    if value.get("type") == "file":
        _path(f"{name}['path']", value.get("path"))
        return
    _preset(name, value)
    if value.get("append") is not None:
        _text(f"{name}['append']", value["append"])


def _text_map(optional: bool) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise OptionTypeError(f"{name} must be a dict of strings, not {_shown(value)}")
        for key, item in value.items():
            allowed = isinstance(item, str) or (optional and item is None)
            if not isinstance(key, str) or not key or not allowed:
                accepted = "strings or None" if optional else "strings"
                raise OptionTypeError(
                    f"{name} must map strings to {accepted}; the value of {key!r} is {type(item).__name__}"
                )

    return check


def _extra_args(name: str, value: Any) -> None:
    _text_map(optional=True)(name, value)
    for flag in value:
        if flag.startswith("-"):
            raise OptionValueError(f"{name}: write '{flag.lstrip('-')}' without leading dashes, not '{flag}'")


def _skills(name: str, value: Any) -> None:
    if value == "all":
        return
    if isinstance(value, str):
        raise OptionValueError(f"{name} must be 'all' or a list of names, not {value!r}")
    _list_of_text(name, value)
    for skill in value:
        if not re.fullmatch(r"(?:[A-Za-z0-9_-]{1,64}:)?[a-z0-9-]{1,64}", skill):
            raise OptionValueError(f"{name}: {skill!r} is not the name of a skill; write 'name' or 'plugin:name'")


def _plugins(name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise OptionTypeError(f"{name} must be a list of {{'type': 'local', 'path': ...}}, not {_shown(value)}")
    for plugin in value:
        if not isinstance(plugin, dict) or plugin.get("type") != "local":
            raise OptionValueError(f"{name}: only {{'type': 'local', 'path': ...}} is supported, not {plugin!r}")
        _path(f"{name}[...]['path']", plugin.get("path"))


def _settings(name: str, value: Any) -> None:
    _of_type(str, os.PathLike, dict, called="a dict, JSON text or the path of a file")(name, value)


def _setting_sources(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise OptionTypeError(f"{name} must be a list, not {_shown(value)}")
    for source in value:
        _one_of(*get_args(SettingSource))(name, source)


def _directories(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise OptionTypeError(f"{name} must be a list of directories, not {_shown(value)}")
    for directory in value:
        _path(name, directory)


def _thinking(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise OptionTypeError(f"{name} must be a dict with a 'type', not {_shown(value)}")
    _one_of("adaptive", "enabled", "disabled")(f"{name}['type']", value.get("type"))
    if value["type"] == "enabled":
        _whole_number(1)(f"{name}['budget_tokens']", value.get("budget_tokens"))
    if value.get("display") is not None:
        _one_of("summarized", "omitted")(f"{name}['display']", value["display"])


def _output_format(name: str, value: Any) -> None:
    if not isinstance(value, dict) or value.get("type") != "json_schema" or not isinstance(value.get("schema"), dict):
        raise OptionValueError(f"{name} must be {{'type': 'json_schema', 'schema': {{...}}}}, not {_shown(value)}")


def _dictionary(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise OptionTypeError(f"{name} must be a dict, not {_shown(value)}")


def _hooks(name: str, value: Any) -> None:
    from .._types.hooks import FurtherHookEvent, HookEvent

    _dictionary(name, value)
    for event, matchers in value.items():
        _filled_text(f"the event names of {name}", event)
        _hook_event(name, event, [*get_args(HookEvent), *get_args(FurtherHookEvent)])
        if not isinstance(matchers, (list, tuple)):
            raise OptionTypeError(f"{name}['{event}'] must be a list of HookMatcher, not {_shown(matchers)}")
        for matcher in matchers:
            _hook_matcher(f"{name}['{event}']", matcher)


def _hook_event(name: str, event: str, events: list[str]) -> None:
    """A hook for an event that never comes would guard nothing."""
    if event in events:
        return
    import difflib

    close = difflib.get_close_matches(event, events, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else f"; there are {', '.join(events)}"
    raise OptionValueError(f"{name}: there is no event '{event}'{hint}")


def _hook_matcher(where: str, matcher: Any) -> None:
    from .._types.hooks import HookFailurePolicy, HookMatcher

    if not isinstance(matcher, HookMatcher):
        raise OptionTypeError(f"{where} must contain HookMatcher objects, not {_shown(matcher)}")
    if isinstance(matcher.hooks, str) or not isinstance(matcher.hooks, (list, tuple)):
        raise OptionTypeError(f"{where}: HookMatcher.hooks must be a list of functions, not {_shown(matcher.hooks)}")
    for hook in matcher.hooks:
        _callback(3)(f"{where}: a hook", hook)
    if matcher.matcher is not None:
        _text(f"{where}: HookMatcher.matcher", matcher.matcher)
    if matcher.timeout is not None:
        _positive_number(f"{where}: HookMatcher.timeout", matcher.timeout)
    if matcher.on_failure is not None:
        _one_of(*get_args(HookFailurePolicy))(f"{where}: HookMatcher.on_failure", matcher.on_failure)


def _agents(name: str, value: Any) -> None:
    _dictionary(name, value)
    for key, agent in value.items():
        _filled_text(f"the names of {name}", key)
        if not isinstance(agent, AgentDefinition):
            raise OptionTypeError(f"{name}['{key}'] must be an AgentDefinition, not {_shown(agent)}")
        _filled_text(f"{name}['{key}'].description", agent.description)
        _filled_text(f"{name}['{key}'].prompt", agent.prompt)
        for list_name in ("tools", "disallowedTools", "skills"):
            if getattr(agent, list_name) is not None:
                _list_of_text(f"{name}['{key}'].{list_name}", getattr(agent, list_name))
        if agent.maxTurns is not None:
            _whole_number(1)(f"{name}['{key}'].maxTurns", agent.maxTurns)
        if agent.permissionMode is not None:
            _one_of(*get_args(PermissionMode))(f"{name}['{key}'].permissionMode", agent.permissionMode)


def check_mcp_servers(name: str, value: Any) -> None:
    """Refuse MCP configurations that cannot work; a string or path names a file."""
    if isinstance(value, (str, os.PathLike)):
        return
    if not isinstance(value, Mapping):
        raise OptionTypeError(f"{name} must be a dict of servers or the path of a JSON file, not {_shown(value)}")
    for key, config in value.items():
        _filled_text(f"the server names of {name}", key)
        _mcp_server(f"{name}['{key}']", config)


def _mcp_server(where: str, config: Any) -> None:
    if not isinstance(config, dict):
        raise OptionTypeError(f"{where} must be a dict, not {_shown(config)}")
    kind = config.get("type", "stdio")
    _one_of("stdio", "sse", "http", "sdk")(f"{where}['type']", kind)
    if kind == "stdio":
        _filled_text(f"{where}['command']", config.get("command"))
        _list_of_text_or_empty(f"{where}['args']", config.get("args", []))
        _text_map(optional=False)(f"{where}['env']", config.get("env", {}))
    elif kind == "sdk":
        if config.get("instance") is None:
            raise OptionValueError(f"{where} has no 'instance'; make it with create_sdk_mcp_server()")
    else:
        _filled_text(f"{where}['url']", config.get("url"))
        _text_map(optional=False)(f"{where}['headers']", config.get("headers", {}))
    for policy in config.get("tools", []):
        if not isinstance(policy, dict):
            raise OptionTypeError(f"{where}['tools'] must be a list of dicts, not {_shown(policy)}")
        _filled_text(f"{where}['tools'][...]['name']", policy.get("name"))
        _one_of("always_allow", "always_ask", "always_deny")(
            f"{where}['tools'][...]['permission_policy']", policy.get("permission_policy")
        )


def _list_of_text_or_empty(name: str, value: Any) -> None:
    # Arguments of a program may be empty strings, names may not.
    if (
        isinstance(value, str)
        or not isinstance(value, (list, tuple))
        or not all(isinstance(item, str) for item in value)
    ):
        raise OptionTypeError(f"{name} must be a list of strings, not {_shown(value)}")


def _proxy(name: str, value: Any) -> None:
    _text(name, value)
    if not value.startswith(("http://", "https://", "socks5://", "socks://")):
        raise OptionValueError(f"{name} must start with http://, https://, socks5:// or socks://")


_NEVER_NONE = frozenset(
    (
        "allowed_tools disallowed_tools env extra_args add_dirs plugins betas mcp_servers allowed_mcp_server_names "
        "allow_dangerously_skip_permissions continue_conversation fork_session persist_session "
        "include_partial_messages include_hook_events forward_subagent_text prompt_suggestions strict_mcp_config "
        "resolve_model_timeout_ms control_request_timeout_ms session_store_flush"
    ).split()
)

_CHECKS: dict[str, Check] = {
    "auth": lambda _name, value: check_auth(value),
    "on_auth_expired": _auth_expired_callback,
    "tools": _tools,
    "allowed_tools": _list_of_text,
    "disallowed_tools": _list_of_text,
    "can_use_tool": _callback(3),
    "permission_mode": _one_of(*get_args(PermissionMode)),
    "allow_dangerously_skip_permissions": _flag,
    "permission_prompt_tool_name": _filled_text,
    "plan_mode_instructions": _text,
    "sandbox": _dictionary,
    "model": _filled_text,
    "fallback_model": _filled_text,
    "resolve_model": _callback(1),
    "resolve_model_timeout_ms": _whole_number(1),
    "thinking": _thinking,
    "max_thinking_tokens": _whole_number(0),
    "effort": _one_of("low", "medium", "high", "xhigh", "max"),
    "betas": _list_of_text,
    "system_prompt": _system_prompt,
    "custom_context": _text_map(optional=False),
    "output_format": _output_format,
    "exclude_dynamic_sections": _flag,
    "cwd": _path,
    "env": _text_map(optional=True),
    "cli_path": _path,
    "user": _filled_text,
    "extra_args": _extra_args,
    "proxy": _proxy,
    "stderr": _callback(1),
    "max_buffer_size": _whole_number(1),
    "control_request_timeout_ms": _whole_number(0),
    "session_id": _session_uuid,
    "resume": _filled_text,
    "continue_conversation": _flag,
    "fork_session": _flag,
    "resume_session_at": _filled_text,
    "resume_drops_turn": _filled_text,
    "persist_session": _flag,
    "enable_file_checkpointing": _flag,
    "session_store_flush": _one_of("batched", "eager"),
    "max_turns": _whole_number(1),
    "max_budget_usd": _positive_number,
    "task_budget": _whole_number(1),
    "goal_max_turns": _whole_number(1),
    "include_partial_messages": _flag,
    "include_hook_events": _flag,
    "forward_subagent_text": _flag,
    "prompt_suggestions": _flag,
    "mcp_servers": check_mcp_servers,
    "allowed_mcp_server_names": _list_of_text,
    "strict_mcp_config": _flag,
    "on_mcp_oauth_required": _host_callback,
    "on_mcp_status_change": _callback(1),
    "on_elicitation": _host_callback,
    "hooks": _hooks,
    "agents": _agents,
    "agent": _filled_text,
    "skills": _skills,
    "plugins": _plugins,
    "settings": _settings,
    "setting_sources": _setting_sources,
    "add_dirs": _directories,
}
