"""`can_use_tool` in sessions with the real runtime.

The model follows a playbook that asks for changes; the callback decides about them.
What the SDK answers word for word is in `test_callbacks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from support.asking import drain
from support.looking import call, result_of, results_by_tool, run, text_of

from qoder_agent_sdk import (
    AssistantMessage,
    PermissionResultAllow,
    PermissionResultDeny,
    QoderSDKClient,
    ToolPermissionContext,
)

pytestmark = pytest.mark.anyio

WRITE = call("Write", file_path="new.txt", content="from the model")


def turns(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "Done."}]


async def test_allow_runs_with_the_original_arguments(scripted: Any, project: Path) -> None:
    asked: list[tuple[str, dict[str, Any], ToolPermissionContext]] = []

    async def can_use_tool(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow:
        asked.append((name, arguments, context))
        return PermissionResultAllow()

    await run("go", scripted(*turns(WRITE), can_use_tool=can_use_tool))
    assert (project / "new.txt").read_text() == "from the model"
    ((name, arguments, context),) = asked
    assert (name, arguments) == ("Write", WRITE["input"])
    assert context.tool_use_id and context.title and context.display_name and context.decision_reason
    assert context.agent_id is None and context.suggestions


async def test_allow_may_replace_the_arguments(scripted: Any, project: Path) -> None:
    async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input={**arguments, "content": "from the host"})

    await run("go", scripted(*turns(WRITE), can_use_tool=can_use_tool))
    assert (project / "new.txt").read_text() == "from the host"


async def test_deny_tells_the_model_why(scripted: Any, project: Path) -> None:
    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="not in this project")

    messages = await run("go", scripted(*turns(WRITE), can_use_tool=can_use_tool))
    result = results_by_tool(messages)["Write"]
    assert result.is_error is True and "not in this project" in text_of(result)
    assert not (project / "new.txt").exists()
    assert result_of(messages).permission_denials[0]["tool_name"] == "Write"


async def test_deny_with_interrupt_ends_the_turn(scripted: Any) -> None:
    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="stop here", interrupt=True)

    async with QoderSDKClient(scripted(*turns(WRITE), can_use_tool=can_use_tool)) as client:
        await client.query("go")
        messages = await drain(client)
    assert result_of(messages).result != "Done."
    assert len([message for message in messages if isinstance(message, AssistantMessage)]) == 1


async def test_a_callback_that_raises_grants_nothing_and_breaks_nothing(scripted: Any, project: Path) -> None:
    async def can_use_tool(name: str, arguments: Any, context: Any) -> Any:
        raise RuntimeError("the approval service is down")

    messages = await run("go", scripted(*turns(WRITE), can_use_tool=can_use_tool))
    assert not (project / "new.txt").exists()
    assert "the approval service is down" in text_of(results_by_tool(messages)["Write"])
    assert result_of(messages).result == "Done."


async def test_what_is_allowed_already_is_not_asked(scripted: Any, project: Path) -> None:
    (project / "a.txt").write_text("contents")
    asked = []

    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultDeny:
        asked.append(name)
        return PermissionResultDeny(message="no")

    options = scripted(
        *turns(call("Read", file_path="a.txt"), WRITE), allowed_tools=["Read"], can_use_tool=can_use_tool
    )
    results = results_by_tool(await run("go", options))
    assert asked == ["Write"] and "contents" in text_of(results["Read"])


async def test_a_slow_decision_is_waited_for(scripted: Any, project: Path) -> None:
    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultAllow:
        await anyio.sleep(1)
        return PermissionResultAllow()

    await run("go", scripted(*turns(WRITE), can_use_tool=can_use_tool))
    assert (project / "new.txt").exists()


async def test_returning_a_suggestion_ends_the_questions(scripted: Any, project: Path) -> None:
    asked = []

    async def can_use_tool(name: str, arguments: Any, context: ToolPermissionContext) -> PermissionResultAllow:
        asked.append(name)
        return PermissionResultAllow(updated_permissions=context.suggestions)

    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [WRITE]},
        {"when": {"turn": 2}, "toolCalls": [call("Write", file_path="other.txt", content="x")]},
        {"text": "Done."},
        can_use_tool=can_use_tool,
    )
    await run("go", options)
    assert asked == ["Write"] and (project / "other.txt").exists()


async def test_an_interrupt_sets_the_signal_of_a_waiting_question(scripted: Any) -> None:
    asked, signalled = anyio.Event(), anyio.Event()

    async def can_use_tool(name: str, arguments: Any, context: Any) -> PermissionResultAllow:
        asked.set()
        await context.signal.wait()
        signalled.set()
        return PermissionResultAllow()

    async with QoderSDKClient(scripted(*turns(WRITE), can_use_tool=can_use_tool)) as client:
        await client.query("go")
        with anyio.fail_after(60):
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    await asked.wait()
                    await client.interrupt()
            await signalled.wait()
