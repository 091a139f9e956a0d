"""The functions on stored sessions, for sessions in a session store.

They mirror those on local logs and give the same answers. A store cannot say
which projects it has, so without a directory the current one is meant.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import OptionValueError
from .._transcripts.facts import SDKSessionInfo, SessionMessage, milliseconds, session_facts, session_message
from .._transcripts.files import Entry, agent_messages, is_uuid, project_key, shown_messages
from .reading import answer_of, as_line, describe, load_log, stored_sessions, stored_subpaths
from .store import SessionKey, SessionStore

if TYPE_CHECKING:
    from .._transcripts.edits import ForkSessionResult

_AGENT = re.compile(r"(?:^|/)agent-([^/]+)$")


async def list_sessions(
    store: SessionStore, directory: str | Path | None, limit: int | None, offset: int
) -> list[SDKSessionInfo]:
    """The sessions of a project, newest first."""
    project = project_key(directory if directory is not None else os.getcwd())
    sessions = await stored_sessions(store, project)
    most = None if limit is None else offset + limit
    infos: list[SDKSessionInfo] = []
    # A log is loaded as a whole, so no more of them than the list shows.
    for session_id in sorted(sessions, key=lambda session_id: (-sessions[session_id], session_id)):
        if most is not None and len(infos) >= most:
            break
        info = await _info(store, {"project_key": project, "session_id": session_id}, sessions[session_id])
        if info is not None:
            infos.append(info)
    return infos[offset:]


async def get_session_info(store: SessionStore, session_id: str, directory: str | Path | None) -> SDKSessionInfo | None:
    """What is known of one session."""
    key = session_key(session_id, directory)
    changed = None
    if hasattr(store, "list_sessions"):
        changed = (await stored_sessions(store, key["project_key"])).get(session_id)
    return await _info(store, key, changed)


async def _info(store: SessionStore, key: SessionKey, changed: int | None) -> SDKSessionInfo | None:
    entries = await load_log(store, key)
    if entries is None:
        return None
    text = "".join(map(as_line, entries))
    if changed is None:
        stamps = [entry["timestamp"] for entry in entries if isinstance(entry.get("timestamp"), str)]
        changed = milliseconds(stamps[-1]) if stamps else None
    return session_facts(text, text, key["session_id"], changed or 0)


async def get_session_messages(
    store: SessionStore,
    session_id: str,
    directory: str | Path | None,
    limit: int | None,
    offset: int,
    include_system_messages: bool,
) -> list[SessionMessage]:
    """The messages of a session in order."""
    entries = await load_log(store, session_key(session_id, directory))
    chosen = shown_messages(entries or [], include_system_messages)[offset : None if limit is None else offset + limit]
    return [session_message(entry, session_id) for entry in chosen]


async def list_subagents(store: SessionStore, session_id: str, directory: str | Path | None) -> list[str]:
    """The ids of the agents that a session has started."""
    return sorted(await _agents(store, session_key(session_id, directory)))


async def get_subagent_messages(
    store: SessionStore,
    session_id: str,
    agent_id: str,
    directory: str | Path | None,
    limit: int | None,
    offset: int,
) -> list[SessionMessage]:
    """The messages of an agent that a session has started."""
    key = session_key(session_id, directory)
    subpath = (await _agents(store, key)).get(agent_id)
    if subpath is None:
        return []
    entries = await load_log(store, {**key, "subpath": subpath})
    chosen = agent_messages(entries or [])[offset : None if limit is None else offset + limit]
    return [session_message(entry, session_id) for entry in chosen]


async def _agents(store: SessionStore, key: SessionKey) -> dict[str, str]:
    subpaths = await stored_subpaths(store, key)
    return {found.group(1): subpath for subpath in subpaths if (found := _AGENT.search(subpath))}


async def add_entry(store: SessionStore, session_id: str, directory: str | Path | None, entry: Entry) -> None:
    """Add an entry to a session that must exist."""
    key = session_key(session_id, directory)
    await _existing(store, key)
    await answer_of(store.append(key, [entry]), f"take a change of {describe(key)}")


async def delete_session(store: Any, session_id: str, directory: str | Path | None) -> None:
    """Delete a session and the logs of its agents; a store that cannot delete keeps them."""
    key = session_key(session_id, directory)
    if hasattr(store, "delete"):
        await answer_of(store.delete(key), f"delete {describe(key)}")


async def fork_session(
    store: SessionStore,
    session_id: str,
    directory: str | Path | None,
    up_to_message_id: str | None,
    title: str | None,
) -> ForkSessionResult:
    """Copy a session inside of the store."""
    from .._transcripts.edits import ForkSessionResult, checked_name, fork_entries, fork_title

    key = session_key(session_id, directory)
    entries = await _existing(store, key)
    new_id = str(uuid.uuid4())
    chosen = checked_name("title", title) if title else fork_title(session_id, await _info(store, key, 0))
    lines = fork_entries(entries, session_id, new_id, up_to_message_id, chosen)
    await answer_of(store.append({**key, "session_id": new_id}, lines), f"take a copy of {describe(key)}")
    return ForkSessionResult(session_id=new_id)


async def _existing(store: SessionStore, key: SessionKey) -> list[Entry]:
    entries = await load_log(store, key)
    if entries is None:
        raise FileNotFoundError(f"the session store has no session {key['session_id']} for {key['project_key']}")
    return entries


def session_key(session_id: str, directory: str | Path | None) -> SessionKey:
    """The key of a session."""
    if not isinstance(session_id, str) or not is_uuid(session_id):
        raise OptionValueError(f"session_id must be a UUID, not {session_id!r}")
    return {"project_key": project_key(directory if directory is not None else os.getcwd()), "session_id": session_id}
