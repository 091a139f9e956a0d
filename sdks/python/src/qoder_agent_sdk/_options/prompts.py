"""From prompts to the user messages that travel.

A prompt is a text, or an async iterable of message dicts. Dicts are passed on
as they are, with the fields that the runtime needs filled in.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from .._errors import OptionTypeError, OptionValueError


def check_prompt(where: str, prompt: object) -> None:
    """Refuse what is no prompt."""
    if isinstance(prompt, str) or isinstance(prompt, AsyncIterable):
        return
    raise OptionTypeError(
        f"the prompt of {where} must be a string or an async iterable of message dicts, not {type(prompt).__name__}"
    )


def text_message(text: str, session_id: str, message_uuid: str | None = None) -> dict[str, Any]:
    """The user message for a text."""
    message: dict[str, Any] = {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "session_id": session_id,
    }
    if message_uuid is not None:
        message["uuid"] = message_uuid
    return message


async def prompt_messages(
    prompt: str | AsyncIterable[dict[str, Any]], session_id: str, message_uuid: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The user messages of a prompt."""
    if isinstance(prompt, str):
        yield text_message(prompt, session_id, message_uuid)
        return
    async for item in prompt:
        yield _completed(item, session_id)


def _completed(item: Any, session_id: str) -> dict[str, Any]:
    shape = "{'type': 'user', 'message': {'role': 'user', 'content': ...}}"
    if not isinstance(item, dict):
        raise OptionTypeError(f"a prompt iterable must yield message dicts like {shape}, not {type(item).__name__}")
    inner = item.get("message")
    if item.get("type", "user") != "user" or not isinstance(inner, dict) or "content" not in inner:
        raise OptionValueError(f"a prompt iterable must yield messages like {shape}, not {item!r:.200}")
    message = {"parent_tool_use_id": None, "session_id": session_id, **item, "type": "user"}
    message["message"] = {"role": "user", **inner}
    return message
