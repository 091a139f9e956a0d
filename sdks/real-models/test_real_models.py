"""Our program with a real model: text, streaming, a tool loop, cancellation and a prompt that is too long, over all three
wire protocols, at llama.cpp's own server and through LiteLLM's proxy.

The model has 135 million parameters. What it says is of no interest; that it is said, counted, called for and stopped is.
"""

from __future__ import annotations

import json
import signal

from conftest import SHORT, Program, Server, wait_until


def test_text_and_its_tokens(program: Program) -> None:
    turn = program.run("--tools", "", prompt="Say hi.")
    assert turn.code == 0, turn.errors
    result = turn.result
    assert result["subtype"] == "success" and result["result"].strip(), result
    usage = result["usage"]
    assert usage["output_tokens"] > 0, usage
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] > 0, usage
    assert result["modelUsage"]["smol"]["outputTokens"] == usage["output_tokens"]


def test_a_reply_arrives_in_pieces(program: Program) -> None:
    turn = program.run("--tools", "", "--include-partial-messages", prompt="Say hello.")
    events = [message["event"] for message in turn.messages if message["type"] == "stream_event"]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start" and "message_stop" in kinds, kinds
    pieces = [
        event["delta"]["text"]
        for event in events
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta"
    ]
    assert len(pieces) > 1, pieces
    assert "".join(pieces) == "".join(block["text"] for block in turn.blocks("text"))


def test_a_tool_is_called_and_its_result_is_read(program: Program) -> None:
    turn = program.run("--tools", "ExitWorktree", "--permission-mode", "bypassPermissions", prompt="Please do five.")
    assert turn.code == 0, turn.errors
    calls, results = turn.blocks("tool_use"), turn.blocks("tool_result")
    assert [call["name"] for call in calls] == ["ExitWorktree"], turn.messages
    assert calls[0]["input"]["action"] in ("keep", "remove"), calls
    assert [result["tool_use_id"] for result in results] == [calls[0]["id"]]
    assert "not in a worktree" in results[0]["content"], results
    # The model speaks again after it has read the result.
    assert turn.messages[-2]["type"] == "assistant" and turn.result["result"].strip(), turn.messages
    assert turn.result["num_turns"] == 2


def test_an_interrupt_frees_the_server(program: Program, server: Server) -> None:
    wait_until("the server is free", server.is_free)
    program.settings["model"]["maxOutputTokens"] = 2000
    process = program.start("--tools", "", "--include-partial-messages", prompt="Write a long story about a dog.")
    assert process.stdout is not None
    result = None
    interrupted = False
    for line in process.stdout:
        message = json.loads(line)
        is_piece = message["type"] == "stream_event" and message["event"]["type"] == "content_block_delta"
        if is_piece and not interrupted:
            assert not server.is_free(), "it is in the middle of the reply"
            process.send_signal(signal.SIGINT)
            interrupted = True
        if message["type"] == "result":
            result = message
    assert process.wait() == 130
    assert result is not None and result["terminal_reason"] == "aborted_streaming", result
    wait_until("the server is free again", server.is_free)
    program.settings["model"]["maxOutputTokens"] = SHORT
    assert program.run("--tools", "", prompt="Say hi.").code == 0


def test_a_prompt_that_is_too_long_is_an_error_that_says_so(program: Program) -> None:
    turn = program.run("--tools", "", prompt="Hi.", system="word " * 12_000)
    assert turn.code != 0
    result = turn.result
    assert result["is_error"] and result["subtype"] == "error_during_execution", result
    assert "context" in result["errors"][0], result
    assert "12017" in result["errors"][0] or "tokens" in result["errors"][0], result
    retries = [message for message in turn.messages if message.get("subtype") == "api_retry"]
    assert not retries, "asking again would not help"
    failed = [message for message in turn.messages if message["type"] == "assistant"]
    assert [message.get("error") for message in failed] == ["invalid_request"], failed
