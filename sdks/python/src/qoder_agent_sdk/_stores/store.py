"""External session stores: what a store must offer, and one in memory.

A store holds copies of session logs, so that another host can resume a
session. Entries are opaque JSON objects; a store returns them equal and in the
order in which they were appended. Local logs are written all the same.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Protocol, TypedDict, runtime_checkable

from typing_extensions import NotRequired

SessionStoreEntry = dict[str, Any]


class SessionKey(TypedDict):
    """Which log: that of a session or, with `subpath`, that of an agent it has started."""

    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionStoreListEntry(TypedDict):
    """A session of a project, with the time of its last change in milliseconds."""

    session_id: str
    mtime: int


@runtime_checkable
class SessionStore(Protocol):
    """A place for copies of session logs.

    A store may also have `list_sessions(project_key)`, which `continue_conversation`
    needs, `list_subkeys(key)`, without which only the log of the session itself is
    restored, and `delete(key)`.
    """

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to a log; a retry may bring the same entries again."""
        ...

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a log, or None when there is no such log."""
        ...


class InMemorySessionStore:
    """A store that lasts as long as the program; for tests and as an example."""

    def __init__(self) -> None:
        """An empty store."""
        self._logs: dict[tuple[str, str, str], list[SessionStoreEntry]] = {}
        self._changed: dict[tuple[str, str], int] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to a log."""
        self._logs.setdefault(_identity(key), []).extend(copy.deepcopy(entries))
        if not key.get("subpath"):
            self._changed[key["project_key"], key["session_id"]] = time.time_ns() // 1_000_000

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a log."""
        return copy.deepcopy(self._logs.get(_identity(key)))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project."""
        return [
            {"session_id": session_id, "mtime": changed}
            for (project, session_id), changed in self._changed.items()
            if project == project_key
        ]

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """The logs of agents that a session has started."""
        wanted = (key["project_key"], key["session_id"])
        return [subpath for project, session_id, subpath in self._logs if subpath and (project, session_id) == wanted]

    async def delete(self, key: SessionKey) -> None:
        """Delete a log; that of a session takes those of its agents with it."""
        project, session_id, subpath = _identity(key)
        if subpath:
            self._logs.pop((project, session_id, subpath), None)
            return
        for identity in [each for each in self._logs if each[:2] == (project, session_id)]:
            del self._logs[identity]
        self._changed.pop((project, session_id), None)


def _identity(key: SessionKey) -> tuple[str, str, str]:
    return key["project_key"], key["session_id"], key.get("subpath", "")
