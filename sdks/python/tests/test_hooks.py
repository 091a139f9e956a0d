"""Hooks in sessions with the real runtime.

The model follows a playbook; hooks watch, change and block what it does. What the SDK
answers word for word is in `test_callbacks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.looking import call, result_of, results_by_tool, run, text_of, texts_of

from qoder_agent_sdk import HookJSONOutput, HookMatcher, QueryResultError, query

pytestmark = pytest.mark.anyio

ECHO = call("Bash", command="echo original")


def turns(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "Done."}]


def hooks(**events: Any) -> dict[str, Any]:
    return {event: [HookMatcher(hooks=[callback])] for event, callback in events.items()}


def returning(output: Any, seen: list[Any] | None = None) -> Any:
    async def hook(record: Any, tool_use_id: str | None, context: Any) -> Any:
        if seen is not None:
            seen.append((record, tool_use_id))
        if isinstance(output, Exception):
            raise output
        return output

    return hook


def decision(behavior: str, **more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": behavior, **more}}


async def test_hooks_of_a_turn_are_called_in_order(scripted: Any, project: Path) -> None:
    seen: list[Any] = []
    names = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
    options = scripted(
        *turns(ECHO), allowed_tools=["Bash"], hooks=hooks(**{name: returning({}, seen) for name in names})
    )
    result = result_of(await run("go", options))
    assert [record["hook_event_name"] for record, _ in seen] == names
    for record, _ in seen:
        assert record.session_id == result.session_id and record.cwd == str(project)
        assert record.transcript_path.endswith(".jsonl")
    events = {record["hook_event_name"]: record for record, _ in seen}
    assert events["SessionStart"].source == "startup"
    assert events["UserPromptSubmit"].prompt == "go"
    assert events["PreToolUse"].tool_name == "Bash" and events["PreToolUse"].tool_input == ECHO["input"]
    assert "original" in str(events["PostToolUse"].tool_response)
    assert events["Stop"].stop_hook_active is False
    identifiers = [identifier for record, identifier in seen if record["hook_event_name"] == "PreToolUse"]
    assert identifiers == [events["PreToolUse"].tool_use_id]


async def test_a_denied_call_does_not_run_and_says_why(scripted: Any, project: Path) -> None:
    options = scripted(
        *turns(call("Bash", command="touch made")),
        allowed_tools=["Bash"],
        hooks=hooks(PreToolUse=returning(decision("deny", permissionDecisionReason="not today"))),
    )
    result = results_by_tool(await run("go", options))["Bash"]
    assert result.is_error is True and "not today" in text_of(result)
    assert not (project / "made").exists()


async def test_an_allowed_call_is_not_asked_about(scripted: Any, project: Path) -> None:
    options = scripted(
        *turns(call("Write", file_path="made", content="x")), hooks=hooks(PreToolUse=returning(decision("allow")))
    )
    await run("go", options)
    assert (project / "made").exists()


@pytest.mark.parametrize("output", [{"decision": "approve"}, HookJSONOutput(decision="approve")])
async def test_decision_approve_lets_a_call_run(output: Any, scripted: Any, project: Path) -> None:
    options = scripted(*turns(call("Write", file_path="made", content="x")), hooks=hooks(PreToolUse=returning(output)))
    await run("go", options)
    assert (project / "made").exists()


async def test_continue_none_is_equivalent_to_true(scripted: Any) -> None:
    output = HookJSONOutput(continue_=None, stop_reason="unused")
    names = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
    options = scripted(*turns(ECHO), allowed_tools=["Bash"], hooks=hooks(**{name: returning(output) for name in names}))
    assert result_of(await run("go", options)).result == "Done."


@pytest.mark.parametrize("order", [["approve", "block"], ["block", "approve"]])
async def test_of_conflicting_decisions_block_takes_priority(order: list[str], scripted: Any, project: Path) -> None:
    both = [HookMatcher(hooks=[returning({"decision": each, "reason": f"I {each}"})]) for each in order]
    made = call("Write", file_path="made", content="x")
    options = scripted(*turns(made), allowed_tools=["Write"], hooks={"PreToolUse": both})
    assert "I block" in text_of(results_by_tool(await run("go", options))["Write"])
    assert not (project / "made").exists()


async def test_deny_rules_beat_a_hook(scripted: Any) -> None:
    options = scripted(*turns(ECHO), disallowed_tools=["Bash"], hooks=hooks(PreToolUse=returning(decision("allow"))))
    assert results_by_tool(await run("go", options))["Bash"].is_error is True


async def test_the_strictest_hook_wins(scripted: Any) -> None:
    both = [
        HookMatcher(hooks=[returning(decision("allow")), returning(decision("deny", permissionDecisionReason="no"))])
    ]
    options = scripted(*turns(ECHO), allowed_tools=["Bash"], hooks={"PreToolUse": both})
    assert results_by_tool(await run("go", options))["Bash"].is_error is True


async def test_a_hook_may_change_the_input(scripted: Any) -> None:
    change = decision("allow", updatedInput={"command": "echo changed"})
    options = scripted(*turns(ECHO), allowed_tools=["Bash"], hooks=hooks(PreToolUse=returning(change)))
    assert "changed" in text_of(results_by_tool(await run("go", options))["Bash"])


async def test_a_matcher_chooses_the_tools(scripted: Any, project: Path) -> None:
    (project / "a.txt").write_text("contents")
    matcher = HookMatcher(matcher="Read|Grep", hooks=[returning(decision("deny"))])
    options = scripted(
        *turns(ECHO, call("Read", file_path="a.txt")), allowed_tools=["Bash", "Read"], hooks={"PreToolUse": [matcher]}
    )
    results = results_by_tool(await run("go", options))
    assert results["Read"].is_error is True and not results["Bash"].is_error


async def test_a_hook_may_replace_what_the_model_sees(scripted: Any) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "[removed]"}}
    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [ECHO]},
        {"when": {"lastToolResultContains": "[removed]"}, "text": "I saw nothing."},
        allowed_tools=["Bash"],
        hooks=hooks(PostToolUse=returning(output)),
    )
    assert result_of(await run("go", options)).result == "I saw nothing."


async def test_a_hook_may_add_to_the_prompt(scripted: Any) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Tuesday."}}
    options = scripted(
        {"when": {"contains": "It is Tuesday."}, "text": "Tuesday it is."},
        hooks=hooks(UserPromptSubmit=returning(output)),
    )
    assert result_of(await run("which day", options)).result == "Tuesday it is."


async def test_a_stop_hook_may_make_the_model_go_on(scripted: Any) -> None:
    states: list[bool] = []

    async def hook(record: Any, tool_use_id: Any, context: Any) -> Any:
        states.append(record.stop_hook_active)
        return {} if record.stop_hook_active else {"decision": "block", "reason": "You forgot the tests."}

    options = scripted(
        {"when": {"contains": "forgot the tests"}, "text": "Tests added."},
        {"when": {"turn": 1}, "text": "Done."},
        hooks=hooks(Stop=hook),
    )
    messages = await run("go", options)
    assert texts_of(messages) == ["Done.", "Tests added."] and states == [False, True]


async def test_continue_false_ends_the_run(scripted: Any) -> None:
    output = HookJSONOutput(continue_=False, stop_reason="enough")
    options = scripted(*turns(ECHO), allowed_tools=["Bash"], hooks=hooks(PostToolUse=returning(output)))
    got = []
    with pytest.raises(QueryResultError, match="enough") as caught:
        async for message in query(prompt="go", options=options):
            got.append(message)
    assert "Done." not in texts_of(got) and caught.value.error_code == 48716


async def test_a_failure_of_a_tool_is_told(scripted: Any) -> None:
    seen: list[Any] = []
    options = scripted(
        *turns(call("Bash", command="exit 3")),
        allowed_tools=["Bash"],
        hooks=hooks(PostToolUseFailure=returning({}, seen)),
    )
    await run("go", options)
    ((record, _),) = seen
    assert record.tool_name == "Bash" and record.error


async def test_a_permission_request_is_decided_by_a_hook(scripted: Any, project: Path) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
    options = scripted(
        *turns(call("Write", file_path="made", content="x")), hooks=hooks(PermissionRequest=returning(output))
    )
    await run("go", options)
    assert (project / "made").exists()


@pytest.mark.parametrize(("policy", "runs"), [("continue", True), ("block", False), (None, False)])
async def test_a_hook_that_fails_neither_allows_nor_breaks_the_session(policy: Any, runs: bool, scripted: Any) -> None:
    matcher = HookMatcher(hooks=[returning(RuntimeError("broken"))], on_failure=policy)
    options = scripted(*turns(ECHO), allowed_tools=["Bash"], hooks={"PreToolUse": [matcher]})
    messages = await run("go", options)
    assert ("original" in text_of(results_by_tool(messages)["Bash"])) is runs
    assert result_of(messages).result == "Done."
