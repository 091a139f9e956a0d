"""One conversation with a runtime process.

Owns the reader, the control requests in both directions, and the end of the
process. `query()` and `QoderSDKClient` are thin layers over it: they differ in
who feeds prompts and in when the input is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from .._backend import BackgroundTask, cancel_after_grace, is_being_cancelled, new_signal, spawn
from .._errors import (
    CLIConnectionError,
    ControlRequestError,
    ControlRequestTimeoutError,
    QueryResultError,
)
from .._mcp.results import exception_text
from .._options.options import QoderAgentOptions
from .._process.command import config_root_for, launch_for
from .._process.launch_files import LaunchFiles
from .._process.transport import ProcessTransport
from .._types.messages import Message, ResultMessage
from .callbacks import Callbacks
from .handshake import check_initialization, initialize_request
from .inbox import Inbox
from .parsing import parse_message
from .status_changes import StatusChanges
from .turns import Turns

if TYPE_CHECKING:
    from .._stores.mirror import Mirror

logger = logging.getLogger("qoder_agent_sdk")

#: How long callbacks may take to end when the session ends.
_CALLBACK_END_SECONDS = 2.0

#: How long the last messages may take to be read when the process has ended.
_LATE_MESSAGES_SECONDS = 1.0


@dataclass
class _Pending:
    """A control request of ours that waits for its answer."""

    subtype: str
    answered: anyio.Event
    response: dict[str, Any] | None = None
    error: BaseException | None = None


@dataclass
class _Incoming:
    """A request of the runtime that is being answered."""

    task: BackgroundTask
    signal: asyncio.Event


class Session:
    """A runtime process and the tasks that serve it."""

    def __init__(self, options: QoderAgentOptions) -> None:
        """Prepare a session; `start` starts the process."""
        self._options = options
        self.callbacks = Callbacks(options)
        self.turns = Turns()
        #: What the runtime answered to `initialize`.
        self.initialization: dict[str, Any] = {}
        #: The agents that can be used now: those of the initialization, until plugins are read anew.
        self.agents: list[dict[str, Any]] = []
        self._files = LaunchFiles()
        self._transport = ProcessTransport(launch_for(options, self._files))
        self._mirror: Mirror | None = None
        self._inbox = Inbox()
        self._status_changes = StatusChanges(options.on_mcp_status_change)
        self._pending: dict[str, _Pending] = {}
        self._incoming: dict[str, _Incoming] = {}
        self._reader: BackgroundTask | None = None
        self._request_count = 0
        self._last_result: dict[str, Any] | None = None
        self._raise_next: BaseException | None = None
        self._closed = False

    async def start(self) -> None:
        """Start the process and shake hands."""
        if self._options.session_store is not None:
            await self._use_store()
        request = initialize_request(self._options, self.callbacks)
        await self._transport.start()
        self._reader = spawn(self._read, "qoder-reader")
        self.initialization = await self.request("initialize", request)
        check_initialization(self.initialization, self._options)
        self.agents = list(self.initialization.get("agents") or [])

    async def _use_store(self) -> None:
        """Bring the session from the store, and copy to the store what happens now."""
        from .._stores.mirror import Mirror
        from .._stores.resume import restored

        store, eager = self._options.session_store, self._options.session_store_flush == "eager"
        options = await restored(self._options, config_root_for(self._options), self._files)
        if options is not self._options:
            self._options = options
            self._transport = ProcessTransport(launch_for(options, self._files))
        if store is not None:
            self._mirror = Mirror(store, config_root_for(options), eager, self._inbox.put)

    # ---- messages

    async def send(self, message: dict[str, Any]) -> None:
        """Send a user message."""
        if message.get("shouldQuery", True):
            self.turns.prompt_sent()
        await self._transport.write(message)

    async def end_input(self) -> None:
        """Tell the runtime that no more prompts and answers will come."""
        await self._transport.end_input()

    async def next_message(self) -> Message | None:
        """The next message for the caller; None when the runtime has ended."""
        self.raise_pending()
        data = await self._inbox.take()
        if data is None:
            return None
        message = parse_message(data)
        if isinstance(message, ResultMessage):
            # The callback's own failure says more than the result it led to.
            self._raise_next, self.callbacks.policy_timeout = self.callbacks.policy_timeout, None
        return message

    def raise_pending(self) -> None:
        """Raise what a callback did wrong in the turn whose result was just delivered."""
        if self._raise_next is not None:
            error, self._raise_next = self._raise_next, None
            raise error

    def fail(self, error: BaseException) -> None:
        """Give the consumer an error in place of further messages."""
        self._inbox.fail(error)

    # ---- control requests to the runtime

    async def request(self, subtype: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the runtime for something and wait for its answer."""
        if self._closed or self._inbox.ended:
            raise CLIConnectionError(f"'{subtype}' cannot be sent: qodercli has ended; start a new session")
        self._request_count += 1
        identifier = f"req_{self._request_count}_{os.urandom(4).hex()}"
        pending = self._pending[identifier] = _Pending(subtype, anyio.Event())
        self._inbox.answers_expected += 1
        self._inbox.resume_reader()
        milliseconds = self._options.control_request_timeout_ms
        try:
            with anyio.move_on_after(milliseconds / 1000 if milliseconds else None) as scope:
                await self._write_request(identifier, {"subtype": subtype, **(fields or {})}, pending)
                await pending.answered.wait()
        finally:
            del self._pending[identifier]
            self._inbox.answers_expected -= 1
            if not pending.answered.is_set():
                await self._withdraw(identifier)
        if scope.cancelled_caught and not pending.answered.is_set():
            raise ControlRequestTimeoutError(
                f"qodercli did not answer the control request '{subtype}' within {milliseconds} ms "
                "(control_request_timeout_ms); it was cancelled",
                subtype,
            )
        if pending.error is not None:
            raise pending.error
        return pending.response or {}

    async def _write_request(self, identifier: str, request: dict[str, Any], pending: _Pending) -> None:
        try:
            await self._transport.write({"type": "control_request", "request_id": identifier, "request": request})
        except CLIConnectionError:
            # The process is ending; the reader knows why and will say so.
            with anyio.move_on_after(2):
                await pending.answered.wait()
            if not pending.answered.is_set():
                raise

    async def _withdraw(self, identifier: str) -> None:
        """Cancel a control request whose caller no longer waits."""
        with anyio.move_on_after(1, shield=True):
            try:
                await self._transport.write({"type": "control_cancel_request", "request_id": identifier})
            except CLIConnectionError:
                logger.debug("qodercli ended before request %s could be withdrawn", identifier)

    # ---- reading

    async def _read(self) -> None:
        error: BaseException | None = None
        try:
            async for message in self._transport.messages():
                await self._dispatch(message)
            await self._transport.wait()
            await self._copy_to_store(None)
            error = self._end_error()
        except Exception as read_error:
            error = read_error
            self._transport.kill()
        finally:
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        """Nothing more can be read: wake everybody who waits."""
        self._inbox.end(error)
        self.turns.ended()
        for pending in self._pending.values():
            if not pending.answered.is_set():
                pending.error = error or self._transport.failure(
                    f"qodercli ended before it answered the control request '{pending.subtype}'"
                )
                pending.answered.set()

    def _end_error(self) -> BaseException | None:
        if self._transport.exit_status == 0:
            return None
        failure = self._transport.failure("qodercli failed")
        result = self._last_result
        if result is None or not result.get("is_error"):
            return failure
        errors = [str(error) for error in result.get("errors") or []]
        text = "; ".join(errors) or result.get("result") or result.get("subtype") or "the run failed"
        return QueryResultError(
            f"the run ended with an error: {text}",
            subtype=str(result.get("subtype")),
            errors=errors,
            session_id=result.get("session_id"),
            terminal_reason=result.get("terminal_reason"),
            api_error_status=result.get("api_error_status"),
            error_code=result.get("error_code"),
            exit_code=failure.exit_code,
            signal=failure.signal,
            stderr=failure.stderr,
        )

    async def _dispatch(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "control_response":
            self._take_answer(message.get("response") or {})
        elif kind == "control_request":
            self._take_request(message)
        elif kind == "control_cancel_request":
            self._cancel_incoming(message.get("request_id"))
        elif kind == "system" and message.get("subtype") == "session_state_changed":
            self.turns.state_changed(str(message.get("state")))
            if not message.get("sdk_host_only"):
                self._inbox.put(message)
        elif kind == "transcript_mirror":
            await self._copy_to_store(message)
        elif kind != "keep_alive":
            await self._deliver(message, kind)

    async def _deliver(self, message: dict[str, Any], kind: object) -> None:
        self._last_result = message if kind == "result" else None
        if kind == "system" and message.get("subtype") == "mcp_status_change":
            self._status_changes.put(message.get("servers") or [])
        if kind == "system" and message.get("subtype") == "notice":
            logger.warning("%s", message.get("message"))
        if kind == "result":
            # Who sees the result may hand the session over to another host.
            await self._copy_to_store(None)
        self._inbox.put(message)
        if kind == "result":
            self.turns.result_seen()
        await self._inbox.wait_for_room()

    async def _copy_to_store(self, frame: dict[str, Any] | None) -> None:
        """Take a frame for the store, or hand over all that waits."""
        if self._mirror is None:
            return
        if frame is not None:
            self._mirror.take(frame)
        else:
            await self._mirror.flush()

    def _take_answer(self, response: dict[str, Any]) -> None:
        pending = self._pending.get(str(response.get("request_id")))
        if pending is None:
            return  # it came after its timeout
        if response.get("subtype") == "error":
            pending.error = ControlRequestError(str(response.get("error") or "no reason was given"), pending.subtype)
        else:
            pending.response = response.get("response")
        pending.answered.set()

    # ---- requests of the runtime

    def _take_request(self, message: dict[str, Any]) -> None:
        identifier = message.get("request_id")
        if not isinstance(identifier, str):
            logger.warning("qodercli sent a control request without an id; it is ignored")
            return
        if self._closed and (message.get("request") or {}).get("subtype") != "hook_callback":
            return  # a session that ends decides nothing more; its hooks may still be told
        signal = new_signal()

        async def run() -> None:
            try:
                await self._answer(identifier, message.get("request") or {}, signal)
            finally:
                self._incoming.pop(identifier, None)

        self._incoming[identifier] = _Incoming(spawn(run, "qoder-callback"), signal)

    async def _answer(self, identifier: str, request: dict[str, Any], signal: asyncio.Event) -> None:
        try:
            response: dict[str, Any] = {
                "subtype": "success",
                "request_id": identifier,
                "response": await self.callbacks.answer(request, signal),
            }
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            # Something that the callback waited for was cancelled, not the callback.
            response = _error_reply(identifier, "the callback raised CancelledError")
        except Exception as error:
            response = _error_reply(identifier, exception_text(error))
        if identifier not in self._incoming:
            return  # the runtime has withdrawn it
        try:
            await self._transport.write({"type": "control_response", "response": response})
        except TypeError as error:
            await self._write_error(identifier, f"the callback returned something that is not JSON: {error}")
        except CLIConnectionError:
            logger.debug("qodercli ended before request %s was answered", identifier)

    async def _write_error(self, identifier: str, text: str) -> None:
        try:
            await self._transport.write({"type": "control_response", "response": _error_reply(identifier, text)})
        except CLIConnectionError:
            logger.debug("qodercli ended before request %s was answered", identifier)

    def _cancel_incoming(self, identifier: object) -> None:
        # Taking it out of the table is what keeps its answer from being sent.
        incoming = self._incoming.pop(str(identifier), None)
        if incoming is not None:
            cancel_after_grace(incoming.signal, incoming.task.cancel)

    # ---- end

    async def close(self) -> None:
        """End the process and everything that belongs to it."""
        if self._closed:
            return
        self._closed = True
        running = self._transport.exit_status is None
        unfinished = self.turns.unfinished and running
        # Without input left to close, only a signal can end a running turn.
        at_once = unfinished and not self._transport.input_open
        if running:
            self._cancel_callbacks()
        # No one takes messages from here on; this wakes a reader that waits for room.
        self._inbox.end(None)
        with anyio.CancelScope(shield=True):
            if unfinished and not at_once:
                await self._interrupt_before_end()
            await self._end_process(at_once)
            with anyio.move_on_after(_CALLBACK_END_SECONDS):
                for incoming in list(self._incoming.values()):
                    await incoming.task.wait()
            self._cancel_callbacks()
            if self._mirror is not None:
                await self._mirror.close()
            await self._status_changes.close()
            await self.callbacks.close()

    async def _end_process(self, at_once: bool) -> None:
        """End the process; the reader continues meanwhile, because the runtime may still call `SessionEnd` hooks."""
        reader = self._reader if self._reader is not None and not self._reader.done else None
        try:
            await self._transport.end(at_once=at_once, discard_output=reader is None)
            if reader is not None:
                with anyio.move_on_after(_LATE_MESSAGES_SECONDS):
                    await reader.wait()
        finally:
            if reader is not None:
                reader.cancel()
                await reader.wait()
            await self._transport.release()
            self._finish(None)

    def _cancel_callbacks(self) -> None:
        for incoming in list(self._incoming.values()):
            incoming.signal.set()
            incoming.task.cancel()

    async def _interrupt_before_end(self) -> None:
        """Interrupt the turn, which the runtime would otherwise finish after the end of input."""
        with anyio.move_on_after(1):
            try:
                request = {"subtype": "interrupt"}
                await self._transport.write({"type": "control_request", "request_id": "req_end", "request": request})
            except CLIConnectionError:
                logger.debug("qodercli ended by itself")


def _error_reply(identifier: str, text: str) -> dict[str, Any]:
    return {"subtype": "error", "request_id": identifier, "error": text}
