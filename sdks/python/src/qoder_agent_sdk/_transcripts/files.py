"""Where session logs are, and how their lines are read.

The runtime writes one JSON object a line; this file finds the logs of a
project, reads entries (also texts that were moved to blobs because of their
size) and follows the chain of a conversation. It never writes.
"""

from __future__ import annotations

import json
import os
import re
import stat
import unicodedata
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._errors import OptionValueError

Entry = dict[str, Any]

_KEY_LIMIT = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def config_root() -> Path:
    """Where the runtime keeps its files."""
    configured = os.environ.get("QODER_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(configured) if configured else Path.home() / ".qoder"


def project_key(directory: str | Path) -> str:
    """The name of a project's folder, made from its path."""
    path = unicodedata.normalize("NFC", os.path.realpath(directory))
    key = re.sub(r"[^A-Za-z0-9]", "-", path)
    if len(key) <= _KEY_LIMIT:
        return key
    return f"{key[:_KEY_LIMIT]}-{_path_hash(path)}"


def _path_hash(path: str) -> str:
    value = 0
    for character in path:
        value = (value * 31 + ord(character)) & 0xFFFFFFFF
    if value >= 0x80000000:
        value = 0x100000000 - value
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def project_folders(directory: str | Path | None) -> list[Path]:
    """The folders that hold the logs of a project, or of all projects."""
    projects = config_root() / "projects"
    if not projects.is_dir():
        return []
    if directory is None:
        return sorted(folder for folder in projects.iterdir() if folder.is_dir())
    key = project_key(directory)
    if len(key) <= _KEY_LIMIT:
        return [projects / key] if (projects / key).is_dir() else []
    # Other programs hash long paths in their own way; what precedes the hash is the same.
    prefix = key[: _KEY_LIMIT + 1]
    return sorted(folder for folder in projects.iterdir() if folder.name.startswith(prefix) and folder.is_dir())


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in its usual form."""
    try:
        return len(text) == 36 and str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def session_files(directory: str | Path | None) -> Iterator[tuple[Path, int]]:
    """All logs of a project, or of all projects, with the times of their last changes in nanoseconds."""
    for folder in project_folders(directory):
        for path in folder.glob("*.jsonl"):
            if not is_uuid(path.stem):
                continue
            try:
                status = path.stat()
            except OSError:
                continue  # deleted while we looked
            if stat.S_ISREG(status.st_mode) and status.st_size > 0:
                yield path, status.st_mtime_ns


def find_session(session_id: str, directory: str | Path | None) -> Path | None:
    """The log of a session; None when no log has this ID."""
    if not isinstance(session_id, str) or not is_uuid(session_id):
        raise OptionValueError(f"session_id must be a UUID, not {session_id!r}")
    for folder in project_folders(directory):
        path = folder / f"{session_id}.jsonl"
        if path.is_file() and path.stat().st_size > 0:
            return path
    return None


def existing_session(session_id: str, directory: str | Path | None) -> Path:
    """The log of a session that must exist."""
    path = find_session(session_id, directory)
    if path is None:
        where = f"the project {directory}" if directory is not None else "any project"
        raise FileNotFoundError(f"there is no session {session_id} in {where} under {config_root()}")
    return path


def read_entries(path: Path) -> list[Entry]:
    """The records of a log; a line that was cut off is skipped."""
    entries = []
    with path.open("rb") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                entries.append(entry)
    return entries


def conversation(entries: list[Entry]) -> list[Entry]:
    """The entries from the newest message back to the start of its chain, oldest first."""
    by_uuid = {entry["uuid"]: entry for entry in entries if isinstance(entry.get("uuid"), str)}
    leaf = next((entry for entry in reversed(entries) if is_message(entry) or entry.get("type") == "cut"), None)
    if leaf is not None and leaf.get("type") == "cut":
        # The conversation went back and nothing was said since: it ends with the last entry that stays.
        leaf = by_uuid.get(leaf.get("at") or "")
    chain: list[Entry] = []
    seen: set[str] = set()
    while leaf is not None and leaf["uuid"] not in seen:
        seen.add(leaf["uuid"])
        chain.append(leaf)
        leaf = by_uuid.get(leaf.get("parentUuid") or "")
    return _with_siblings(chain[::-1], entries, seen)


def _with_siblings(chain: list[Entry], entries: list[Entry], seen: set[str]) -> list[Entry]:
    """Add results and parts of parallel calls, which hang beside the chain and not in it."""
    message_ids = {identifier for entry in chain if (identifier := _message_id(entry))}
    parts = [entry for entry in entries if _message_id(entry) in message_ids and entry.get("uuid") not in seen]
    calls = {entry["uuid"] for entry in [*chain, *parts] if entry.get("type") == "assistant"}
    results = [
        entry
        for entry in entries
        if entry.get("parentUuid") in calls and entry.get("uuid") not in seen and _is_tool_result(entry)
    ]
    if not parts and not results:
        return chain
    wanted = {entry["uuid"] for entry in [*chain, *parts, *results]}
    return [entry for entry in entries if entry.get("uuid") in wanted]


def _message_id(entry: Entry) -> str | None:
    message = entry.get("message")
    if entry.get("type") != "assistant" or not isinstance(message, dict) or not isinstance(entry.get("uuid"), str):
        return None
    return message.get("id")


def _is_tool_result(entry: Entry) -> bool:
    content = (entry.get("message") or {}).get("content")
    return entry.get("type") == "user" and any(
        isinstance(block, dict) and block.get("type") == "tool_result"
        for block in (content if isinstance(content, list) else [])
    )


def is_message(entry: Entry) -> bool:
    """Whether an entry is a message of the main conversation that people should see."""
    return (
        entry.get("type") in ("user", "assistant")
        and isinstance(entry.get("uuid"), str)
        and not entry.get("isSidechain")
        and not entry.get("isMeta")
        and not entry.get("teamName")
    )


def shown_messages(entries: list[Entry], include_system_messages: bool) -> list[Entry]:
    """The messages of a conversation that people should see, oldest first."""
    return [
        entry
        for entry in conversation(entries)
        if is_message(entry) or (include_system_messages and entry.get("type") == "system")
    ]


def agent_messages(entries: list[Entry]) -> list[Entry]:
    """The messages of an agent's log, which has no branches."""
    return [
        entry
        for entry in entries
        if entry.get("type") in ("user", "assistant") and isinstance(entry.get("uuid"), str) and not entry.get("isMeta")
    ]


def with_blobs(entry: Entry, folder: Path) -> Entry:
    """The entry with texts that were moved to files because of their size."""
    pointers = entry.get("blobs")
    if not isinstance(pointers, dict):
        return entry
    restored: Entry = json.loads(json.dumps(entry))
    for pointer, name in pointers.items():
        blob = folder / "blobs" / os.path.basename(str(name))
        parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
        try:
            _put(restored, parts, blob.read_text(encoding="utf-8"))
        except (OSError, KeyError, IndexError, ValueError, TypeError):
            continue  # the short text in the record says what is missing
    return restored


def _put(target: Any, parts: list[str], text: str) -> None:
    for part in parts[:-1]:
        target = target[int(part)] if isinstance(target, list) else target[part]
    last = parts[-1]
    target[int(last) if isinstance(target, list) else last] = text
