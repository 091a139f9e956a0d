"""Messages of the stream and the content blocks inside them.

Plain dataclasses with the documented fields. Where the runtime sends more than
is described here, the message as it came is in `raw`; message types and blocks
that this version does not know arrive as `UnknownMessage` and `UnknownBlock`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union


def _raw() -> Any:
    """A field for the message as it came; it takes no part in comparing and printing."""
    return field(default_factory=dict, repr=False, compare=False)


@dataclass
class TextBlock:
    """Text of the model or of the user."""

    text: str


@dataclass
class ThinkingBlock:
    """Reasoning of the model."""

    thinking: str
    signature: str = ""


@dataclass
class ToolUseBlock:
    """A tool call that the model asks for."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    """What a tool call gave."""

    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


@dataclass
class ImageBlock:
    """A picture; `source` is `{"type": "base64", "media_type": ..., "data": ...}`."""

    source: dict[str, Any]


@dataclass
class UnknownBlock:
    """A content block of a type that this version of the SDK does not know."""

    type: str
    data: dict[str, Any]


ContentBlock = Union[TextBlock, ThinkingBlock, ToolUseBlock, ToolResultBlock, ImageBlock, UnknownBlock]


@dataclass
class AssistantMessage:
    """A complete reply of the model."""

    content: list[ContentBlock]
    parent_tool_use_id: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    model: str | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    request_id: str | None = None
    raw: dict[str, Any] = _raw()


@dataclass
class UserMessage:
    """Tool results on their way to the model, or a prompt that is replayed."""

    content: str | list[ContentBlock]
    parent_tool_use_id: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    tool_use_result: Any = None
    is_synthetic: bool | None = None
    is_replay: bool | None = None
    custom_context: dict[str, str] | None = None
    typed: str | None = None
    """For a prompt that is replayed: what was typed, when the message is the expansion of a command."""
    duration_ms: int | None = None
    """For the result of a tool: how long it ran."""
    raw: dict[str, Any] = _raw()


@dataclass
class SystemMessage:
    """News of the session; `data` is the whole message, `subtype` says which kind."""

    subtype: str
    data: dict[str, Any]


@dataclass
class ResultMessage:
    """The end of a turn; `result` is there only on success."""

    subtype: str
    duration_ms: int
    num_turns: int
    session_id: str
    total_cost_usd: float | None = None
    result: str | None = None
    is_error: bool = False
    duration_api_ms: int = 0
    uuid: str | None = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    usage: dict[str, Any] | None = None
    model_usage: dict[str, Any] | None = None
    total_credits: float | None = None
    permission_denials: list[dict[str, Any]] = field(default_factory=list)
    subagents: list[dict[str, Any]] = field(default_factory=list)
    structured_output: Any = None
    deferred_tool_use: dict[str, Any] | None = None
    errors: list[str] = field(default_factory=list)
    error_code: int | None = None
    api_error_status: int | None = None
    raw: dict[str, Any] = _raw()


@dataclass
class StreamEvent:
    """A piece of a reply while it is written; needs `include_partial_messages=True`."""

    uuid: str
    session_id: str
    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@dataclass
class PromptSuggestionMessage:
    """A prompt the user might send next; needs `prompt_suggestions=True`."""

    suggestion: str
    uuid: str | None = None
    session_id: str | None = None


@dataclass
class UnknownMessage:
    """A message of a type that this version of the SDK does not know."""

    type: str
    data: dict[str, Any]


Message = Union[
    AssistantMessage,
    UserMessage,
    SystemMessage,
    ResultMessage,
    StreamEvent,
    PromptSuggestionMessage,
    UnknownMessage,
]
