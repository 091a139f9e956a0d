"""Keeps track of when a run is over.

A one-shot run with callbacks must keep the runtime's input open until the
runtime has no more questions: it is idle after a result. Runtimes that do not
report their state are done with the result of the last prompt.
"""

from __future__ import annotations

import anyio

#: An idle runtime that stays quiet this long after the last prompt owes nothing:
#: prompts that were merged into one turn have only one result.
_QUIET_SECONDS = 2.0


class Turns:
    """What was sent, what was answered, and what the runtime says it does."""

    def __init__(self) -> None:
        """Nothing sent, nothing answered."""
        self._prompts = 0
        self._results = 0
        self._state: str | None = None
        self._over = False
        self._changed: anyio.Event | None = None

    def prompt_sent(self) -> None:
        """A prompt that asks for a reply is on its way."""
        self._prompts += 1

    def result_seen(self) -> None:
        """A turn has ended."""
        self._results += 1
        self._notify()

    def state_changed(self, state: str) -> None:
        """The runtime reports what it does."""
        self._state = state
        self._notify()

    def ended(self) -> None:
        """The runtime has ended."""
        self._over = True
        self._notify()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()

    @property
    def unfinished(self) -> bool:
        """Whether a prompt has no result yet."""
        return self._prompts > self._results

    async def wait_until_over(self) -> None:
        """Wait until all prompts are answered and the runtime rests."""
        while not self._is_over():
            self._changed = anyio.Event()
            quiet = _QUIET_SECONDS if self._rests() and self._results else None
            with anyio.move_on_after(quiet) as scope:
                await self._changed.wait()
            if scope.cancelled_caught and self._rests():
                return

    def _rests(self) -> bool:
        return self._state in (None, "idle")

    def _is_over(self) -> bool:
        return self._over or (self._rests() and self._results >= self._prompts)
