"""An unmodified client of a sibling program works with our program: one-shot and streamed queries, a client with several
turns, tools in its process, permission callbacks, hooks, control requests, errors and stored sessions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    get_session_messages,
    list_sessions,
    query,
    rename_session,
    tool,
)

pytestmark = pytest.mark.anyio


def call(turn: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A reply that calls a tool."""
    return {"when": {"turn": turn}, "toolCalls": [{"name": name, "input": arguments}]}


def texts(messages: list[Any]) -> list[str]:
    """What the model said."""
    blocks = [block for message in messages if isinstance(message, AssistantMessage) for block in message.content]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def results(messages: list[Any]) -> list[Any]:
    """What tools answered."""
    blocks = [block for message in messages if isinstance(message, UserMessage) for block in message.content]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(arguments: dict[str, Any]) -> dict[str, Any]:
    """A tool in the test's process."""
    return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}


async def test_one_shot(options: Any) -> None:
    messages = [message async for message in query(prompt="hello", options=options([{"text": "hi"}]))]
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init"
    assert texts(messages) == ["hi"]
    assert isinstance(messages[-1], ResultMessage) and messages[-1].result == "hi" and not messages[-1].is_error


async def test_a_stream_of_prompts(options: Any) -> None:
    async def prompts() -> Any:
        for text in ("one", "two"):
            yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}

    stream = query(prompt=prompts(), options=options([{"text": "answer", "repeat": True}]))
    messages = [message async for message in stream]
    assert sum(isinstance(message, ResultMessage) for message in messages) == 2


async def test_partial_messages(options: Any) -> None:
    stream = query(prompt="hello", options=options([{"text": "a longer text"}], include_partial_messages=True))
    events = [message.event["type"] async for message in stream if isinstance(message, StreamEvent)]
    assert events[0] == "message_start" and events[-1] == "message_stop" and "content_block_delta" in events


async def test_tools_in_the_process(options: Any) -> None:
    server = create_sdk_mcp_server(name="calc", version="1.0.0", tools=[add])
    made = options(
        [call(1, "mcp__calc__add", {"a": 1, "b": 2}), {"when": {"lastToolResultContains": "3"}, "text": "three"}],
        mcp_servers={"calc": server},
        allowed_tools=["mcp__calc__add"],
    )
    messages = [message async for message in query(prompt="add", options=made)]
    assert "mcp__calc__add" in messages[0].data["tools"]
    assert results(messages) == ["3"] and texts(messages) == ["three"]


async def test_a_permission_callback_decides(options: Any, project: Path) -> None:
    asked = []

    async def may(name: str, arguments: dict[str, Any], context: Any) -> Any:
        asked.append((name, context.tool_use_id is not None))
        if arguments["file_path"].endswith("no.txt"):
            return PermissionResultDeny(message="not that one")
        return PermissionResultAllow(updated_input={**arguments, "content": "changed"})

    made = options(
        [
            call(1, "Write", {"file_path": str(project / "no.txt"), "content": "x"}),
            call(2, "Write", {"file_path": str(project / "yes.txt"), "content": "x"}),
            {"text": "done"},
        ],
        can_use_tool=may,
    )
    async with ClaudeSDKClient(made) as client:
        await client.query("write")
        messages = [message async for message in client.receive_response()]
    assert asked == [("Write", True), ("Write", True)]
    assert results(messages)[0] == "not that one"
    assert (project / "yes.txt").read_text() == "changed" and not (project / "no.txt").exists()
    assert [denial["tool_name"] for denial in messages[-1].permission_denials] == ["Write"]


async def test_a_callback_that_raises_denies(options: Any, project: Path) -> None:
    async def may(*_: Any) -> Any:
        raise ValueError("no opinion")

    made = options([call(1, "Write", {"file_path": str(project / "a"), "content": "x"}), {"text": "done"}], can_use_tool=may)
    async with ClaudeSDKClient(made) as client:
        await client.query("write")
        messages = [message async for message in client.receive_response()]
    assert "no opinion" in results(messages)[0] and not (project / "a").exists()


async def test_hooks(options: Any, project: Path) -> None:
    seen = []

    async def pre(data: Any, tool_use_id: str | None, context: Any) -> Any:
        seen.append((data["hook_event_name"], data["tool_name"]))
        denied = "made" in data["tool_input"]["command"]
        decision = {"permissionDecision": "deny" if denied else "allow", "permissionDecisionReason": "because"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    made = options(
        [call(1, "Bash", {"command": "touch made"}), call(2, "Bash", {"command": "touch other"}), {"text": "done"}],
        hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[pre])]},
    )
    messages = [message async for message in query(prompt="go", options=made)]
    assert seen == [("PreToolUse", "Bash")] * 2
    assert "because" in results(messages)[0]
    assert (project / "other").exists() and not (project / "made").exists()


