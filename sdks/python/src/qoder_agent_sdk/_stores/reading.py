"""Reads logs from a session store, which is not trusted.

A store may hang, fail, answer with something else than entries, or hold an
entry twice because its delivery was repeated. Everybody who reads from a store
does it through this file.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any, TypeVar

import anyio

from .._errors import SessionStoreError
from .._transcripts.files import Entry, is_uuid
from .store import SessionKey

#: A store that does not answer for so long is given up.
ANSWER_SECONDS = 60.0

Answer = TypeVar("Answer")


async def answer_of(asked: Awaitable[Answer], doing: str) -> Answer:
    """What the store answers; an error that says what was tried when it does not."""
    try:
        with anyio.fail_after(ANSWER_SECONDS):
            return await asked
    except TimeoutError as error:
        raise SessionStoreError(f"the session store did not {doing} within {ANSWER_SECONDS:.0f} s") from error
    except Exception as error:
        raise SessionStoreError(f"the session store could not {doing}: {error or type(error).__name__}") from error


async def load_log(store: Any, key: SessionKey) -> list[Entry] | None:
    """The entries of a log, each once; None when the store does not know the log."""
    entries = await answer_of(store.load(key), f"load {describe(key)}")
    if not entries and (entries is None or isinstance(entries, (list, tuple))):
        return None  # as a local log that is empty
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, dict) for entry in entries):
        raise SessionStoreError(f"the session store must return {describe(key)} as a list of objects")
    return without_repeats(list(entries))


async def stored_sessions(store: Any, project: str) -> dict[str, int]:
    """The sessions of a project, with the times of their last changes."""
    if not hasattr(store, "list_sessions"):
        raise SessionStoreError("this session store has no list_sessions, so its sessions cannot be listed")
    rows = await answer_of(store.list_sessions(project), f"list the sessions of {project}")
    try:
        # Names that are no ids would become paths elsewhere.
        return {str(row["session_id"]): int(row["mtime"]) for row in rows if is_uuid(str(row["session_id"]))}
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise SessionStoreError(
            "the session store must list sessions as objects with a session_id and a number mtime"
        ) from error


async def stored_subpaths(store: Any, key: SessionKey) -> list[str]:
    """The logs of a session's agents; none when the store cannot list them."""
    if not hasattr(store, "list_subkeys"):
        return []
    subpaths = await answer_of(store.list_subkeys(key), f"list the agents of {describe(key)}")
    if not isinstance(subpaths, (list, tuple)) or not all(isinstance(subpath, str) for subpath in subpaths):
        raise SessionStoreError(f"the session store must list the agents of {describe(key)} as texts")
    return list(subpaths)


def without_repeats(entries: list[Entry]) -> list[Entry]:
    """The entries without those that were delivered twice; an entry without a uuid cannot be told apart and stays."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        identifier = entry.get("uuid")
        if isinstance(identifier, str):
            if identifier in seen:
                continue
            seen.add(identifier)
        kept.append(entry)
    return kept


def as_line(entry: Entry) -> str:
    """An entry as a line of a log. Stores may change the order of keys, but readers look for the type at the start."""
    ordered = {"type": entry["type"], **entry} if "type" in entry else entry
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")) + "\n"


def describe(key: SessionKey) -> str:
    """A key for an error message."""
    subpath = key.get("subpath")
    return f"the session {key['session_id']}" + (f" ({subpath})" if subpath else "")
