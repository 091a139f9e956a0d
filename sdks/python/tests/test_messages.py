"""Messages become dataclasses; what is unknown is kept.

Also how bytes become lines and lines become objects, because that is where a broken
runtime shows first.
"""

from __future__ import annotations

from typing import Any

import pytest

from qoder_agent_sdk import (
    AssistantMessage,
    CLIJSONDecodeError,
    ImageBlock,
    MessageParseError,
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
from qoder_agent_sdk._process.lines import LineSplitter, decode_line, decode_rest
from qoder_agent_sdk._session.parsing import parse_message


def test_an_assistant_message_has_its_blocks() -> None:
    data = {
        "type": "assistant",
        "uuid": "u",
        "session_id": "s",
        "parent_tool_use_id": "p",
        "message": {
            "model": "m",
            "content": [
                {"type": "text", "text": "t"},
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "i", "name": "n", "input": {"a": 1}},
                {"type": "hologram", "beam": 3},
            ],
        },
    }
    message = parse_message(data)
    assert isinstance(message, AssistantMessage)
    assert message.content == [
        TextBlock("t"),
        ThinkingBlock("hm", ""),
        ToolUseBlock("i", "n", {"a": 1}),
        UnknownBlock("hologram", {"type": "hologram", "beam": 3}),
    ]
    assert (message.uuid, message.session_id, message.parent_tool_use_id, message.model) == ("u", "s", "p", "m")
    assert message.raw is data


def test_a_user_message_has_text_or_blocks() -> None:
    assert parse_message({"type": "user", "message": {"content": "plain"}}) == UserMessage("plain")
    message = parse_message(
        {
            "type": "user",
            "tool_use_result": {"stdout": "x"},
            "isSynthetic": True,
            "message": {
                "content": [
                    {"type": "tool_result", "tool_use_id": "i", "content": "x", "is_error": True},
                    {"type": "image", "source": {"type": "base64"}},
                ]
            },
        }
    )
    assert isinstance(message, UserMessage)
    assert message.content == [ToolResultBlock("i", "x", True), ImageBlock({"type": "base64"})]
    assert message.tool_use_result == {"stdout": "x"} and message.is_synthetic is True


def test_a_result_has_what_it_needs_and_what_came() -> None:
    data: dict[str, Any] = {
        "type": "result",
        "subtype": "success",
        "duration_ms": 3,
        "duration_api_ms": 2,
        "is_error": False,
        "num_turns": 1,
        "session_id": "s",
        "result": "r",
        "total_cost_usd": 0.5,
        "modelUsage": {"m": {}},
        "new_field": 1,
    }
    message = parse_message(data)
    assert isinstance(message, ResultMessage)
    assert (message.subtype, message.duration_ms, message.num_turns, message.session_id) == ("success", 3, 1, "s")
    assert (message.result, message.total_cost_usd, message.model_usage) == ("r", 0.5, {"m": {}})
    assert message.raw["new_field"] == 1


def test_other_messages() -> None:
    system = {"type": "system", "subtype": "brand_new", "x": 1}
    assert parse_message(system) == SystemMessage("brand_new", system)
    event = {"type": "stream_event", "uuid": "u", "session_id": "s", "event": {"type": "message_stop"}}
    assert parse_message(event) == StreamEvent("u", "s", {"type": "message_stop"}, None)
    assert parse_message({"type": "prompt_suggestion", "suggestion": "go"}) == PromptSuggestionMessage("go")
    assert parse_message({"type": "telegram", "x": 1}) == UnknownMessage("telegram", {"type": "telegram", "x": 1})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "no 'type'"),
        ({"type": "assistant"}, "'assistant' has no 'message'"),
        ({"type": "assistant", "message": {"content": None}}, "unexpected shape"),
        ({"type": "assistant", "message": {"content": [{"text": "x"}]}}, "no 'type'"),
        ({"type": "result", "subtype": "success"}, "'result' has no 'duration_ms'"),
        ({"type": "system"}, "'system' has no 'subtype'"),
        ({"type": "stream_event", "uuid": "u"}, "'stream_event' has no 'session_id'"),
    ],
)
def test_a_message_without_what_it_must_have_is_refused(data: dict[str, Any], text: str) -> None:
    with pytest.raises(MessageParseError, match=text):
        parse_message(data)


def test_lines_end_at_newlines_only() -> None:
    splitter = LineSplitter(1000)
    text = '{"a":"\u2028 \u0085 \x0b"}'.encode()
    assert splitter.feed(text[:5]) == []
    assert splitter.feed(text[5:] + b"\n\n{") == [text, b""]
    assert splitter.rest() == b"{"


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert LineSplitter(5).feed(b"12345\n") == [b"12345"]
    with pytest.raises(CLIJSONDecodeError, match="more than 5 bytes"):
        LineSplitter(5).feed(b"123456\n")
    splitter = LineSplitter(5)
    splitter.feed(b"123")
    with pytest.raises(CLIJSONDecodeError, match="more than 5 bytes"):
        splitter.feed(b"456")


def test_lines_that_are_not_objects_are_skipped() -> None:
    assert decode_line(b"warning: x") is None and decode_line(b"") is None and decode_line(b"\r") is None
    assert decode_line(b'{"a": 1}\r') == {"a": 1}
    with pytest.raises(CLIJSONDecodeError, match="not JSON"):
        decode_line(b"{a}")


def test_a_last_line_that_was_cut_off_is_dropped() -> None:
    assert decode_rest(b'{"a": 1}') == {"a": 1}
    assert decode_rest(b'{"a": ') is None
