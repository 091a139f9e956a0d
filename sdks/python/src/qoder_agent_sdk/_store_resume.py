"""Goes on with a session that another host has left in a store.

The logs are written to a configuration directory of their own, beside copies
of the user's settings, and the runtime is pointed there. The directory lives
as long as the session; what happens meanwhile goes to the store.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from typing import Any

from ._errors import OptionValueError
from ._launch_files import LaunchFiles
from ._options import QoderAgentOptions
from ._session_store import SessionKey, SessionStoreEntry
from ._transcripts import is_uuid, project_key


async def restored(options: QoderAgentOptions, config_root: str, files: LaunchFiles) -> QoderAgentOptions:
    """Options that go on with the stored session; unchanged when nothing is to be restored."""
    store: Any = options.session_store
    if store is None or not (options.resume or options.continue_conversation):
        return options
    project = project_key(options.cwd if options.cwd is not None else os.getcwd())
    session_id = options.resume or await _newest(store, project)
    if session_id is None:
        return replace(options, continue_conversation=False, fork_session=False)
    entries = await store.load({"project_key": project, "session_id": session_id})
    if entries is None:
        raise OptionValueError(f"the session store has no session {session_id} for this project ({project})")
    root = files.folder("config")
    _copy_settings(config_root, root)
    logs = os.path.join(root, "projects", project)
    _write_log(os.path.join(logs, f"{session_id}.jsonl"), entries)
    await _restore_agents(store, {"project_key": project, "session_id": session_id}, os.path.join(logs, session_id))
    environment = {**options.env, "QODER_CONFIG_DIR": root}
    return replace(options, env=environment, resume=session_id, continue_conversation=False)


async def _newest(store: Any, project: str) -> str | None:
    rows = await store.list_sessions(project)
    newest = max(rows, key=lambda row: row["mtime"], default=None)
    return None if newest is None else str(newest["session_id"])


async def _restore_agents(store: Any, key: SessionKey, folder: str) -> None:
    if not hasattr(store, "list_subkeys"):
        return
    for subpath in await store.list_subkeys(key):
        path = os.path.realpath(os.path.join(folder, f"{subpath}.jsonl"))
        # A store is not trusted to name places outside of the session.
        if os.path.commonpath([path, os.path.realpath(folder)]) != os.path.realpath(folder):
            raise OptionValueError(f"the session store names {subpath!r}, which is outside of the session")
        entries = await store.load({**key, "subpath": subpath})
        if entries:
            _write_log(path, entries)


def _write_log(path: str, entries: list[SessionStoreEntry]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as log:
        for entry in entries:
            log.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")


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
