"""Lists stored sessions and reads their messages.

Works on the files, without a runtime. Listing looks only at the start and the
end of each log, because a project may have many and long ones. With a
`session_store` the answer comes from there and has to be awaited.
"""

from __future__ import annotations

import subprocess
from collections.abc import Coroutine
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from .._errors import OptionValueError
from .facts import SDKSessionInfo, SessionMessage, session_facts, session_message
from .files import (
    agent_messages,
    existing_session,
    find_session,
    read_entries,
    session_files,
    shown_messages,
    with_blobs,
)

if TYPE_CHECKING:
    from .._stores.store import SessionStore

#: How much of the start and of the end of a log is looked at.
_WINDOW = 64 * 1024

#: How far a first prompt is looked for that does not end in the usual start: it may be long itself, or follow the
#: descriptions of many tools.
_LONG_WINDOW = 4 * 1024 * 1024


@overload
def list_sessions(
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    session_store: None = None,
) -> list[SDKSessionInfo]: ...


@overload
def list_sessions(
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    *,
    session_store: SessionStore,
) -> Coroutine[Any, Any, list[SDKSessionInfo]]: ...


def list_sessions(
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    session_store: SessionStore | None = None,
) -> list[SDKSessionInfo] | Coroutine[Any, Any, list[SDKSessionInfo]]:
    """The sessions of a project and its git worktrees (or of all projects), newest first.

    A store is asked for the sessions of one project: that of the directory, or of the current one.
    """
    _check_range(limit, offset)
    if session_store is not None:
        from .._stores import catalog

        return catalog.list_sessions(session_store, directory, limit, offset)
    directories: list[str | Path | None] = [directory]
    if directory is not None and include_worktrees:
        directories += _other_worktrees(directory)
    logs = {path: changed for each in directories for path, changed in session_files(each)}
    newest_first = sorted(logs, key=lambda path: (-logs[path], path.stem))
    # Read each log lazily: a caller that wants the newest few of many thousands does not wait for the rest.
    infos = (info for path in newest_first if (info := _session_info(path)) is not None)
    return list(islice(infos, offset, None if limit is None else offset + limit))


@overload
def get_session_info(
    session_id: str, directory: str | Path | None = None, session_store: None = None
) -> SDKSessionInfo | None: ...


@overload
def get_session_info(
    session_id: str, directory: str | Path | None = None, *, session_store: SessionStore
) -> Coroutine[Any, Any, SDKSessionInfo | None]: ...


def get_session_info(
    session_id: str, directory: str | Path | None = None, session_store: SessionStore | None = None
) -> SDKSessionInfo | None | Coroutine[Any, Any, SDKSessionInfo | None]:
    """What is known of one session; None when there is no such session."""
    if session_store is not None:
        from .._stores import catalog

        return catalog.get_session_info(session_store, session_id, directory)
    path = find_session(session_id, directory)
    return None if path is None else _session_info(path)


@overload
def get_session_messages(
    session_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_system_messages: bool = False,
    session_store: None = None,
) -> list[SessionMessage]: ...


@overload
def get_session_messages(
    session_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_system_messages: bool = False,
    *,
    session_store: SessionStore,
) -> Coroutine[Any, Any, list[SessionMessage]]: ...


def get_session_messages(
    session_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_system_messages: bool = False,
    session_store: SessionStore | None = None,
) -> list[SessionMessage] | Coroutine[Any, Any, list[SessionMessage]]:
    """The messages of a session in order; after a compaction, those from its summary on."""
    _check_range(limit, offset)
    if session_store is not None:
        from .._stores import catalog

        return catalog.get_session_messages(
            session_store, session_id, directory, limit, offset, include_system_messages
        )
    path = find_session(session_id, directory)
    if path is None:
        return []
    shown = shown_messages(read_entries(path), include_system_messages)
    chosen = shown[offset : None if limit is None else offset + limit]
    return [session_message(with_blobs(entry, path.with_suffix("")), session_id) for entry in chosen]


@overload
def list_subagents(session_id: str, directory: str | Path | None = None, session_store: None = None) -> list[str]: ...


@overload
def list_subagents(
    session_id: str, directory: str | Path | None = None, *, session_store: SessionStore
) -> Coroutine[Any, Any, list[str]]: ...


def list_subagents(
    session_id: str, directory: str | Path | None = None, session_store: SessionStore | None = None
) -> list[str] | Coroutine[Any, Any, list[str]]:
    """The ids of the agents that a session has started."""
    if session_store is not None:
        from .._stores import catalog

        return catalog.list_subagents(session_store, session_id, directory)
    path = find_session(session_id, directory)
    if path is None:
        return []
    return sorted(log.stem.removeprefix("agent-") for log in _agent_logs(path))


@overload
def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    session_store: None = None,
) -> list[SessionMessage]: ...


@overload
def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    *,
    session_store: SessionStore,
) -> Coroutine[Any, Any, list[SessionMessage]]: ...


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | Path | None = None,
    limit: int | None = None,
    offset: int = 0,
    session_store: SessionStore | None = None,
) -> list[SessionMessage] | Coroutine[Any, Any, list[SessionMessage]]:
    """The messages of an agent that a session has started."""
    _check_range(limit, offset)
    if session_store is not None:
        from .._stores import catalog

        return catalog.get_subagent_messages(session_store, session_id, agent_id, directory, limit, offset)
    path = existing_session(session_id, directory)
    log = next((log for log in _agent_logs(path) if log.stem.removeprefix("agent-") == agent_id), None)
    if log is None:
        return []
    chosen = agent_messages(read_entries(log))[offset : None if limit is None else offset + limit]
    return [session_message(with_blobs(entry, log.with_suffix("")), session_id) for entry in chosen]


def _check_range(limit: int | None, offset: int) -> None:
    if limit is not None and limit < 0:
        raise OptionValueError(f"limit must not be negative, not {limit}")
    if offset < 0:
        raise OptionValueError(f"offset must not be negative, not {offset}")


def _agent_logs(path: Path) -> list[Path]:
    return sorted((path.with_suffix("") / "subagents").rglob("agent-*.jsonl"))


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
            info = session_facts(head, tail, path.stem, status.st_mtime_ns // 1_000_000, status.st_size)
            if (info is None or info.first_prompt is None) and status.st_size > _WINDOW:
                log.seek(0)
                head = log.read(_LONG_WINDOW).decode("utf-8", "replace")
                info = session_facts(head, tail, path.stem, status.st_mtime_ns // 1_000_000, status.st_size)
    except OSError:
        return None  # deleted while we looked
    return info
