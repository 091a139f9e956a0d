"""`query()`: one run, as an async iterator of messages.

Options are checked when `query()` is called; the process starts with the first
step of the iterator and ends with it, also when the consumer stops early.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from ._backend import BackgroundTask, spawn
from ._errors import CLIConnectionError, QoderCliProcessError
from ._options.options import QoderAgentOptions
from ._options.prompts import check_prompt, prompt_messages
from ._session.session import Session
from ._types.messages import Message


def query(
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: QoderAgentOptions | None = None,
) -> AsyncGenerator[Message, None]:
    """Send a prompt (or several) and stream the messages of the run in the order of their arrival."""
    check_prompt("query()", prompt)
    options = options if options is not None else QoderAgentOptions()
    options.validate()
    # Made here and not in the generator, so that what is wrong with the runtime is raised at once.
    return _run(prompt, Session(options))


async def _run(prompt: str | AsyncIterable[dict[str, Any]], session: Session) -> AsyncGenerator[Message, None]:
    feeder: BackgroundTask | None = None
    try:
        try:
            await session.start()
        except QoderCliProcessError:
            # What the runtime said before it gave up comes first, then the error.
            while (message := await session.next_message()) is not None:
                yield message
            raise

        async def feed() -> None:
            await _feed(prompt, session)

        feeder = spawn(feed, "qoder-prompts")
        while (message := await session.next_message()) is not None:
            yield message
    finally:
        if feeder is not None:
            feeder.cancel()
        await session.close()


async def _feed(prompt: str | AsyncIterable[dict[str, Any]], session: Session) -> None:
    try:
        async for message in prompt_messages(prompt, session_id=""):
            await session.send(message)
        if session.callbacks.any_registered:
            await session.turns.wait_until_over()
        await session.end_input()
    except CLIConnectionError:
        return  # the reader reports how the process ended
    except Exception as error:
        session.fail(error)
