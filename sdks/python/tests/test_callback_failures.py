"""Exceptions in tools, callbacks and hooks: where the developer sees them, and what the model reads.

The log has the traceback at ERROR, the model the type and the text. A run is
otherwise silent about its own code.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from support.asking import answers_to
from support.looking import call, results_by_tool, run, text_of

from qoder_agent_sdk import HookMatcher, create_sdk_mcp_server, tool

pytestmark = pytest.mark.anyio

#: One value for each callback that a session may have, and the request that calls it.
REQUESTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"can_use_tool": None}, {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}, "can_use_tool"),
    ({"resolve_model": None}, {"subtype": "get_model_policy", "purpose": "main"}, "resolve_model"),
    ({"on_elicitation": None}, {"subtype": "elicitation", "server_name": "s"}, "on_elicitation"),
    ({"on_mcp_oauth_required": None}, {"subtype": "mcp_oauth_required", "server_name": "s"}, "on_mcp_oauth_required"),
    ({"on_auth_expired": None}, {"subtype": "auth_expired", "reason": "r"}, "on_auth_expired"),
]


def failures(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno == logging.ERROR]


async def lookup(*_arguments: Any) -> Any:
    return {}["database"]


def assert_shown(record: logging.LogRecord, name: str) -> None:
    assert record.name == "qoder_agent_sdk" and name in record.getMessage()
    assert record.exc_info is not None and record.exc_info[0] is KeyError
    assert "lookup" in (logging.Formatter().formatException(record.exc_info))


@pytest.mark.parametrize(("options", "request_", "name"), REQUESTS, ids=[name for _, _, name in REQUESTS])
async def test_a_callback_that_raises_is_logged_with_its_traceback(
    options: dict[str, Any],
    request_: dict[str, Any],
    name: str,
    fake_runtime: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given: dict[str, Any] = {key: lookup for key in options}
    (answer,) = await answers_to(fake_runtime, tmp_path, request_, **given)
    (record,) = failures(caplog)
    assert_shown(record, name)
    said = answer.get("error") or answer["response"].get("message") or answer["response"].get("action")
    assert said in ("KeyError: 'database'", "cancel")


async def test_a_hook_that_raises_is_logged_by_its_name(
    fake_runtime: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = {"subtype": "hook_callback", "callback_id": "hook_0", "input": {"hook_event_name": "PreToolUse"}}
    hooks = {"PreToolUse": [HookMatcher(hooks=[lookup])]}
    (answer,) = await answers_to(fake_runtime, tmp_path, request, hooks=hooks)
    (record,) = failures(caplog)
    assert_shown(record, "the PreToolUse hook 'lookup'")
    assert answer["error"] == "KeyError: 'database'"


async def test_the_model_reads_the_type_and_the_log_has_the_place(
    scripted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = create_sdk_mcp_server(name="kb", tools=[tool("lookup", "Looks something up.", {})(lookup)])
    replies = [{"when": {"turn": 1}, "toolCalls": [call("mcp__kb__lookup")]}, {"text": "Done."}]
    options = scripted(*replies, mcp_servers={"kb": server}, allowed_tools=["mcp__kb__lookup"])
    results = results_by_tool(await run("go", options))
    assert "KeyError: 'database'" in text_of(results["mcp__kb__lookup"])
    (record,) = failures(caplog)
    assert_shown(record, "lookup")
