"""A session store in a directory, such as one that several hosts have mounted.

Keys can be long and can hold any character, so names of files are hashes of
them; the first line of each file says what its key is. One host at a time may
write a session, which the runtime sees to on one machine and you on several.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from qoder_agent_sdk import SessionKey, SessionStoreEntry, SessionStoreListEntry


class FileSessionStore:
    """Keeps each log as a file with a JSON object a line."""

    def __init__(self, directory: str | Path) -> None:
        """Use a directory; it is made when the first log comes."""
        self._directory = Path(directory)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to a log, in one write."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines: list[dict[str, Any]] = list(entries)
        if not path.exists():
            lines.insert(0, dict(key))
        with path.open("a", encoding="utf-8") as log:
            log.write("".join(json.dumps(line) + "\n" for line in lines))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a log."""
        path = self._path(key)
        if not path.exists():
            return None
        with path.open(encoding="utf-8") as log:
            return [json.loads(line) for line in log][1:]

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project."""
        logs = (self._directory / _name(project_key)).glob("*/main.jsonl")
        return [
            {"session_id": _key_of(log)["session_id"], "mtime": log.stat().st_mtime_ns // 1_000_000} for log in logs
        ]

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """The logs of agents that a session has started."""
        logs = self._path(key).parent.glob("*.jsonl")
        return sorted(_key_of(log)["subpath"] for log in logs if log.name != "main.jsonl")

    async def delete(self, key: SessionKey) -> None:
        """Delete a log; that of a session takes those of its agents with it."""
        path = self._path(key)
        if key.get("subpath"):
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path.parent, ignore_errors=True)

    def _path(self, key: SessionKey) -> Path:
        subpath = key.get("subpath")
        folder = self._directory / _name(key["project_key"]) / _name(key["session_id"])
        return folder / f"{_name(subpath) if subpath else 'main'}.jsonl"


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _key_of(log: Path) -> dict[str, Any]:
    with log.open(encoding="utf-8") as lines:
        key: dict[str, Any] = json.loads(lines.readline())
    return key
