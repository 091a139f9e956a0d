"""Background tasks and cancellation signals on asyncio and on trio.

A session outlives the call that opened it: an async generator may be closed in
another task than the one that started it, so task groups, which belong to one
task, cannot hold its workers. Workers are therefore tasks of the event loop
itself, each with a cancel scope and a way to wait for its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio

logger = logging.getLogger("qoder_agent_sdk")

#: How long a callback may keep running after its signal was set, before it is cancelled.
CANCEL_GRACE_SECONDS = 1.0


def _load_event_loop() -> None:
    """Load anyio's code for asyncio with the SDK, and not while a program waits for its first message."""
    if "trio" in sys.modules:
        return  # a program that has loaded trio will hardly run on asyncio
    with contextlib.suppress(ImportError):
        # Another version of anyio may keep it elsewhere; then it is loaded later, as usual.
        importlib.import_module("anyio._backends._asyncio")


_load_event_loop()


def running_on_trio() -> bool:
    """Whether the current task is one of trio's."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def new_signal() -> asyncio.Event:
    """An event for callbacks to watch: a real `asyncio.Event` on asyncio, its equivalent on trio."""
    if running_on_trio():
        return cast(asyncio.Event, anyio.Event())
    return asyncio.Event()


def is_being_cancelled() -> bool:
    """Whether a `CancelledError` is meant for the running task; true where asyncio cannot say (before Python 3.11)."""
    if running_on_trio():
        return False  # trio has an exception of its own for that
    task = asyncio.current_task()
    cancelling = getattr(task, "cancelling", None)
    return cancelling is None or cancelling() > 0


class BackgroundTask:
    """A worker of the event loop."""

    def __init__(self, function: Callable[[], Awaitable[Any]], name: str) -> None:
        """Prepare the worker; `spawn` starts it."""
        self._function = function
        self._name = name
        self._scope = anyio.CancelScope()
        self._finished = anyio.Event()
        self._handle: object = None

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._function()
        except Exception:
            # Workers answer for their own errors; one that gets here is a defect
            # of the SDK and must be seen, but must not take the event loop down.
            logger.exception("the SDK's task '%s' failed", self._name)
        finally:
            self._finished.set()

    def start(self) -> None:
        """Hand the worker to the event loop."""
        if running_on_trio():
            trio = sys.modules["trio"]
            self._handle = trio.lowlevel.spawn_system_task(
                self._run, name=self._name, context=contextvars.copy_context()
            )
        else:
            # The loop keeps only weak references to its tasks.
            self._handle = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    def cancel(self) -> None:
        """Ask the worker to end."""
        self._scope.cancel()

    @property
    def done(self) -> bool:
        """Whether the worker has ended."""
        return self._finished.is_set()

    async def wait(self) -> None:
        """Wait until the worker has ended."""
        await self._finished.wait()


def spawn(function: Callable[[], Awaitable[Any]], name: str) -> BackgroundTask:
    """Start a worker."""
    task = BackgroundTask(function, name)
    task.start()
    return task


def cancel_after_grace(signal: asyncio.Event, cancel: Callable[[], object]) -> None:
    """Set a callback's signal now, and stop the callback if it does not end by itself soon."""
    signal.set()

    async def stop() -> None:
        await anyio.sleep(CANCEL_GRACE_SECONDS)
        cancel()

    spawn(stop, "qoder-cancel-grace")
