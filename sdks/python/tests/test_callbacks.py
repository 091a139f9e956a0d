"""What the SDK answers for each callback, and how callbacks fail.

A fake runtime asks, the callback does what the test says, and the answer is compared
word for word.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ElicitResult
from support.asking import answers_to

from qoder_agent_sdk import (
    HookJSONOutput,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionRuleValue,
    PermissionUpdate,
    PreToolUseHookInput,
    ToolPermissionContext,
)

pytestmark = pytest.mark.anyio

PERMISSION = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t-1"}


def returning(value: Any) -> Any:
    async def callback(*_arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return callback


UPDATE = PermissionUpdate(
    type="addRules", rules=[PermissionRuleValue("Bash", "ls:*")], behavior="allow", destination="session"
)

DECISIONS: list[tuple[Any, dict[str, Any]]] = [
    (PermissionResultAllow(), {"behavior": "allow", "updatedInput": {"command": "ls"}}),
    (
        PermissionResultAllow(updated_input={"command": "pwd"}),
        {"behavior": "allow", "updatedInput": {"command": "pwd"}},
    ),
    (
        PermissionResultAllow(updated_permissions=[UPDATE, {"type": "setMode", "mode": "plan"}]),
        {
            "behavior": "allow",
            "updatedInput": {"command": "ls"},
            "updatedPermissions": [
                {
                    "type": "addRules",
                    "rules": [{"toolName": "Bash", "ruleContent": "ls:*"}],
                    "behavior": "allow",
                    "destination": "session",
                },
                {"type": "setMode", "mode": "plan"},
            ],
        },
    ),
    (PermissionResultDeny(message="no"), {"behavior": "deny", "message": "no"}),
    (PermissionResultDeny(message="no", interrupt=True), {"behavior": "deny", "message": "no", "interrupt": True}),
    (
        PermissionResultDeny(message="no", decision_classification="user_reject"),
        {"behavior": "deny", "message": "no", "decisionClassification": "user_reject"},
    ),
    (RuntimeError("database is down"), {"behavior": "deny", "message": "RuntimeError: database is down"}),
]


@pytest.mark.parametrize(("value", "expected"), DECISIONS)
async def test_permission_decisions(value: Any, expected: Any, fake_runtime: Any, tmp_path: Path) -> None:
    (answer,) = await answers_to(fake_runtime, tmp_path, PERMISSION, can_use_tool=returning(value))
    assert answer["subtype"] == "success" and answer["response"] == expected


@pytest.mark.parametrize("value", [None, True, {"behavior": "allow"}, "allow"])
async def test_anything_else_than_a_decision_denies(value: Any, fake_runtime: Any, tmp_path: Path) -> None:
    (answer,) = await answers_to(fake_runtime, tmp_path, PERMISSION, can_use_tool=returning(value))
    assert answer["response"]["behavior"] == "deny"
    assert "PermissionResultAllow or PermissionResultDeny" in answer["response"]["message"]


async def test_the_permission_context_has_every_field(fake_runtime: Any, tmp_path: Path, anyio_backend: str) -> None:
    details = {
        "blocked_path": "/x",
        "decision_reason": "because",
        "decision_reason_type": "rule",
        "classifier_approvable": True,
        "title": "T",
        "display_name": "D",
        "description": "about",
        "agent_id": "a-1",
        "exit_plan_mode": {"plan": "p"},
    }
    got: list[Any] = []

    async def can_use_tool(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow:
        got.append((name, arguments, context))
        return PermissionResultAllow()

    suggestions = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    await answers_to(
        fake_runtime,
        tmp_path,
        {**PERMISSION, **details, "permission_suggestions": suggestions},
        can_use_tool=can_use_tool,
    )
    ((name, arguments, context),) = got
    assert (name, arguments, context.tool_use_id, context.suggestions) == (
        "Bash",
        {"command": "ls"},
        "t-1",
        suggestions,
    )
    assert {key: getattr(context, key) for key in details} == details
    assert context.signal.is_set() is False
    assert isinstance(context.signal, asyncio.Event) is (anyio_backend == "asyncio")


HOOK = {
    "subtype": "hook_callback",
    "callback_id": "hook_0",
    "tool_use_id": "t-1",
    "input": {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "transcript_path": "/t.jsonl",
        "cwd": "/c",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "extra": 1,
    },
}

OUTPUTS: list[tuple[Any, dict[str, Any]]] = [
    ({}, {}),
    (None, {}),
    ({"decision": "block", "reason": "r"}, {"decision": "block", "reason": "r"}),
    ({"continue_": False, "stop_reason": "s"}, {"continue": False, "stopReason": "s"}),
    ({"continue": False, "stopReason": "s"}, {"continue": False, "stopReason": "s"}),
    (HookJSONOutput(), {}),
    (
        HookJSONOutput(continue_=False, stop_reason="s", hook_specific_output={"hookEventName": "PreToolUse"}),
        {"continue": False, "stopReason": "s", "hookSpecificOutput": {"hookEventName": "PreToolUse"}},
    ),
    (HookJSONOutput(async_=True, async_timeout=5), {"async": True, "asyncTimeout": 5}),
]


@pytest.mark.parametrize(("value", "expected"), OUTPUTS)
async def test_hook_outputs(value: Any, expected: Any, fake_runtime: Any, tmp_path: Path) -> None:
    hooks = {"PreToolUse": [HookMatcher(hooks=[returning(value)])]}
    (answer,) = await answers_to(fake_runtime, tmp_path, HOOK, hooks=hooks)
    assert answer["subtype"] == "success" and answer["response"] == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ValueError("broken hook"), "ValueError: broken hook"),
        ("deny", "not str"),
        (3, "not int"),
        ({"decision": "block", "score": float("nan")}, "not JSON"),
    ],
)
async def test_a_hook_that_fails_answers_with_an_error(
    value: Any, text: str, fake_runtime: Any, tmp_path: Path
) -> None:
    hooks = {"PreToolUse": [HookMatcher(hooks=[returning(value)])]}
    (answer,) = await answers_to(fake_runtime, tmp_path, HOOK, hooks=hooks)
    assert answer["subtype"] == "error" and text in answer["error"]


async def test_a_hook_that_waited_for_something_cancelled_answers_with_an_error(
    fake_runtime: Any, tmp_path: Path, anyio_backend: str
) -> None:
    if not hasattr(asyncio.Task, "cancelling"):
        pytest.skip("before Python 3.11 a task does not report whether it is being cancelled")

    async def hook(*_arguments: Any) -> Any:
        raise asyncio.CancelledError

    hooks = {"PreToolUse": [HookMatcher(hooks=[hook])]}
    (answer,) = await answers_to(fake_runtime, tmp_path, HOOK, hooks=hooks)
    assert answer["subtype"] == "error" and "CancelledError" in answer["error"]


async def test_hook_input_is_a_record(fake_runtime: Any, tmp_path: Path) -> None:
    got: list[Any] = []

    async def hook(record: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        got.append((record, tool_use_id, context))
        return {}

    await answers_to(fake_runtime, tmp_path, HOOK, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]})
    ((record, tool_use_id, context),) = got
    assert isinstance(record, PreToolUseHookInput) and tool_use_id == "t-1"
    assert record.tool_name == record["tool_name"] == record.get("tool_name") == "Bash"
    assert record.permission_mode is None and record["extra"] == 1
    assert dict(record) == HOOK["input"]
    assert context.signal.is_set() is False and context["signal"] is context.signal


POLICY = {
    "subtype": "get_model_policy",
    "purpose": "main",
    "sessionId": "s",
    "agentId": "a",
    "turnIndex": 2,
    "availableModels": [{"value": "m", "displayName": "M"}],
}

MODELS: list[tuple[Any, dict[str, Any]]] = [
    ({"model": "auto"}, {"model": "auto"}),
    ({"model": "auto", "parameters": {"temperature": 0}}, {"model": "auto", "parameters": {"temperature": 0}}),
    (
        {"model": {"provider": "p", "model": "m", "api_key": "k", "url": "u"}},
        {"model": "m", "credentials": {"provider": "p", "api_key": "k", "url": "u"}},
    ),
]


@pytest.mark.parametrize(("value", "expected"), MODELS)
@pytest.mark.parametrize("synchronous", [True, False])
async def test_model_policy(value: Any, expected: Any, synchronous: bool, fake_runtime: Any, tmp_path: Path) -> None:
    contexts: list[Any] = []

    def plain(context: Any) -> Any:
        contexts.append(context)
        return value

    async def asynchronous(context: Any) -> Any:
        return plain(context)

    provider = plain if synchronous else asynchronous
    (answer,) = await answers_to(fake_runtime, tmp_path, POLICY, resolve_model=provider)
    assert answer["response"] == expected
    assert contexts == [{key: each for key, each in POLICY.items() if key != "subtype"}]


@pytest.mark.parametrize("value", [{"model": ""}, {}, None, RuntimeError("no model"), {"model": {"provider": "p"}}])
async def test_a_policy_without_model_fails(value: Any, fake_runtime: Any, tmp_path: Path) -> None:
    (answer,) = await answers_to(fake_runtime, tmp_path, POLICY, resolve_model=returning(value))
    assert answer["subtype"] == "error" and "model" in answer["error"]


ELICITATION = {
    "subtype": "elicitation",
    "server_name": "s",
    "message": "Name?",
    "mode": "form",
    "elicitation_id": "e",
    "requested_schema": {"type": "object"},
    "display_name": "S",
}

ELICITED: list[tuple[Any, dict[str, Any]]] = [
    ({"action": "accept", "content": {"name": "x"}}, {"action": "accept", "content": {"name": "x"}}),
    ({"action": "decline"}, {"action": "decline"}),
    (None, {"action": "cancel"}),
    (RuntimeError("no window"), {"action": "cancel"}),
    ("yes", {"action": "cancel"}),
    (ElicitResult(action="accept", content={"name": "x"}), {"action": "accept", "content": {"name": "x"}}),
]


@pytest.mark.parametrize(("value", "expected"), ELICITED)
async def test_elicitation(value: Any, expected: Any, fake_runtime: Any, tmp_path: Path) -> None:
    (answer,) = await answers_to(fake_runtime, tmp_path, ELICITATION, on_elicitation=returning(value))
    assert answer["response"] == expected


async def test_elicitation_without_callback_cancels(fake_runtime: Any, tmp_path: Path) -> None:
    (answer,) = await answers_to(fake_runtime, tmp_path, ELICITATION)
    assert answer["response"] == {"action": "cancel"}


async def test_requests_to_the_host_have_camel_case_names(fake_runtime: Any, tmp_path: Path) -> None:
    got: list[Any] = []

    async def record(request: Any) -> None:
        got.append(request)

    oauth = {"subtype": "mcp_oauth_required", "server_name": "s", "server_url": "u", "auth_url": "a", "state": "x"}
    await answers_to(fake_runtime, tmp_path, ELICITATION, oauth, on_elicitation=record, on_mcp_oauth_required=record)
    assert got == [
        {
            "serverName": "s",
            "message": "Name?",
            "mode": "form",
            "elicitationId": "e",
            "requestedSchema": {"type": "object"},
            "displayName": "S",
        },
        {"serverName": "s", "serverUrl": "u", "authUrl": "a", "state": "x"},
    ]


async def test_a_callback_of_the_host_may_take_options(fake_runtime: Any, tmp_path: Path) -> None:
    signals: list[bool] = []

    async def elicit(request: Any, options: Any) -> Any:
        signals.append(options.signal.is_set())
        return {"action": "decline"}

    (answer,) = await answers_to(fake_runtime, tmp_path, ELICITATION, on_elicitation=elicit)
    assert answer["response"] == {"action": "decline"} and signals == [False]


OAUTH: list[tuple[Any, Any]] = [
    ({"access_token": "t"}, {"token": {"access_token": "t"}}),
    ({"token": {"access_token": "t"}}, {"token": {"access_token": "t"}}),
    ({"callbackUrl": "http://x/?code=1"}, {"callbackUrl": "http://x/?code=1"}),
    ({"code": "1", "state": "2"}, {"code": "1", "state": "2"}),
    (None, None),
]


@pytest.mark.parametrize(("value", "expected"), OAUTH)
async def test_oauth_resolutions(value: Any, expected: Any, fake_runtime: Any, tmp_path: Path) -> None:
    request = {"subtype": "mcp_oauth_required", "server_name": "s", "server_url": "u", "auth_url": "a", "state": "x"}
    (answer,) = await answers_to(fake_runtime, tmp_path, request, on_mcp_oauth_required=returning(value))
    assert answer["subtype"] == "success" and answer["response"] == expected


async def test_auth_expired_is_called_at_most_once(fake_runtime: Any, tmp_path: Path) -> None:
    reasons: list[Any] = []

    async def expired(reason: str) -> str:
        reasons.append(reason)
        return "fresh"

    request = {"subtype": "auth_expired", "reason": "401"}
    first, second = await answers_to(fake_runtime, tmp_path, request, request, on_auth_expired=expired)
    assert reasons == ["401"]
    assert first["response"] == {"access_token": "fresh"} and second["response"] == {}


async def test_auth_expired_may_take_nothing(fake_runtime: Any, tmp_path: Path) -> None:
    called = []
    await answers_to(
        fake_runtime, tmp_path, {"subtype": "auth_expired", "reason": "401"}, on_auth_expired=lambda: called.append(1)
    )
    assert called == [1]


async def test_callbacks_run_side_by_side(fake_runtime: Any) -> None:
    from qoder_agent_sdk import QoderAgentOptions, QoderSDKClient

    script = (
        "handshake()\nfor number in range(3):\n"
        "    ask(f'r{number}', subtype='can_use_tool', tool_name=str(number), input={}, tool_use_id='t')\n"
        "for _ in range(3):\n    read()\nresult()\nwait_for_end()"
    )
    running, together = [0], anyio.Event()

    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultAllow:
        running[0] += 1
        if running[0] == 3:
            together.set()
        await together.wait()
        return PermissionResultAllow()

    options = QoderAgentOptions(cli_path=fake_runtime(script), can_use_tool=can_use_tool)
    with anyio.fail_after(60):
        async with QoderSDKClient(options) as client:
            async for _message in client.receive_response():
                pass
    assert running == [3]
