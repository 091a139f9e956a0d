"""Messages that wait for the consumer.

The reader must continue while the consumer is busy, or answers to control
requests behind the messages would never be seen. It pauses only when very many
messages wait and no control request is pending: then the consumer is just slow,
and the pipe may fill up.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import anyio

#: So many messages may wait before the reader pauses.
PAUSE_ABOVE = 10_000


class Inbox:
    """A queue between one reader and its consumers."""

    def __init__(self) -> None:
        """An empty queue."""
        self._waiting: deque[dict[str, Any]] = deque()
        self._arrived: anyio.Event | None = None
        self._drained: anyio.Event | None = None
        self._error: BaseException | None = None
        self._ended = False
        #: How many control requests wait for an answer; see `wait_for_room`.
        self.answers_expected = 0

    def put(self, message: dict[str, Any]) -> None:
        """Add a message."""
        self._waiting.append(message)
        self._wake_consumers()

    def _wake_consumers(self) -> None:
        if self._arrived is not None:
            self._arrived.set()
            self._arrived = None

    async def wait_for_room(self) -> None:
        """Pause the reader while far too many messages wait."""
        while len(self._waiting) > PAUSE_ABOVE and not self.answers_expected and not self._ended:
            self._drained = anyio.Event()
            await self._drained.wait()

    def resume_reader(self) -> None:
        """Let a paused reader look again."""
        if self._drained is not None:
            self._drained.set()
            self._drained = None

    def end(self, error: BaseException | None) -> None:
        """No more messages will come; the first error, if any, follows the last message."""
        if not self._ended:
            self._ended = True
            self._error = error
        self._wake_consumers()
        self.resume_reader()

    def fail(self, error: BaseException) -> None:
        """Drop what waits and end with an error."""
        self._waiting.clear()
        self.end(error)

    @property
    def ended(self) -> bool:
        """Whether the last message has arrived."""
        return self._ended

    async def take(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while not self._waiting:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return None
            if self._arrived is None:
                self._arrived = anyio.Event()
            await self._arrived.wait()
        if self._drained is not None and len(self._waiting) <= PAUSE_ABOVE // 2:
            self.resume_reader()
        return self._waiting.popleft()
