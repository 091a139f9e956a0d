"""Facts of the document about permissions, each looked at in a session with the real runtime.

What a question gives the callback in rare cases: a subagent, a path outside, the end of planning;
who else may answer; and that every runtime name of a tool is one for all lists.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.looking import call, results_by_tool, run, text_of

from qoder_agent_sdk import (
    AgentDefinition,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    SystemMessage,
    ToolPermissionContext,
    create_sdk_mcp_server,
    tool,
)

pytestmark = pytest.mark.anyio

WRITE = call("Write", file_path="new.txt", content="from the model")

#: The list of built-in tools of the document.
RUNTIME_NAMES = """
Bash Read Edit Write Glob Grep WebFetch WebSearch Agent AskUserQuestion NotebookEdit TaskOutput TaskStop ExitPlanMode
EnterWorktree ExitWorktree Config TodoWrite ListMcpResources ReadMcpResource Mcp
""".split()


def turns(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "Done.", "repeat": True}]


class Asked:
    """A callback that allows everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, ToolPermissionContext]] = []

    async def __call__(self, name: str, arguments: Any, context: ToolPermissionContext) -> PermissionResultAllow:
        self.questions.append((name, context))
        return PermissionResultAllow()


async def offered(options: Any) -> set[str]:
    """The tools that the model is offered."""
    messages = await run("go", options)
    [opening] = [each for each in messages if isinstance(each, SystemMessage) and each.subtype == "init"]
    return set(opening.data["tools"])


async def test_all_21_runtime_names_are_usable_in_every_list(scripted: Any) -> None:
    async def hook(record: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        return {}

    reply = {"text": "Done.", "repeat": True}
    assert len(RUNTIME_NAMES) == 21
    assert await offered(scripted(reply)) >= set(RUNTIME_NAMES)
    assert await offered(scripted(reply, tools=RUNTIME_NAMES)) == set(RUNTIME_NAMES)
    assert not await offered(scripted(reply, tools=RUNTIME_NAMES, disallowed_tools=RUNTIME_NAMES))
    everywhere = scripted(
        reply,
        allowed_tools=RUNTIME_NAMES,
        agents={"all": AgentDefinition("Has all.", "You have all.", tools=RUNTIME_NAMES)},
        hooks={"PreToolUse": [HookMatcher(hooks=[hook], matcher=name) for name in RUNTIME_NAMES]},
    )
    assert await offered(everywhere) >= set(RUNTIME_NAMES)


async def test_allow_dangerously_skip_permissions_alone_changes_nothing(scripted: Any, project: Path) -> None:
    options = scripted(*turns(WRITE), allow_dangerously_skip_permissions=True)
    assert results_by_tool(await run("go", options))["Write"].is_error is True
    assert not (project / "new.txt").exists()


async def test_agent_id_is_the_subagent_initiating_the_call(scripted: Any) -> None:
    asked = Asked()
    started: list[str] = []

    async def hook(record: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        started.append(record.agent_id)
        return {}

    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [call("Agent", description="write", prompt="Write.")]},
        {"when": {"purpose": "subagent", "turn": 1}, "toolCalls": [WRITE]},
        {"when": {"purpose": "subagent"}, "text": "Written."},
        {"text": "Done.", "repeat": True},
        allowed_tools=["Agent"],
        can_use_tool=asked,
        hooks={"SubagentStart": [HookMatcher(hooks=[hook])]},
    )
    await run("go", options)
    [(name, context)] = asked.questions
    assert name == "Write" and [context.agent_id] == started


async def test_blocked_path_is_the_file_path_triggering_authorization(scripted: Any, project: Path) -> None:
    outside = project.parent / "outside.txt"
    outside.write_text("contents")
    asked = Asked()
    await run("go", scripted(*turns(call("Read", file_path=str(outside))), can_use_tool=asked))
    [(name, context)] = asked.questions
    assert (name, context.blocked_path) == ("Read", str(outside))
    assert context.decision_reason and context.decision_reason_type


async def test_exit_plan_mode_has_the_approval_details_when_exiting_plan_mode(scripted: Any, project: Path) -> None:
    asked = Asked()
    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [WRITE]},
        {"when": {"turn": 2}, "toolCalls": [call("ExitPlanMode", plan="1. Write it.")]},
        {"when": {"turn": 3}, "toolCalls": [WRITE]},
        {"text": "Done."},
        permission_mode="plan",
        can_use_tool=asked,
    )
    await run("go", options)
    (first, details), (second, context) = asked.questions
    assert (first, second) == ("ExitPlanMode", "Write"), "plan mode itself makes no real changes"
    assert details.exit_plan_mode is not None and details.exit_plan_mode["plan"] == "1. Write it."
    assert context.exit_plan_mode is None
    assert (project / "new.txt").exists()


async def test_permission_prompt_tool_name_is_an_mcp_tool_that_answers(scripted: Any, project: Path) -> None:
    @tool("answer", "Answers questions about permissions.", {"type": "object", "properties": {}})
    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["tool_name"] == "Write":
            decision: dict[str, Any] = {"behavior": "allow", "updatedInput": arguments["input"]}
        else:
            decision = {"behavior": "deny", "message": "the tool says no"}
        return {"content": [{"type": "text", "text": json.dumps(decision)}]}

    options = scripted(
        *turns(WRITE, call("Bash", command="touch made")),
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[answer])},
        permission_prompt_tool_name="mcp__desk__answer",
    )
    results = results_by_tool(await run("go", options))
    assert (project / "new.txt").exists() and not (project / "made").exists()
    assert "the tool says no" in text_of(results["Bash"])


async def test_disallowed_tools_cannot_be_lifted_by_the_callback_or_the_mode(scripted: Any, project: Path) -> None:
    asked = Asked()
    for more in ({"can_use_tool": asked}, {"allow_dangerously_skip_permissions": True, "permission_mode": "yolo"}):
        options = scripted(*turns(WRITE), disallowed_tools=["Write"], allowed_tools=["Write"], **more)
        assert results_by_tool(await run("go", options))["Write"].is_error is True
    assert asked.questions == [] and not (project / "new.txt").exists()


async def test_dont_ask_denies_what_is_not_pre_authorized_and_asks_nobody(scripted: Any, project: Path) -> None:
    async def never(name: str, arguments: Any, context: Any) -> PermissionResultDeny:
        raise AssertionError(f"asked about {name}")

    made = call("Bash", command="touch made")
    options = scripted(*turns(WRITE, made), permission_mode="dontAsk", allowed_tools=["Bash"], can_use_tool=never)
    results = results_by_tool(await run("go", options))
    assert results["Write"].is_error is True and not (project / "new.txt").exists()
    assert (project / "made").exists()
