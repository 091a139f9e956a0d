"""From options to the command line and environment of the runtime.

Flags carry what the runtime must know before the first message; callbacks,
agents, hooks and credentials go with `initialize` and never appear here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._errors import OptionValueError
from .._options.options import QoderAgentOptions
from .._version import __version__
from .binary import find_binary
from .launch_files import LaunchFiles, is_too_long, may_hold_secrets
from .lines import DEFAULT_LINE_LIMIT
from .transport import Launch

if TYPE_CHECKING:
    from pathlib import Path

_SDK_NAME = "sdk-py"


def launch_for(options: QoderAgentOptions, files: LaunchFiles) -> Launch:
    """How to start the runtime for a session with these options."""
    binary = find_binary(options.cli_path, options.env)
    try:
        arguments = arguments_for(options, files)
    except BaseException:
        files.remove()
        raise
    return Launch(
        arguments=[binary, *arguments],
        environment=environment_for(options),
        directory=None if options.cwd is None else os.fspath(options.cwd),
        user=options.user,
        line_limit=options.max_buffer_size or DEFAULT_LINE_LIMIT,
        on_stderr=options.stderr,
        files=files,
    )


def arguments_for(options: QoderAgentOptions, files: LaunchFiles) -> list[str]:
    """The flags for these options; long values and secrets go into files."""
    return [
        *("--output-format", "stream-json", "--verbose", "--disable-builtin-skills"),
        *_prompt_flags(options, files),
        *_tool_flags(options),
        *_model_flags(options),
        *_session_flags(options),
        *_environment_flags(options, files),
        *_mcp_flags(options, files),
        *_extra_flags(options.extra_args),
        *("--input-format", "stream-json"),
    ]


def environment_for(options: QoderAgentOptions) -> dict[str, str]:
    """The environment of the runtime: ours, what the SDK says about itself, and `options.env` on top."""
    environment = dict(os.environ)
    environment["QODER_ENTRYPOINT"] = _SDK_NAME
    environment["QODER_SDK_VERSION"] = __version__
    environment["QODER_SDK_READS_SESSION_STATE"] = "1"
    environment.pop("QODER_SDK_IMPLIED_SETTING_SOURCES", None)
    if _implies_sources(options):
        # Listing the project's files vouches for them; the caller listed none, so the runtime must not trust them.
        environment["QODER_SDK_IMPLIED_SETTING_SOURCES"] = "1"
    if options.enable_file_checkpointing:
        environment["QODER_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
    if options.cwd is not None:
        environment["PWD"] = os.path.abspath(options.cwd)
    for name, value in options.env.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment


def config_root_for(options: QoderAgentOptions) -> str:
    """Where the runtime keeps its files."""
    environment = environment_for(options)
    home = environment.get("HOME") or os.path.expanduser("~")
    configured = environment.get("QODER_CONFIG_DIR") or environment.get("CLAUDE_CONFIG_DIR")
    return configured or os.path.join(home, ".qoder")


def mcp_wire_servers(servers: dict[str, Any]) -> dict[str, Any]:
    """Server configurations as they travel: an in-process server is only announced."""
    return {
        name: {key: value for key, value in config.items() if key != "instance"} for name, config in servers.items()
    }


def _pair(flag: str, value: object | None) -> list[str]:
    return [] if value is None else [flag, str(value)]


def _switch(flag: str, on: bool | None) -> list[str]:
    return [flag] if on else []


def _listed(flag: str, values: list[str]) -> list[str]:
    return [flag, ",".join(values)] if values else []


def _prompt_flags(options: QoderAgentOptions, files: LaunchFiles) -> list[str]:
    prompt = options.system_prompt
    if prompt is None:
        return []
    if isinstance(prompt, str):
        if is_too_long(prompt):
            return ["--system-prompt-file", files.write("system-prompt.md", prompt)]
        return ["--system-prompt", prompt]
    if prompt["type"] == "file":
        return ["--system-prompt-file", os.fspath(prompt["path"])]
    return _pair("--append-system-prompt", prompt.get("append"))


def _tool_flags(options: QoderAgentOptions) -> list[str]:
    flags: list[str] = []
    if isinstance(options.tools, dict):
        flags += ["--tools", "default"]
    elif options.tools is not None:
        flags += ["--tools", ",".join(options.tools)]
    allowed = list(options.allowed_tools)
    if options.skills == "all":
        allowed.append("Skill")
    elif options.skills is not None:
        allowed += [f"Skill({name})" for name in options.skills]
    flags += _listed("--allowedTools", allowed)
    flags += _listed("--disallowedTools", options.disallowed_tools)
    # "yolo" is the older name of the same mode.
    mode = "bypassPermissions" if options.permission_mode == "yolo" else options.permission_mode
    flags += _pair("--permission-mode", mode)
    flags += _switch("--allow-dangerously-skip-permissions", options.allow_dangerously_skip_permissions)
    prompt_tool = "stdio" if options.can_use_tool is not None else options.permission_prompt_tool_name
    return flags + _pair("--permission-prompt-tool", prompt_tool)


def _model_flags(options: QoderAgentOptions) -> list[str]:
    flags = _pair("--model", options.model) + _pair("--fallback-model", options.fallback_model)
    flags += _pair("--effort", options.effort) + _listed("--betas", options.betas)
    thinking = options.thinking
    if thinking is None:
        flags += _pair("--max-thinking-tokens", options.max_thinking_tokens)
    else:
        if thinking["type"] == "enabled":
            flags += ["--max-thinking-tokens", str(thinking["budget_tokens"])]
        else:
            flags += ["--thinking", thinking["type"]]
        flags += _pair("--thinking-display", dict(thinking).get("display"))
    if options.output_format is not None:
        flags += ["--json-schema", json.dumps(options.output_format["schema"])]
    return flags


def _session_flags(options: QoderAgentOptions) -> list[str]:
    flags = _switch("--continue", options.continue_conversation)
    # Joined with "=", because a title or an id may start with a dash.
    for flag, value in (
        ("--resume", options.resume),
        ("--session-id", options.session_id),
        ("--resume-session-at", options.resume_session_at),
        ("--resume-drops-turn", options.resume_drops_turn),
    ):
        if value is not None:
            flags.append(f"{flag}={value}")
    flags += _switch("--fork-session", options.fork_session)
    flags += _switch("--no-session-persistence", not options.persist_session)
    flags += _switch("--session-mirror", options.session_store is not None)
    flags += _pair("--max-turns", options.max_turns)
    flags += _pair("--max-budget-usd", options.max_budget_usd)
    flags += _pair("--task-budget", options.task_budget)
    flags += _switch("--include-partial-messages", options.include_partial_messages)
    return flags + _switch("--include-hook-events", options.include_hook_events)


def _implies_sources(options: QoderAgentOptions) -> bool:
    """Skills are looked for in the files of the user and the project, unless the host program lists others."""
    return options.skills is not None and options.setting_sources is None


def _environment_flags(options: QoderAgentOptions, files: LaunchFiles) -> list[str]:
    flags = _pair("--settings", _settings_value(options, files))
    sources: Sequence[str] | None = ["user", "project"] if _implies_sources(options) else options.setting_sources
    if sources is not None:
        flags.append("--setting-sources=" + ",".join(sources))
    for directory in options.add_dirs:
        flags += ["--add-dir", os.fspath(directory)]
    for plugin in options.plugins:
        flags += ["--plugin-dir", os.fspath(plugin["path"])]
    return flags + _pair("--agent", options.agent)


def _settings_value(options: QoderAgentOptions, files: LaunchFiles) -> str | None:
    settings = options.settings
    if options.sandbox is not None:
        settings = {**_settings_object(settings), "sandbox": dict(options.sandbox)}
    if isinstance(settings, dict):
        return _json_argument(settings, "settings.json", files)
    return None if settings is None else os.fspath(settings)


def _json_argument(value: dict[str, Any], name: str, files: LaunchFiles) -> str:
    text = json.dumps(value)
    return files.write(name, text) if is_too_long(text) or may_hold_secrets(value) else text


def _settings_object(settings: str | Path | dict[str, Any] | None) -> dict[str, Any]:
    """Settings as an object, because `sandbox` has to be added to them."""
    if settings is None or isinstance(settings, dict):
        return settings or {}
    text = os.fspath(settings)
    try:
        if not text.lstrip().startswith("{"):
            with open(text, encoding="utf-8-sig") as file:
                text = file.read()
        loaded = json.loads(text)
    except (OSError, ValueError) as error:
        raise OptionValueError(
            f"settings cannot be combined with sandbox: {settings} cannot be read as JSON ({error}); "
            "give the settings as a dict, or put the sandbox into the file"
        ) from error
    if not isinstance(loaded, dict):
        raise OptionValueError(f"settings must be a JSON object, not {type(loaded).__name__}: {settings}")
    return loaded


def _mcp_flags(options: QoderAgentOptions, files: LaunchFiles) -> list[str]:
    flags: list[str] = []
    if isinstance(options.mcp_servers, Mapping):
        if options.mcp_servers:
            servers = {"mcpServers": mcp_wire_servers(dict(options.mcp_servers))}
            flags += ["--mcp-config", _json_argument(servers, "mcp.json", files)]
    else:
        flags += ["--mcp-config", os.fspath(options.mcp_servers)]
    flags += _switch("--strict-mcp-config", options.strict_mcp_config)
    return flags + _listed("--allowed-mcp-server-names", _allowed_servers(options))


def _allowed_servers(options: QoderAgentOptions) -> list[str]:
    """The names that the runtime may use; the option speaks of processes, in-process servers are always allowed."""
    allowed = options.allowed_mcp_server_names
    if not allowed or not isinstance(options.mcp_servers, Mapping):
        return allowed
    in_process = [name for name, config in options.mcp_servers.items() if config.get("type") == "sdk"]
    return [*allowed, *(name for name in in_process if name not in allowed)]


def _extra_flags(extra: Mapping[str, str | None]) -> list[str]:
    flags: list[str] = []
    for name, value in extra.items():
        if value is None:
            flags.append(f"--{name}")
        elif value.startswith("-"):
            flags.append(f"--{name}={value}")
        else:
            flags += [f"--{name}", value]
    return flags