async def test_several_turns_and_control_requests(options: Any) -> None:
    made = options([{"when": {"turn": 1}, "text": "one"}, {"when": {"turn": 2}, "text": "two"}])
    async with ClaudeSDKClient(made) as client:
        info = await client.get_server_info()
        assert info is not None and info["output_style"] == "default"
        await client.query("first")
        assert texts([message async for message in client.receive_response()]) == ["one"]
        await client.set_permission_mode("acceptEdits")
        await client.set_model(made.model)
        assert (await client.get_context_usage())["totalTokens"] > 0
        assert await client.get_mcp_status() == {"mcpServers": []}
        await client.query("second")
        assert texts([message async for message in client.receive_response()]) == ["two"]


async def test_an_interrupt(options: Any) -> None:
    made = options([{"when": {"contains": "again"}, "text": "back"}, {"text": "late", "delayMs": 600_000}])
    async with ClaudeSDKClient(made) as client:
        await client.query("wait")
        stream = client.receive_messages()
        async for message in stream:
            if isinstance(message, SystemMessage):
                break
        await client.interrupt()
        result = [message async for message in client.receive_response()][-1]
        assert result.is_error and result.subtype == "error_during_execution"
        await client.query("again")
        assert texts([message async for message in client.receive_response()]) == ["back"]


async def test_a_failed_run_raises_after_its_result(options: Any) -> None:
    messages = []
    with pytest.raises(Exception) as raised:
        async for message in query(prompt="x", options=options([{"error": {"status": 401, "message": "bad key"}}])):
            messages.append(message)
    assert isinstance(messages[-1], ResultMessage) and messages[-1].is_error
    assert "bad key" in str(raised.value)


async def test_a_session_is_resumed_listed_and_renamed(options: Any, project: Path) -> None:
    replies = [{"when": {"turn": 1}, "text": "one"}, {"when": {"turn": 2}, "text": "two"}]
    first = [message async for message in query(prompt="hello there", options=options(replies))][-1]
    again = [message async for message in query(prompt="more", options=options(replies, resume=first.session_id))][-1]
    assert (again.session_id, again.result) == (first.session_id, "two")
    os.environ["CLAUDE_CONFIG_DIR"] = os.environ["QODER_CONFIG_DIR"]
    try:
        listed = list_sessions(directory=str(project))
        assert [(session.session_id, session.first_prompt) for session in listed] == [(first.session_id, "hello there")]
        kinds = [message.type for message in get_session_messages(first.session_id, directory=str(project))]
        assert kinds == ["user", "assistant", "user", "assistant"]
        rename_session(first.session_id, "A title", directory=str(project))
        assert list_sessions(directory=str(project))[0].custom_title == "A title"
    finally:
        del os.environ["CLAUDE_CONFIG_DIR"]
    third = [message async for message in query(prompt="x", options=options([{"text": "ok", "repeat": True}], resume="A title"))][-1]
    assert third.session_id == first.session_id


async def test_an_answer_in_a_shape(options: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    replies = [{"when": {"turn": 1}, "text": "It is seven."}, call(2, "StructuredOutput", {"n": 7})]
    made = options(replies, output_format={"type": "json_schema", "schema": schema}, betas=["context-1m-2025-08-07"])
    result = [message async for message in query(prompt="how many?", options=made)][-1]
    assert (result.subtype, result.structured_output) == ("success", {"n": 7})


async def test_what_a_run_may_spend(options: Any) -> None:
    replies = [{"toolCalls": [{"name": "Glob", "input": {"pattern": "*"}}], "repeat": True}]
    messages = []
    with pytest.raises(Exception) as raised:
        made = options(replies, task_budget={"total": 10}, max_budget_usd=0.5)
        async for message in query(prompt="go", options=made):
            messages.append(message)
    assert messages[-1].subtype == "error_max_task_budget"
    assert "tokens of the task" in str(raised.value)


async def test_a_session_goes_on_from_an_earlier_message(options: Any) -> None:
    replies = [{"when": {"contains": "two"}, "text": "second"}, {"text": "answer", "repeat": True}]
    first = [message async for message in query(prompt="one", options=options(replies))]
    answer = next(message.uuid for message in first if isinstance(message, AssistantMessage))
    resumed = {"resume": first[-1].session_id}
    [message async for message in query(prompt="two", options=options(replies, **resumed))]
    made = options([{"when": {"turn": 2}, "text": "other way"}], resume_session_at=answer, **resumed)
    assert texts([message async for message in query(prompt="three", options=made)]) == ["other way"]
    with pytest.raises(Exception) as raised:
        refused = options(replies, resume_session_at=answer, resume_drops_turn=first[-1].session_id, **resumed)
        [message async for message in query(prompt="four", options=refused)]
    assert "Resume rejected by --resume-drops-turn:" in str(raised.value)
