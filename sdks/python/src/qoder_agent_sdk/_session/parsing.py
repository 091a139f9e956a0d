"""From JSON objects of the stream to the dataclasses of `_types.messages`.

One function per message type behind one table, because this is the path that
every partial message takes. Only what the protocol guarantees is required;
anything else may be missing, and unknown things are kept, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._errors import MessageParseError
from .._types.messages import (
    AssistantMessage,
    ContentBlock,
    ImageBlock,
    Message,
    PromptSuggestionMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    UnknownMessage,
    UserMessage,
)


def parse_message(data: dict[str, Any]) -> Message:
    """Turn one message of the runtime into its dataclass."""
    kind = data.get("type")
    if not isinstance(kind, str):
        raise MessageParseError("a message of the runtime has no 'type'", data)
    parser = _PARSERS.get(kind)
    if parser is None:
        return UnknownMessage(type=kind, data=data)
    try:
        return parser(data)
    except KeyError as error:
        raise MessageParseError(f"a message of type '{kind}' has no {error.args[0]!r}", data) from error
    except (TypeError, AttributeError) as error:
        raise MessageParseError(f"a message of type '{kind}' has an unexpected shape: {error}", data) from error


def parse_block(block: Any) -> ContentBlock:
    """Turn one content block into its dataclass."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise MessageParseError(f"a content block has no 'type': {block!r:.200}")
    kind = block["type"]
    if kind == "text":
        return TextBlock(text=block["text"])
    if kind == "tool_use":
        return ToolUseBlock(id=block["id"], name=block["name"], input=block["input"])
    if kind == "tool_result":
        return ToolResultBlock(block["tool_use_id"], block.get("content"), block.get("is_error"))
    if kind == "thinking":
        return ThinkingBlock(thinking=block["thinking"], signature=block.get("signature") or "")
    if kind == "image":
        return ImageBlock(source=block["source"])
    return UnknownBlock(type=kind, data=block)


def _parse_stream_event(data: dict[str, Any]) -> Message:
    return StreamEvent(data["uuid"], data["session_id"], data["event"], data.get("parent_tool_use_id"))


def _parse_assistant(data: dict[str, Any]) -> Message:
    message = data["message"]
    return AssistantMessage(
        content=[parse_block(block) for block in message["content"]],
        parent_tool_use_id=data.get("parent_tool_use_id"),
        session_id=data.get("session_id"),
        uuid=data.get("uuid"),
        model=message.get("model"),
        message_id=message.get("id"),
        stop_reason=message.get("stop_reason"),
        usage=message.get("usage"),
        error=data.get("error"),
        request_id=data.get("request_id"),
        raw=data,
    )


def _parse_user(data: dict[str, Any]) -> Message:
    content = data["message"]["content"]
    return UserMessage(
        content=content if isinstance(content, str) else [parse_block(block) for block in content],
        parent_tool_use_id=data.get("parent_tool_use_id"),
        session_id=data.get("session_id"),
        uuid=data.get("uuid"),
        tool_use_result=data.get("tool_use_result"),
        is_synthetic=data.get("isSynthetic"),
        is_replay=data.get("isReplay"),
        custom_context=data.get("custom_context"),
        typed=data.get("typed"),
        duration_ms=data.get("duration_ms"),
        raw=data,
    )


def _parse_system(data: dict[str, Any]) -> Message:
    return SystemMessage(subtype=data["subtype"], data=data)


def _parse_result(data: dict[str, Any]) -> Message:
    return ResultMessage(
        subtype=data["subtype"],
        duration_ms=data["duration_ms"],
        num_turns=data["num_turns"],
        session_id=data["session_id"],
        total_cost_usd=data.get("total_cost_usd"),
        result=data.get("result"),
        is_error=bool(data.get("is_error", False)),
        duration_api_ms=data.get("duration_api_ms") or 0,
        uuid=data.get("uuid"),
        stop_reason=data.get("stop_reason"),
        terminal_reason=data.get("terminal_reason"),
        usage=data.get("usage"),
        model_usage=data.get("modelUsage"),
        total_credits=data.get("total_credits"),
        permission_denials=data.get("permission_denials") or [],
        subagents=data.get("subagents") or [],
        structured_output=data.get("structured_output"),
        deferred_tool_use=data.get("deferred_tool_use"),
        errors=data.get("errors") or [],
        error_code=data.get("error_code"),
        api_error_status=data.get("api_error_status"),
        raw=data,
    )


def _parse_prompt_suggestion(data: dict[str, Any]) -> Message:
    return PromptSuggestionMessage(data["suggestion"], data.get("uuid"), data.get("session_id"))


_PARSERS: dict[str, Callable[[dict[str, Any]], Message]] = {
    "stream_event": _parse_stream_event,
    "assistant": _parse_assistant,
    "user": _parse_user,
    "system": _parse_system,
    "result": _parse_result,
    "prompt_suggestion": _parse_prompt_suggestion,
}
