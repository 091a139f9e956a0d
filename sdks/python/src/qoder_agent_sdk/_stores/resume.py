"""Resumes a session that another host has left in a store.

The logs are written to a configuration directory of their own, beside copies
of the user's settings, and the runtime is pointed there. The directory lives
as long as the session; what happens meanwhile goes to the store.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import replace
from typing import Any

from .._errors import OptionValueError
from .._options.options import QoderAgentOptions
from .._process.launch_files import LaunchFiles
from .._transcripts.edits import fork_entries
from .._transcripts.files import is_uuid, project_key
from .reading import answer_of, as_line, describe, load_log, stored_sessions, stored_subpaths
from .store import SessionKey, SessionStoreEntry


async def restored(options: QoderAgentOptions, config_root: str, files: LaunchFiles) -> QoderAgentOptions:
    """Options that resume the stored session; unchanged when nothing is to be restored."""
    store: Any = options.session_store
    if store is None or not (options.resume or options.continue_conversation):
        return options
    project = project_key(options.cwd if options.cwd is not None else os.getcwd())
    session_id = options.resume or await _newest(store, project)
    if session_id is None:
        return replace(options, continue_conversation=False, fork_session=False)
    key: SessionKey = {"project_key": project, "session_id": session_id}
    entries = await load_log(store, key)
    if entries is None:
        raise OptionValueError(f"the session store has no session {session_id} for this project ({project})")
    changes: dict[str, Any] = {"resume": session_id, "continue_conversation": False}
    if options.fork_session:
        entries, forked = await _forked(options, key, entries)
        changes.update(forked)
    root = files.folder("config")
    _copy_settings(config_root, root)
    logs = os.path.join(root, "projects", project)
    _write_log(os.path.join(logs, f"{changes['resume']}.jsonl"), entries)
    if not options.fork_session:
        await _restore_agents(store, key, os.path.join(logs, session_id))
    return replace(options, env={**options.env, "QODER_CONFIG_DIR": root}, **changes)


async def _newest(store: Any, project: str) -> str | None:
    sessions = await stored_sessions(store, project)
    return max(sessions, key=lambda session_id: sessions[session_id], default=None)


async def _forked(
    options: QoderAgentOptions, key: SessionKey, entries: list[SessionStoreEntry]
) -> tuple[list[SessionStoreEntry], dict[str, Any]]:
    """Fork in the store: the runtime reports only what it adds to a fork, so the copied part has to be there before."""
    store: Any = options.session_store
    new_id = options.session_id or str(uuid.uuid4())
    fork = fork_entries(entries, key["session_id"], new_id, None, None)
    await answer_of(store.append({**key, "session_id": new_id}, fork), f"take a fork of {describe(key)}")
    names = {entry["forkedFrom"]["messageUuid"]: entry["uuid"] for entry in fork}
    changes: dict[str, Any] = {"resume": new_id, "fork_session": False, "session_id": None}
    for option in ("resume_session_at", "resume_drops_turn"):
        # Messages have new ids in a fork.
        value = getattr(options, option)
        changes[option] = names.get(value, value)
    return fork, changes


async def _restore_agents(store: Any, key: SessionKey, folder: str) -> None:
    for subpath in await stored_subpaths(store, key):
        path = os.path.realpath(os.path.join(folder, f"{subpath}.jsonl"))
        # A store is not trusted to name places outside of the session.
        if os.path.commonpath([path, os.path.realpath(folder)]) != os.path.realpath(folder):
            raise OptionValueError(f"the session store names {subpath!r}, which is outside of the session")
        entries = await load_log(store, {**key, "subpath": subpath}) or []
        about = [entry for entry in entries if entry.get("type") == "agent_metadata"]
        if len(about) < len(entries):
            _write_log(path, [entry for entry in entries if entry.get("type") != "agent_metadata"])
        if about:
            # What is known of an agent is a file beside its log; the newest counts.
            described = {name: value for name, value in about[-1].items() if name != "type"}
            _write_private(path.removesuffix(".jsonl") + ".meta.json", json.dumps(described, ensure_ascii=False))


def _write_log(path: str, entries: list[SessionStoreEntry]) -> None:
    _write_private(path, "".join(map(as_line, entries)))


def _write_private(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        # Half of a surrogate pair, which JSON allows, has no UTF-8.
        file.write(text.encode("utf-8", "replace"))


def _copy_settings(source: str, target: str) -> None:
    """Settings and credentials are files at the top of the configuration directory; agents and the like are folders."""
    if not os.path.isdir(source):
        return
    for entry in os.scandir(source):
        if entry.is_file():
            shutil.copy2(entry.path, os.path.join(target, entry.name))
        elif entry.is_dir() and entry.name != "projects":
            os.symlink(os.path.abspath(entry.path), os.path.join(target, entry.name))


def check_store(options: QoderAgentOptions) -> None:
    """Refuse what a store cannot be combined with."""
    if options.session_store is None:
        return
    for name in ("append", "load"):
        if not callable(getattr(options.session_store, name, None)):
            raise OptionValueError(f"session_store must have the methods append and load; '{name}' is missing")
    if options.enable_file_checkpointing:
        raise OptionValueError("session_store cannot be combined with enable_file_checkpointing; checkpoints are local")
    if not options.persist_session:
        raise OptionValueError("session_store needs persist_session=True: it holds copies of the local log")
    if options.continue_conversation and not hasattr(options.session_store, "list_sessions"):
        raise OptionValueError("continue_conversation needs a session_store with list_sessions")
    if options.resume is not None and not is_uuid(options.resume):
        raise OptionValueError(f"with a session_store, resume must be the id of a session, not {options.resume!r}")
