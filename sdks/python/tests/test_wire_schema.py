"""The classes against the committed JSON Schema of the wire: a field that the runtime writes has an attribute, and a
request that a host can make has a method that makes it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import qoder_agent_sdk
from qoder_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

SCHEMAS = Path(os.environ.get("QODER_SDK_REPOSITORY", Path(__file__).resolve().parents[3])) / "schemas"
RUNTIME: dict[str, Any] = json.loads((SCHEMAS / "runtime-lines.schema.json").read_text())
HOST: dict[str, Any] = json.loads((SCHEMAS / "host-control-lines.schema.json").read_text())


def snake(name: str) -> str:
    """`modelUsage` as an attribute."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def variant(definition: str, tag: str, value: str) -> dict[str, Any]:
    """The properties of one kind of a tagged union, those behind its reference included."""
    for entry in RUNTIME["$defs"][definition]["oneOf"]:
        if entry.get("properties", {}).get(tag, {}).get("const") == value:
            properties = dict(entry["properties"])
            if "$ref" in entry:
                properties.update(RUNTIME["$defs"][entry["$ref"].split("/")[-1]]["properties"])
            return properties
    raise AssertionError(f"the schema has no {value}")


@pytest.mark.parametrize(
    ("kind", "cls"), [("assistant", AssistantMessage), ("user", UserMessage), ("result", ResultMessage)]
)
def test_every_field_of_a_message_has_an_attribute(kind: str, cls: type[Any]) -> None:
    names = {snake(name) for name in variant("StreamMessage", "type", kind)} - {"type", "message"}
    assert names <= {field.name for field in dataclasses.fields(cls)}


def test_every_field_of_a_piece_has_an_attribute() -> None:
    names = set(RUNTIME["$defs"]["stream_event"]["properties"]) - {"type"}
    assert names <= {field.name for field in dataclasses.fields(StreamEvent)}


@pytest.mark.parametrize(
    ("kind", "cls"),
    [("text", TextBlock), ("thinking", ThinkingBlock), ("tool_use", ToolUseBlock), ("tool_result", ToolResultBlock)],
)
def test_every_field_of_a_block_has_an_attribute(kind: str, cls: type[Any]) -> None:
    for entry in RUNTIME["$defs"]["ContentBlock"]["anyOf"]:
        if entry.get("properties", {}).get("type", {}).get("const") == kind:
            assert set(entry["properties"]) - {"type"} <= {field.name for field in dataclasses.fields(cls)}
            return
    raise AssertionError(f"the schema has no block {kind}")


def test_every_field_of_a_question_reaches_the_callback() -> None:
    renamed = {"permission_suggestions": "suggestions"}
    names = {renamed.get(name, name) for name in RUNTIME["$defs"]["CanUseTool"]["properties"]}
    assert names - {"tool_name", "input"} <= {field.name for field in dataclasses.fields(ToolPermissionContext)}


def test_every_request_of_a_host_is_made_by_the_sdk() -> None:
    source = "".join(path.read_text() for path in Path(inspect.getfile(qoder_agent_sdk)).parent.rglob("*.py"))
    subtypes = [entry["properties"]["subtype"]["const"] for entry in HOST["$defs"]["HostRequest"]["oneOf"]]
    missing = [name for name in subtypes if f'"{name}"' not in source]
    # What both SDKs read from the answer of the handshake needs no request.
    assert set(missing) <= {"supported_agents", "supported_commands"}


def test_every_request_of_the_runtime_is_answered_by_the_sdk() -> None:
    source = "".join(path.read_text() for path in Path(inspect.getfile(qoder_agent_sdk)).parent.rglob("*.py"))
    subtypes = [entry["properties"]["subtype"]["const"] for entry in RUNTIME["$defs"]["RuntimeRequest"]["oneOf"]]
    assert [name for name in subtypes if f'"{name}"' not in source] == []
