"""Conversations with the real runtime: turns, streaming, interrupts, changes on the way.

The model follows a playbook, so that every turn has a known course and no test needs
the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from support.asking import drain
from support.looking import call, result_of, results_by_tool, run, text_of, texts_of

from qoder_agent_sdk import (
    AssistantMessage,
    QoderAgentOptions,
    QoderSDKClient,
    QueryResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

pytestmark = pytest.mark.anyio


async def test_a_text_prompt_gives_init_reply_and_result(scripted: Any, project: Path) -> None:
    messages = await run("hello", scripted({"text": "Hello to you."}))
    init, reply, result = messages
    assert isinstance(init, SystemMessage) and init.subtype == "init"
    assert init.data["cwd"] == str(project) and "Read" in init.data["tools"]
    assert isinstance(reply, AssistantMessage) and texts_of([reply]) == ["Hello to you."]
    assert isinstance(result, ResultMessage) and result.subtype == "success"
    assert result.result == "Hello to you." and result.session_id == init.data["session_id"] == reply.session_id


async def test_without_a_key_the_offline_model_answers(project: Path) -> None:
    assert "offline model" in str(result_of(await run("hello", QoderAgentOptions(cwd=project))).result)


async def test_several_prompts_of_an_iterable_are_all_answered(scripted: Any) -> None:
    async def prompts() -> Any:
        for text in ("first", "second"):
            yield {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}

    options = scripted(
        {"when": {"contains": "first"}, "text": "One."}, {"when": {"contains": "second"}, "text": "Two."}
    )
    assert "Two." in texts_of(await run(prompts(), options))


async def test_an_empty_iterable_ends_at_once(scripted: Any) -> None:
    async def nothing() -> Any:
        for each in ():
            yield each

    assert await run(nothing(), scripted({"text": "never"})) == []


async def test_a_client_keeps_the_state_between_turns(scripted: Any) -> None:
    options = scripted({"when": {"turn": 1}, "text": "One."}, {"when": {"turn": 2}, "text": "Two."})
    async with QoderSDKClient(options) as client:
        await client.query("first")
        first = await drain(client)
        await client.query("second")
        second = await drain(client)
    assert (texts_of(first), texts_of(second)) == (["One."], ["Two."])
    assert result_of(first).session_id == result_of(second).session_id


async def test_receive_messages_streams_several_turns(scripted: Any) -> None:
    results = 0
    async with QoderSDKClient(scripted({"text": "Yes.", "repeat": True})) as client:
        await client.query("first")
        async for message in client.receive_messages():
            if isinstance(message, ResultMessage):
                results += 1
                if results == 2:
                    break
                await client.query("second")
    assert results == 2


TEXT = 'Ünïcode 🦀 "quotes" \\ back\\slash \u2028 line\nnext\ttab ' + "x" * 100_000


async def test_text_survives_both_ways(scripted: Any) -> None:
    options = scripted({"when": {"contains": 'Ünïcode 🦀 "quotes"'}, "text": TEXT})
    assert result_of(await run(TEXT, options)).result == TEXT


async def test_partial_messages_add_up_to_the_reply(scripted: Any) -> None:
    text = "A reply that arrives in pieces."
    options = scripted({"text": text, "thinking": "Let me think.", "chunks": 5}, include_partial_messages=True)
    messages = await run("hello", options)
    events = [message.event for message in messages if isinstance(message, StreamEvent)]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert {"content_block_start", "content_block_delta", "content_block_stop", "message_delta"} <= set(kinds)
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    pieces = [delta["text"] for delta in deltas if delta["type"] == "text_delta"]
    assert "".join(pieces) == text and len(pieces) > 1
    assert any(delta["type"] == "thinking_delta" for delta in deltas)
    assert text in texts_of(messages)


async def test_many_partial_messages_arrive_complete_and_in_order(scripted: Any) -> None:
    words = " ".join(str(number) for number in range(20_000))
    options = scripted({"text": words, "chunks": 20_000}, include_partial_messages=True)
    pieces = []
    async for message in query(prompt="count", options=options):
        if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("type") == "text_delta":
            pieces.append(message.event["delta"]["text"])
    assert "".join(pieces) == words and len(pieces) >= 10_000


async def test_without_the_option_there_are_no_partial_messages(scripted: Any) -> None:
    assert not any(isinstance(message, StreamEvent) for message in await run("hello", scripted({"text": "Hi."})))


async def test_max_turns_ends_in_an_error_result(scripted: Any) -> None:
    options = scripted(
        {"toolCalls": [call("Bash", command="echo again")], "repeat": True}, allowed_tools=["Bash"], max_turns=2
    )
    got = []
    with pytest.raises(QueryResultError) as caught:
        async for message in query(prompt="loop", options=options):
            got.append(message)
    result = result_of(got)
    assert result.subtype == "error_max_turns" and result.is_error and result.result is None
    assert caught.value.subtype == "error_max_turns" and caught.value.session_id == result.session_id
    assert "`max_turns`" in str(result.errors) and "--max-turns" not in str(result.errors)


async def test_an_endpoint_that_fails_gives_an_error_result(scripted: Any) -> None:
    options = scripted({"error": {"status": 401, "message": "bad key"}})
    got = []
    with pytest.raises(QueryResultError, match="bad key"):
        async for message in query(prompt="hello", options=options):
            got.append(message)
    assert result_of(got).subtype == "error_during_execution"


async def test_a_failed_turn_leaves_the_client_usable(scripted: Any) -> None:
    options = scripted(
        {"when": {"contains": "second"}, "text": "Fine."},
        {"when": {"contains": "first"}, "error": {"status": 401, "message": "bad key"}},
    )
    async with QoderSDKClient(options) as client:
        await client.query("first")
        assert result_of(await drain(client)).is_error
        await client.query("second")
        assert texts_of(await drain(client)) == ["Fine."]


async def test_interrupting_a_tool_ends_the_turn_and_not_the_session(scripted: Any) -> None:
    options = scripted(
        {"when": {"contains": "first"}, "toolCalls": [call("Bash", command="sleep 600")]},
        {"when": {"contains": "second"}, "text": "Still here."},
        allowed_tools=["Bash"],
    )
    async with QoderSDKClient(options) as client:
        await client.query("first")
        with anyio.fail_after(60):
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    receipt = await client.interrupt()
                    assert receipt["still_queued"] == []
            await client.query("second")
            assert "Still here." in texts_of(await drain(client))


async def test_interrupting_a_generation(scripted: Any) -> None:
    options = scripted({"when": {"contains": "first"}, "text": "late", "delayMs": 600_000}, {"text": "Next."})
    async with QoderSDKClient(options) as client:
        await client.query("first")
        with anyio.fail_after(60):
            async for message in client.receive_response():
                if isinstance(message, SystemMessage) and message.subtype == "init":
                    await client.interrupt()
        assert isinstance(message, ResultMessage)


async def test_the_permission_mode_changes_at_runtime(scripted: Any, project: Path) -> None:
    options = scripted(
        {"when": {"contains": "first"}, "toolCalls": [call("Write", file_path="a.txt", content="x")]},
        {"when": {"turn": 2}, "text": "Denied."},
        {"when": {"contains": "second"}, "toolCalls": [call("Write", file_path="b.txt", content="x")]},
        {"text": "Written."},
    )
    async with QoderSDKClient(options) as client:
        await client.query("first")
        denied = results_by_tool(await drain(client))["Write"]
        assert denied.is_error and not (project / "a.txt").exists()
        await client.set_permission_mode("acceptEdits")
        await client.query("second")
        await drain(client)
    assert (project / "b.txt").read_text() == "x"


async def test_bypass_cannot_be_switched_on_without_the_guard(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Hi."})) as client:
        with pytest.raises(ValueError, match="allow_dangerously_skip_permissions"):
            await client.set_permission_mode("yolo")


async def test_the_model_changes_at_runtime(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Scripted."})) as client:
        await client.set_model("offline")
        await client.query("hello")
        assert "offline model" in texts_of(await drain(client))[0]


async def test_sessions_run_side_by_side(scripted: Any) -> None:
    options = scripted({"text": "Hi.", "repeat": True})
    identifiers: set[str] = set()

    async def one() -> None:
        identifiers.add(result_of(await run("hello", options)).session_id)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert len(identifiers) == 4


async def test_the_model_catalog_and_the_account(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Hi."})) as client:
        models = await client.get_available_models()
        assert all({"value", "displayName"} <= set(model) for model in models)
        assert isinstance(await client.list_byok_providers(), list)
        assert isinstance(await client.account_info(), dict)
        assert await client.get_usage_info() is None
        assert (await client.get_context_usage())["maxTokens"] > 0
        assert [agent["name"] for agent in client.supported_agents()]


async def test_a_system_prompt_and_extra_arguments_are_accepted(scripted: Any) -> None:
    options = scripted(
        {"text": "Hi."}, system_prompt="Be brief.", extra_args={"replay-user-messages": None}, add_dirs=["/tmp"]
    )
    replayed = [message for message in await run("hello", options) if isinstance(message, UserMessage)]
    assert len(replayed) == 1 and replayed[0].uuid
    assert replayed[0].content in ("hello", [TextBlock("hello")])


async def test_a_failing_command_is_an_error_result_that_the_model_sees(scripted: Any) -> None:
    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [call("Bash", command="exit 3")]},
        {"text": "It failed."},
        allowed_tools=["Bash"],
    )
    messages = await run("go", options)
    assert results_by_tool(messages)["Bash"].is_error is True
    assert "3" in text_of(results_by_tool(messages)["Bash"])
    assert result_of(messages).result == "It failed."


@pytest.mark.parametrize("forward", [False, True])
async def test_forward_subagent_text_brings_what_subagents_say(forward: bool, scripted: Any) -> None:
    options = scripted(
        {"when": {"turn": 1, "purpose": "main"}, "toolCalls": [call("Agent", description="look", prompt="Look.")]},
        {"when": {"purpose": "subagent", "turn": 1}, "text": "Let me see.", "toolCalls": [call("Glob", pattern="*")]},
        {"when": {"purpose": "subagent", "turn": 2}, "text": "I looked."},
        {"text": "Done.", "repeat": True},
        allowed_tools=["Agent"],
    )
    options.forward_subagent_text = forward
    messages = await run("go", options)
    of_subagent = [
        message for message in messages if isinstance(message, AssistantMessage) and message.parent_tool_use_id
    ]
    assert texts_of(of_subagent) == (["Let me see.", "I looked."] if forward else [])
    calls = [block for message in of_subagent for block in message.content if isinstance(block, ToolUseBlock)]
    assert [block.name for block in calls] == ["Glob"], "the stream reports its calls in any case"
    assert result_of(messages).result == "Done."
