"""Copies what the runtime writes to its logs into a session store.

Entries are collected and handed over before the result of a turn is delivered
(or at once, if asked for). A store that fails never stops the conversation:
the batch is tried again, then dropped, and a `mirror_error` message says so.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import anyio

from ._session_store import SessionKey, SessionStore, SessionStoreEntry

logger = logging.getLogger("qoder_agent_sdk")

_ATTEMPTS = 3
_RETRY_SECONDS = 0.2
_ATTEMPT_SECONDS = 60.0

#: More entries than this are handed over before the turn ends.
_BATCH_ENTRIES = 500


class Mirror:
    """What waits to be copied."""

    def __init__(self, store: SessionStore, config_root: str, eager: bool) -> None:
        """Copy logs under `config_root`."""
        self._store = store
        self._projects = os.path.realpath(os.path.join(config_root, "projects"))
        self._eager = eager
        self._waiting: dict[tuple[str, ...], tuple[SessionKey, list[SessionStoreEntry]]] = {}
        self._count = 0

    async def take(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Take one frame of the runtime; returns messages about what could not be copied."""
        path, entries = frame.get("filePath"), frame.get("entries")
        key = self._key(path) if isinstance(path, str) else None
        if key is None or not isinstance(entries, list):
            logger.warning("qodercli reported changes of %r, which is no session log; they are not copied", path)
            return []
        identity = (key["project_key"], key["session_id"], key.get("subpath", ""))
        self._waiting.setdefault(identity, (key, []))[1].extend(entries)
        self._count += len(entries)
        return await self.flush() if self._eager or self._count >= _BATCH_ENTRIES else []

    async def flush(self) -> list[dict[str, Any]]:
        """Hand over all that waits; returns messages about what could not be copied."""
        batches, self._waiting, self._count = self._waiting, {}, 0
        failures = []
        for key, entries in batches.values():
            error = await self._append(key, entries)
            if error is not None:
                failures.append({"type": "system", "subtype": "mirror_error", "key": dict(key), "error": error})
        return failures

    async def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> str | None:
        error = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await anyio.sleep(_RETRY_SECONDS * attempt)
            with anyio.move_on_after(_ATTEMPT_SECONDS) as scope:
                try:
                    await self._store.append(key, entries)
                    return None
                except Exception as failure:
                    error = str(failure) or type(failure).__name__
            if scope.cancelled_caught:
                # It may still be at work; another attempt would only add to that.
                return f"the session store did not answer within {_ATTEMPT_SECONDS:.0f} s"
        return error

    def _key(self, path: str) -> SessionKey | None:
        relative = os.path.relpath(os.path.realpath(path), self._projects)
        parts = relative.split(os.sep)
        if parts[0] == os.pardir or not parts[-1].endswith(".jsonl"):
            return None
        parts[-1] = parts[-1].removesuffix(".jsonl")
        if len(parts) == 2:
            return {"project_key": parts[0], "session_id": parts[1]}
        if len(parts) >= 4:
            return {"project_key": parts[0], "session_id": parts[1], "subpath": "/".join(parts[2:])}
        return None
