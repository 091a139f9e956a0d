"""The runtime as a child process with three pipes.

Starts `qodercli`, moves JSON lines both ways, keeps the tail of stderr for
error reports and ends the process: close stdin, wait, SIGTERM, wait, SIGKILL.
The child holds no other descriptor of ours and no other process holds its stdin
(`close_fds`), so even a kill of this program ends it: it sees end of input.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import signal
import subprocess
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import Process

from .._backend import BackgroundTask, spawn
from .._errors import CLIConnectionError, CLINotFoundError, OptionTypeError, OptionValueError, QoderCliProcessError
from .launch_files import LaunchFiles
from .lines import LineSplitter, decode_line, decode_rest

logger = logging.getLogger("qoder_agent_sdk")

#: How long the runtime may take to end by itself, and again after SIGTERM.
END_SECONDS = 5.0

#: How long output may still come after the runtime has ended; what it started may hold its pipes open for longer.
LATE_OUTPUT_SECONDS = 2.0

#: How much of stderr is kept for error reports.
STDERR_TAIL_BYTES = 64 * 1024

_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)

_live: weakref.WeakSet[ProcessTransport] = weakref.WeakSet()


@dataclass
class Launch:
    """How to start the runtime."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str | None
    user: str | None
    line_limit: int
    on_stderr: Callable[[str], Any] | None
    files: LaunchFiles


