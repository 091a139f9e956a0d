"""Calls `on_mcp_status_change`, one change after the other.

A task of its own works through the changes in the order in which they came, so
that a slow callback holds up neither the stream nor the order.
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import anyio

from .._backend import BackgroundTask, spawn

if TYPE_CHECKING:
    from .._types.mcp import OnMcpStatusChange

#: How long the last changes may take when the session ends.
_LAST_CALLS_SECONDS = 2.0

logger = logging.getLogger("qoder_agent_sdk")


class StatusChanges:
    """Changes that wait for the callback."""

    def __init__(self, callback: OnMcpStatusChange | None) -> None:
        """Changes go nowhere without a callback."""
        self._callback = callback
        self._waiting: deque[list[Any]] = deque()
        self._worker: BackgroundTask | None = None

    def put(self, servers: list[Any]) -> None:
        """Report a change."""
        if self._callback is None:
            return
        self._waiting.append(servers)
        if self._worker is None or self._worker.done:
            self._worker = spawn(self._work, "qoder-mcp-status")

    async def close(self) -> None:
        """Let the callback see what is left, but not forever."""
        if self._worker is None:
            return
        with anyio.move_on_after(_LAST_CALLS_SECONDS):
            await self._worker.wait()
        self._waiting.clear()
        self._worker.cancel()

    async def _work(self) -> None:
        while self._waiting:
            servers = self._waiting.popleft()
            try:
                returned = self._callback(servers) if self._callback is not None else None
                if inspect.isawaitable(returned):
                    await returned
            except Exception:
                logger.exception("on_mcp_status_change failed")
