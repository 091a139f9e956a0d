"""Copies what the runtime writes to its logs into a session store.

Entries are collected and handed over before the result of a turn is delivered,
earlier when many wait, or at once if asked for. A task of its own writes, so
that a slow store delays nothing but results. A store that fails never stops the
conversation: the batch is tried again, then dropped, and a `mirror_error`
message says so.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Callable
from typing import Any

import anyio

from .._backend import BackgroundTask, spawn
from .store import SessionKey, SessionStore, SessionStoreEntry

logger = logging.getLogger("qoder_agent_sdk")

_ATTEMPTS = 3
_RETRY_SECONDS = 0.2
_ATTEMPT_SECONDS = 60.0
_CLOSE_SECONDS = 5.0

#: When so much waits, it is handed over before the turn ends.
_BATCH_ENTRIES = 500
_BATCH_CHARACTERS = 1024 * 1024


class Mirror:
    """What waits to be copied."""

    def __init__(
        self, store: SessionStore, config_root: str, eager: bool, report: Callable[[dict[str, Any]], None]
    ) -> None:
        """Copy logs under `config_root`; `report` gets messages about what could not be copied."""
        self._store = store
        self._projects = os.path.realpath(os.path.join(config_root, "projects"))
        self._eager = eager
        self._report = report
        self._waiting: dict[tuple[str, ...], tuple[SessionKey, list[SessionStoreEntry]]] = {}
        self._count = 0
        self._characters = 0
        self._writer: BackgroundTask | None = None

    def take(self, frame: dict[str, Any]) -> None:
        """Take one frame of the runtime."""
        path, entries = frame.get("filePath"), frame.get("entries")
        key = self._key(path) if isinstance(path, str) else None
        if key is None or not isinstance(entries, list):
            logger.warning("qodercli reported changes of %r, which is not a session log; they are not copied", path)
            return
        identity = (key["project_key"], key["session_id"], key.get("subpath", ""))
        self._waiting.setdefault(identity, (key, []))[1].extend(entries)
        self._count += len(entries)
        self._characters += len(json.dumps(entries, ensure_ascii=False))
        if self._eager or self._count >= _BATCH_ENTRIES or self._characters >= _BATCH_CHARACTERS:
            self._start_writer()

    async def flush(self) -> None:
        """Hand over all that waits."""
        while self._waiting or (self._writer is not None and not self._writer.done):
            await self._start_writer().wait()

    async def close(self) -> None:
        """Hand over what waits, if the store is quick, and end."""
        with anyio.move_on_after(_CLOSE_SECONDS):
            await self.flush()
        if self._writer is not None:
            self._writer.cancel()
            await self._writer.wait()

    def _start_writer(self) -> BackgroundTask:
        # One writer at a time keeps the entries of a log in their order.
        if self._writer is None or self._writer.done:
            self._writer = spawn(self._write, "qoder-session-store")
        return self._writer

    async def _write(self) -> None:
        while self._waiting:
            batches, self._waiting, self._count, self._characters = self._waiting, {}, 0, 0
            for key, entries in batches.values():
                error = await self._append(key, entries)
                if error is not None:
                    self._report(
                        {
                            "type": "system",
                            "subtype": "mirror_error",
                            "uuid": str(uuid.uuid4()),
                            "session_id": key["session_id"],
                            "key": dict(key),
                            "error": error,
                        }
                    )

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