class ProcessTransport:
    """One runtime process."""

    def __init__(self, launch: Launch) -> None:
        """Prepare a process; `start` starts it."""
        self._launch = launch
        self._process: Process | None = None
        self._input_open = False
        self._stderr_task: BackgroundTask | None = None
        self._exit_task: BackgroundTask | None = None
        self._stderr_tail = b""
        self._write_lock: anyio.Lock

    async def start(self) -> None:
        """Start the process."""
        launch = self._launch
        # Locks belong to an event loop, and there may have been none until now.
        self._write_lock = anyio.Lock()
        if launch.directory is not None and not os.path.isdir(launch.directory):
            raise CLIConnectionError(f"the working directory {launch.directory} (options.cwd) does not exist")
        extra: dict[str, Any] = {} if launch.user is None else {"user": launch.user}
        try:
            self._process = await anyio.open_process(
                launch.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=launch.directory,
                env=launch.environment,
                **extra,
            )
        except KeyError as error:
            raise OptionValueError(f"options.user: there is no user `{launch.user}` on this machine") from error
        except FileNotFoundError as error:
            raise CLINotFoundError(f"{launch.arguments[0]} cannot be started: {error}") from error
        except (OSError, ValueError) as error:
            raise CLIConnectionError(f"{launch.arguments[0]} cannot be started: {error}") from error
        self._input_open = True
        _live.add(self)
        self._stderr_task = spawn(self._read_stderr, "qoder-stderr")
        self._exit_task = spawn(self._watch_exit, "qoder-exit")

    @property
    def input_open(self) -> bool:
        """Whether the runtime can still be written to."""
        return self._input_open

    @property
    def exit_status(self) -> int | None:
        """The exit status as Python gives it; None while the process runs."""
        return None if self._process is None else self._process.returncode

    async def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        try:
            line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
        except (TypeError, ValueError) as error:
            raise OptionTypeError(f"a message to qodercli cannot be written as JSON: {error}") from error
        if self._process is None:
            raise CLIConnectionError("qodercli is not running; start a session first")
        async with self._write_lock:
            stdin = self._process.stdin
            if stdin is None or not self._input_open:
                raise CLIConnectionError("the input of qodercli is closed; start a new session")
            # A cancellation that is already there must not cost the connection.
            await anyio.lowlevel.checkpoint_if_cancelled()
            try:
                await stdin.send(line)
            except _BROKEN as error:
                self._input_open = False
                raise CLIConnectionError("qodercli no longer reads its input; it may have ended") from error
            except BaseException:
                # Cancelled in the middle of a line: nothing that follows could be understood.
                self._input_open = False
                raise

    async def end_input(self) -> None:
        """Tell the runtime that nothing more will come."""
        if self._process is not None:
            async with self._write_lock:
                await self._close_stdin()

    async def _close_stdin(self) -> None:
        self._input_open = False
        if self._process is not None and self._process.stdin is not None:
            try:
                await self._process.stdin.aclose()
            except _BROKEN:
                logger.debug("the input of qodercli was already closed")

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """The objects that the runtime prints, until it closes its output."""
        assert self._process is not None and self._process.stdout is not None, "start() comes first"
        splitter = LineSplitter(self._launch.line_limit)
        while True:
            try:
                chunk = await self._process.stdout.receive()
            except (anyio.EndOfStream, *_BROKEN):
                break
            for line in splitter.feed(chunk):
                decoded = decode_line(line)
                if decoded is not None:
                    yield decoded
        last = decode_rest(splitter.rest())
        if last is not None:
            yield last

    async def _watch_exit(self) -> None:
        """Stop reading some time after the process has ended, also when another process holds its output open."""
        assert self._process is not None and self._process.stdout is not None, "start() comes first"
        await self._process.wait()
        await anyio.sleep(LATE_OUTPUT_SECONDS)
        await self._process.stdout.aclose()

    async def wait(self) -> None:
        """Wait until the process has ended and its stderr has been read."""
        if self._process is None:
            return
        await self._process.wait()
        if self._stderr_task is not None:
            # A grandchild may hold the pipe open for as long as it likes.
            with anyio.move_on_after(1):
                await self._stderr_task.wait()

    def failure(self, message: str) -> QoderCliProcessError:
        """An error about the end of the process, with all that is known."""
        status = self.exit_status
        died = status is not None and status < 0
        return QoderCliProcessError(
            message,
            exit_code=None if died else status,
            signal=-status if status is not None and died else None,
            stderr=self.stderr_text(),
        )

    def stderr_text(self) -> str:
        """The last lines that the runtime wrote to stderr."""
        return self._stderr_tail.decode("utf-8", "replace")

    async def end(self, *, at_once: bool, discard_output: bool) -> None:
        """End the process; `at_once` skips the wait for it to end by itself."""
        process = self._process
        if process is None:
            return
        try:
            await self._end(process, at_once, discard_output)
        except BaseException:
            # Cancelled in the middle of it: leave no process behind.
            self.kill()
            raise
        finally:
            _live.discard(self)

    async def release(self) -> None:
        """Give back what belonged to the process."""
        self._launch.files.remove()
        for task in (self._stderr_task, self._exit_task):
            if task is not None:
                task.cancel()
        for stream in (self._process.stdout, self._process.stderr) if self._process is not None else ():
            if stream is not None:
                await stream.aclose()
        # asyncio keeps a pipe that another process holds open, and complains when it is collected after the loop.
        pipes = getattr(getattr(self._process, "_process", None), "_transport", None)
        if isinstance(pipes, asyncio.SubprocessTransport):
            pipes.close()

    async def _end(self, process: Process, at_once: bool, discard_output: bool) -> None:
        await self._close_stdin()
        for stop in (None, process.terminate, process.kill):
            if stop is None and at_once:
                continue
            if process.returncode is not None:
                return
            if stop is not None:
                try:
                    stop()
                except ProcessLookupError:
                    logger.debug("qodercli ended before it could be stopped")
            if await self._ends_within(process, END_SECONDS, discard_output):
                return

    async def _ends_within(self, process: Process, seconds: float, discard_output: bool) -> bool:
        """Wait for the end; `discard_output` reads its output meanwhile, or a full pipe would keep it from ending."""
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                if discard_output:
                    group.start_soon(_discard_output, process)
                await process.wait()
                group.cancel_scope.cancel()
        return process.returncode is not None

    def kill(self) -> None:
        """End the process now, without waiting."""
        process = self._process
        if process is not None and process.returncode is None:
            try:
                process.kill()
            except (ProcessLookupError, RuntimeError):
                logger.debug("qodercli had already ended")

    def terminate_at_exit(self) -> None:
        """Ask a process that is still there to end; for the end of the interpreter."""
        self._launch.files.remove()
        process = self._process
        if process is not None and process.returncode is None:
            try:
                os.kill(process.pid, signal.SIGTERM)
            except OSError:
                logger.debug("qodercli had already ended")

    async def _read_stderr(self) -> None:
        assert self._process is not None and self._process.stderr is not None, "start() comes first"
        pending = b""
        while True:
            try:
                chunk = await self._process.stderr.receive()
            except (anyio.EndOfStream, *_BROKEN):
                break
            self._stderr_tail = (self._stderr_tail + chunk)[-STDERR_TAIL_BYTES:]
            if self._launch.on_stderr is not None:
                *lines, pending = (pending + chunk).split(b"\n")
                pending = pending[-STDERR_TAIL_BYTES:]
                for line in lines:
                    self._forward_stderr(line)
        if pending:
            self._forward_stderr(pending)

    def _forward_stderr(self, line: bytes) -> None:
        assert self._launch.on_stderr is not None, "only called with a callback"
        try:
            self._launch.on_stderr(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception:
            logger.exception("the stderr callback failed")


async def _discard_output(process: Process) -> None:
    if process.stdout is None:
        return
    while True:
        try:
            await process.stdout.receive()
        except (anyio.EndOfStream, *_BROKEN):
            return


@atexit.register
def _terminate_all() -> None:
    for transport in list(_live):
        transport.terminate_at_exit()
