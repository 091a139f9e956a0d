"""Renames, tags, forks and deletes stored sessions.

A log may be in use while it is renamed or tagged: such a change is one whole
line, appended in one write. A fork is a new log with new ids; nothing here ever
rewrites a log in place.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ._errors import OptionValueError
from ._sessions import get_session_info
from ._transcripts import Entry, conversation, existing_session, read_entries, with_blobs

_CHAINED = ("user", "assistant", "system", "attachment")

#: What belongs to the original session only.
_DROPPED = ("teamName", "agentName", "slug", "sourceToolAssistantUUID", "seq", "crc", "v", "blobs")


@dataclass
class ForkSessionResult:
    """The session that a fork has made."""

    session_id: str


def rename_session(session_id: str, title: str, directory: str | Path | None = None) -> None:
    """Give a session a title; the newest title counts."""
    if not isinstance(title, str) or not title.strip():
        raise OptionValueError("the title of a session must not be empty")
    path = existing_session(session_id, directory)
    _append(path, {"type": "custom-title", "customTitle": title.strip(), "sessionId": session_id})


def tag_session(session_id: str, tag: str | None, directory: str | Path | None = None) -> None:
    """Give a session a tag; None removes it."""
    if tag is not None and (not isinstance(tag, str) or not tag.strip()):
        raise OptionValueError("the tag of a session must not be empty; None removes it")
    path = existing_session(session_id, directory)
    _append(path, {"type": "tag", "tag": tag.strip() if tag else "", "sessionId": session_id})


def delete_session(session_id: str, directory: str | Path | None = None) -> None:
    """Delete a session and everything stored beside it."""
    path = existing_session(session_id, directory)
    path.unlink()
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)


def fork_session(
    session_id: str,
    directory: str | Path | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """Copy a session, up to and including a message if one is named; the original stays as it is."""
    path = existing_session(session_id, directory)
    entries = _entries_to_copy(path, session_id, up_to_message_id)
    new_id = str(uuid.uuid4())
    lines = _copied(entries, session_id, new_id)
    lines.append(
        {"type": "custom-title", "customTitle": title or _fork_title(session_id, directory), "sessionId": new_id}
    )
    _write_new(path.with_name(f"{new_id}.jsonl"), lines)
    return ForkSessionResult(session_id=new_id)


def _entries_to_copy(path: Path, session_id: str, up_to: str | None) -> list[Entry]:
    entries = [
        with_blobs(entry, path.with_suffix(""))
        for entry in read_entries(path)
        if entry.get("type") in (*_CHAINED, "progress")
        and isinstance(entry.get("uuid"), str)
        and not entry.get("isSidechain")
    ]
    if up_to is not None:
        index = next((index for index, entry in enumerate(entries) if entry["uuid"] == up_to), None)
        if index is None:
            raise OptionValueError(f"session {session_id} has no message {up_to}")
        entries = entries[: index + 1]
    if not conversation(entries):
        raise OptionValueError(f"session {session_id} has no messages to fork")
    return entries


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


def _fork_title(session_id: str, directory: str | Path | None) -> str:
    info = get_session_info(session_id, directory)
    return f"{info.summary if info else session_id} (fork)"


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
