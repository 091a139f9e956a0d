"""Lists stored sessions and reads their messages.

Works on the files, without a runtime. Listing looks only at the start and the
end of each log, because a project may have many and long ones.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ._errors import OptionValueError
from ._transcripts import (
    conversation,
    existing_session,
    find_session,
    is_message,
    read_entries,
    session_files,
    with_blobs,
)

#: How much of the start and of the end of a log is looked at.
_WINDOW = 64 * 1024

_PROMPT_LIMIT = 200

#: Prompts that no person typed.
_NOT_PROMPTS = re.compile(
    r"^(?:<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]"
    r"|\s*<ide_opened_file>[\s\S]*</ide_opened_file>\s*$|\s*<ide_selection>[\s\S]*</ide_selection>\s*$)"
)


@dataclass
class SDKSessionInfo:
    """What a list of sessions shows of one; times are in milliseconds."""

    session_id: str
    summary: str
    last_modified: int
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


@dataclass
class SessionMessage:
    """One message of a stored session; `message` is the message of the model's API."""

    type: str
    uuid: str
    session_id: str
    message: Any
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    subtype: str | None = None
    compact_metadata: dict[str, Any] | None = None


def list_sessions(
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
) -> list[SDKSessionInfo]:
    """The sessions of a project and its git worktrees (or of all projects), newest first."""
    _check_range(limit, offset)
    directories: list[str | Path | None] = [directory]
    if directory is not None and include_worktrees:
        directories += _other_worktrees(directory)
    paths = {path for each in directories for path in session_files(each)}
    infos = [info for path in paths if (info := _session_info(path)) is not None]
    infos.sort(key=lambda info: info.last_modified, reverse=True)
    return infos[offset : None if limit is None else offset + limit]


def get_session_info(session_id: str, directory: str | Path | None = None) -> SDKSessionInfo | None:
    """What is known of one session; None when there is no such session."""
    path = find_session(session_id, directory)
    return None if path is None else _session_info(path)


def get_session_messages(
    session_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_system_messages: bool = False,
) -> list[SessionMessage]:
    """The messages of a session in order; after a compaction, those from its summary on."""
    _check_range(limit, offset)
    path = find_session(session_id, directory)
    if path is None:
        return []
    chain = conversation(read_entries(path))
    shown = [
        entry for entry in chain if is_message(entry) or (include_system_messages and entry.get("type") == "system")
    ]
    chosen = shown[offset : None if limit is None else offset + limit]
    return [_message(with_blobs(entry, path.with_suffix("")), session_id) for entry in chosen]


def list_subagents(session_id: str, directory: str | Path | None = None) -> list[str]:
    """The ids of the agents that a session has started."""
    path = find_session(session_id, directory)
    if path is None:
        return []
    return sorted(log.stem.removeprefix("agent-") for log in _agent_logs(path))


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """The messages of an agent that a session has started."""
    _check_range(limit, offset)
    path = existing_session(session_id, directory)
    log = next((log for log in _agent_logs(path) if log.stem.removeprefix("agent-") == agent_id), None)
    if log is None:
        return []
    entries = [
        entry
        for entry in read_entries(log)
        if entry.get("type") in ("user", "assistant") and isinstance(entry.get("uuid"), str) and not entry.get("isMeta")
    ]
    chosen = entries[offset : None if limit is None else offset + limit]
    return [_message(with_blobs(entry, log.with_suffix("")), session_id) for entry in chosen]


def _check_range(limit: int | None, offset: int) -> None:
    if limit is not None and limit < 0:
        raise OptionValueError(f"limit must not be negative, not {limit}")
    if offset < 0:
        raise OptionValueError(f"offset must not be negative, not {offset}")


def _agent_logs(path: Path) -> list[Path]:
    return sorted((path.with_suffix("") / "subagents").rglob("agent-*.jsonl"))


def _message(entry: dict[str, Any], session_id: str) -> SessionMessage:
    return SessionMessage(
        type=entry["type"],
        uuid=entry["uuid"],
        session_id=entry.get("sessionId") or session_id,
        message=entry.get("message", entry.get("content")),
        parent_tool_use_id=entry.get("parentToolUseId"),
        timestamp=entry.get("timestamp"),
        subtype=entry.get("subtype"),
        compact_metadata=entry.get("compactMetadata"),
    )


def _other_worktrees(directory: str | Path) -> list[str | Path | None]:
    command = ["git", "-C", str(directory), "worktree", "list", "--porcelain"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []  # no git, or no repository: then there are no worktrees either
    return [line.removeprefix("worktree ") for line in done.stdout.splitlines() if line.startswith("worktree ")]


def _session_info(path: Path) -> SDKSessionInfo | None:
    try:
        status = path.stat()
        with path.open("rb") as log:
            head = log.read(_WINDOW).decode("utf-8", "replace")
            log.seek(max(0, status.st_size - _WINDOW))
            tail = log.read().decode("utf-8", "replace")
    except OSError:
        return None  # deleted while we looked
    if '"isSidechain":true' in head.split("\n", 1)[0].replace(": ", ":"):
        return None
    title = next(
        (found for key in ("customTitle", "aiTitle") for text in (tail, head) if (found := _last(text, key))), None
    )
    prompt = _first_prompt(head)
    summary = title or _last(tail, "lastPrompt") or _last(tail, "summary") or prompt
    if not summary:
        return None
    return SDKSessionInfo(
        session_id=path.stem,
        summary=summary,
        last_modified=status.st_mtime_ns // 1_000_000,
        file_size=status.st_size,
        custom_title=title,
        first_prompt=prompt,
        git_branch=_last(tail, "gitBranch") or _last(head, "gitBranch"),
        cwd=_first(head, "cwd"),
        tag=_tag(tail),
        created_at=_milliseconds(_first(head, "timestamp")),
    )


def _values(text: str, key: str) -> list[str]:
    return re.findall(rf'"{key}": ?("(?:[^"\\]|\\.)*")', text)


def _last(text: str, key: str) -> str | None:
    values = _values(text, key)
    return _unquoted(values[-1]) if values else None


def _first(text: str, key: str) -> str | None:
    values = _values(text, key)
    return _unquoted(values[0]) if values else None


def _unquoted(quoted: str) -> str | None:
    try:
        return str(json.loads(quoted)) or None
    except ValueError:
        return None


def _tag(tail: str) -> str | None:
    rows = [line for line in tail.split("\n") if line.startswith('{"type":"tag"')]
    return _last(rows[-1], "tag") if rows else None


def _milliseconds(timestamp: str | None) -> int | None:
    if timestamp is None:
        return None
    try:
        return int(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None


def _first_prompt(head: str) -> str | None:
    for line in head.split("\n"):
        if '"type":"user"' not in line.replace('": "', '":"') or '"tool_result"' in line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("isMeta") or entry.get("isCompactSummary"):
            continue
        text = _text_of((entry.get("message") or {}).get("content")).strip()
        if text and "<command-name>" not in text and not _NOT_PROMPTS.match(text):
            flat = text.replace("\n", " ")
            return flat if len(flat) <= _PROMPT_LIMIT else flat[:_PROMPT_LIMIT].rstrip() + "…"
    return None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text", "") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return next((text for text in texts if text), "")
