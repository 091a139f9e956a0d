"""A runtime that does exactly what a test says.

Real behaviour is tested against the real `qodercli`; this one is for what a
correct runtime never does: silence, crashes, other versions, broken lines. A
test writes a script that imports these helpers and gets it as `cli_path`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"


def send(message: dict[str, Any]) -> None:
    """Print one message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any] | None:
    """The next message of the SDK; None at the end of input."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def read_request(subtype: str) -> dict[str, Any]:
    """The next message, which must be this control request."""
    message = read()
    assert message is not None and message["request"]["subtype"] == subtype, message
    return message


def answer(request: dict[str, Any], response: dict[str, Any] | None = None) -> None:
    """Answer a control request."""
    send(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": request["request_id"], "response": response or {}},
        }
    )


def handshake(**changes: Any) -> dict[str, Any]:
    """Answer `initialize`; returns the request."""
    request = read_request("initialize")
    answer(request, {"protocol_version": 1, "qodercli_version": "0.1.0", "agents": [], "commands": [], **changes})
    return request["request"]


def ask(identifier: str, **request: Any) -> None:
    """Send a control request of the runtime."""
    send({"type": "control_request", "request_id": identifier, "request": request})


def state(name: str) -> None:
    """Report what the runtime does, for the SDK only."""
    send({"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True})


def say(text: str) -> None:
    """Send a reply of the model."""
    send(
        {
            "type": "assistant",
            "uuid": "a-1",
            "session_id": SESSION,
            "parent_tool_use_id": None,
            "message": {"id": "m-1", "role": "assistant", "model": "fake", "content": [{"type": "text", "text": text}]},
        }
    )


def result(**changes: Any) -> None:
    """Send the result of a turn."""
    send(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "duration_ms": 1,
            "duration_api_ms": 1,
            "num_turns": 1,
            "session_id": SESSION,
            "result": "done",
            **changes,
        }
    )


def wait_for_end() -> None:
    """Read until the SDK closes the input."""
    while read() is not None:
        pass
