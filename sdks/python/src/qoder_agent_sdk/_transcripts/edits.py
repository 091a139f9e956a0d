"""Renames, tags, forks and deletes stored sessions.

A log may be in use while it is renamed or tagged: such a change is one whole
line, appended in one write. A fork is a new log with new ids; nothing here ever
rewrites a log in place. With a `session_store` the change is made there and has
to be awaited.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from .._errors import OptionValueError
from .facts import SDKSessionInfo
from .files import Entry, conversation, existing_session, read_entries, with_blobs
from .reading import get_session_info

if TYPE_CHECKING:
    from .._stores.store import SessionStore

#: The most characters of a title or a tag: lists look at the end of a log only, and a longer one would not be found.
_LONGEST_NAME = 1_000

_CHAINED = ("user", "assistant", "system", "attachment")

#: What belongs to the original session only.
_DROPPED = ("teamName", "agentName", "slug", "sourceToolAssistantUUID", "seq", "crc", "v", "blobs")


@dataclass
class ForkSessionResult:
    """The session that a fork has made."""

    session_id: str


@overload
def rename_session(
    session_id: str, title: str, directory: str | Path | None = None, session_store: None = None
) -> None: ...


@overload
def rename_session(
    session_id: str, title: str, directory: str | Path | None = None, *, session_store: SessionStore
) -> Coroutine[Any, Any, None]: ...


def rename_session(
    session_id: str, title: str, directory: str | Path | None = None, session_store: SessionStore | None = None
) -> None | Coroutine[Any, Any, None]:
    """Give a session a title; the newest title counts."""
    if not isinstance(title, str) or not title.strip():
        raise OptionValueError("the title of a session must not be empty")
    entry = {"type": "custom-title", "customTitle": checked_name("title", title), "sessionId": session_id}
    return _add(session_id, directory, session_store, entry)


@overload
def tag_session(
    session_id: str, tag: str | None, directory: str | Path | None = None, session_store: None = None
) -> None: ...


@overload
def tag_session(
    session_id: str, tag: str | None, directory: str | Path | None = None, *, session_store: SessionStore
) -> Coroutine[Any, Any, None]: ...


def tag_session(
    session_id: str, tag: str | None, directory: str | Path | None = None, session_store: SessionStore | None = None
) -> None | Coroutine[Any, Any, None]:
    """Give a session a tag; None removes it."""
    if tag is not None and (not isinstance(tag, str) or not tag.strip()):
        raise OptionValueError("the tag of a session must not be empty; None removes it")
    entry = {"type": "tag", "tag": checked_name("tag", tag) if tag else "", "sessionId": session_id}
    return _add(session_id, directory, session_store, entry)


def checked_name(what: str, text: str) -> str:
    """A title or a tag without blanks around it, if it is short enough."""
    text = text.strip()
    if len(text) > _LONGEST_NAME:
        raise OptionValueError(f"the {what} of a session has {len(text)} characters, and {_LONGEST_NAME} are accepted")
    return text


def _add(
    session_id: str, directory: str | Path | None, session_store: SessionStore | None, entry: Entry
) -> None | Coroutine[Any, Any, None]:
    if session_store is not None:
        from .._stores import catalog

        return catalog.add_entry(session_store, session_id, directory, entry)
    _append(existing_session(session_id, directory), entry)
    return None


@overload
def delete_session(session_id: str, directory: str | Path | None = None, session_store: None = None) -> None: ...


@overload
def delete_session(
    session_id: str, directory: str | Path | None = None, *, session_store: SessionStore
) -> Coroutine[Any, Any, None]: ...


def delete_session(
    session_id: str, directory: str | Path | None = None, session_store: SessionStore | None = None
) -> None | Coroutine[Any, Any, None]:
    """Delete a session and everything stored beside it: the local one or, with a store, the one there."""
    if session_store is not None:
        from .._stores import catalog

        return catalog.delete_session(session_store, session_id, directory)
    path = existing_session(session_id, directory)
    path.unlink()
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    return None


@overload
def fork_session(
    session_id: str,
    directory: str | Path | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    session_store: None = None,
) -> ForkSessionResult: ...


@overload
def fork_session(
    session_id: str,
    directory: str | Path | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    *,
    session_store: SessionStore,
) -> Coroutine[Any, Any, ForkSessionResult]: ...


def fork_session(
    session_id: str,
    directory: str | Path | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
    session_store: SessionStore | None = None,
) -> ForkSessionResult | Coroutine[Any, Any, ForkSessionResult]:
    """Copy a session, up to and including a message if one is named; the original stays as it is."""
    if session_store is not None:
        from .._stores import catalog

        return catalog.fork_session(session_store, session_id, directory, up_to_message_id, title)
    path = existing_session(session_id, directory)
    title = checked_name("title", title) if title else None
    new_id = str(uuid.uuid4())
    entries = [with_blobs(entry, path.with_suffix("")) for entry in read_entries(path)]
    chosen = title or fork_title(session_id, get_session_info(session_id, directory))
    _write_new(path.with_name(f"{new_id}.jsonl"), fork_entries(entries, session_id, new_id, up_to_message_id, chosen))
    return ForkSessionResult(session_id=new_id)


def fork_entries(
    entries: list[Entry], session_id: str, new_id: str, up_to: str | None, title: str | None
) -> list[Entry]:
    """The entries of a fork, with its title if it gets one."""
    copied = _copied(_entries_to_copy(entries, session_id, up_to), session_id, new_id)
    if title is not None:
        copied.append({"type": "custom-title", "customTitle": title, "sessionId": new_id})
    return copied


def _entries_to_copy(entries: list[Entry], session_id: str, up_to: str | None) -> list[Entry]:
    kept: list[Entry] = []
    for entry in entries:
        if entry.get("type") == "cut":
            # The conversation went on from here, or began anew; what was left out stays out of the copy.
            place = next((index for index, one in enumerate(kept) if one["uuid"] == entry.get("at")), -1)
            del kept[place + 1 :]
        elif _is_link(entry):
            kept.append(entry)
            if entry["uuid"] == up_to:
                break
    else:
        if up_to is not None:
            raise OptionValueError(f"session {session_id} has no message {up_to}")
    if not conversation(kept):
        raise OptionValueError(f"session {session_id} has no messages to fork")
    return kept


def _is_link(entry: Entry) -> bool:
    return (
        entry.get("type") in (*_CHAINED, "progress")
        and isinstance(entry.get("uuid"), str)
        and not entry.get("isSidechain")
    )


def _copied(entries: list[Entry], old_id: str, new_id: str) -> list[Entry]:
    new_uuids = {entry["uuid"]: str(uuid.uuid4()) for entry in entries if entry["type"] in _CHAINED}
    parents = {entry["uuid"]: entry.get("parentUuid") for entry in entries}
    copies = []
    for entry in entries:
        if entry["type"] not in _CHAINED:
            continue
        parent = entry.get("parentUuid")
        while parent is not None and parent not in new_uuids:
            parent = parents.get(parent)  # a link that is not copied is bridged
        logical = entry.get("logicalParentUuid")
        copy = {key: value for key, value in entry.items() if key not in _DROPPED}
        copy.update(
            uuid=new_uuids[entry["uuid"]],
            parentUuid=new_uuids[parent] if parent is not None else None,
            logicalParentUuid=new_uuids.get(logical) if logical is not None else None,
            sessionId=new_id,
            isSidechain=False,
            forkedFrom={"sessionId": old_id, "messageUuid": entry["uuid"]},
        )
        copies.append(copy)
    copies[-1]["timestamp"] = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return copies


def fork_title(session_id: str, original: SDKSessionInfo | None) -> str:
    """The title of a fork that was given none."""
    mark = " (fork)"
    return f"{original.summary if original else session_id}"[: _LONGEST_NAME - len(mark)] + mark


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _append(path: Path, entry: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, _line(entry))
    finally:
        os.close(descriptor)


def _write_new(path: Path, entries: list[Entry]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(_line(entry) for entry in entries)
