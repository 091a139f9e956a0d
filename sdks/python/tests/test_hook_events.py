"""Every hook event of the document, in a session with the real runtime: when it comes, and with which fields.

The records are looked at as the document shows them: as attributes of their classes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import call, result_of, run

import qoder_agent_sdk
from qoder_agent_sdk import HookMatcher, QoderAgentOptions, QoderSDKClient

pytestmark = pytest.mark.anyio

ECHO = call("Bash", command="echo original")


def listening(options: QoderAgentOptions, *events: str) -> list[Any]:
    """Make the options listen to events; gives the list of their records."""
    records: list[Any] = []

    async def hook(record: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        records.append(record)
        return {}

    hooks: Any = {event: [HookMatcher(hooks=[hook])] for event in events}
    options.hooks = hooks
    return records


async def told(options: QoderAgentOptions, event: str, prompt: str = "go") -> Any:
    """The only record of an event in a run."""
    records = listening(options, event)
    await run(prompt, options)
    [record] = records
    assert type(record) is getattr(qoder_agent_sdk, f"{event}HookInput")
    assert record.hook_event_name == event and record["hook_event_name"] == event
    return record


def once(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "Done.", "repeat": True}]


async def test_every_record_has_session_id_transcript_path_and_cwd(scripted: Any, project: Path) -> None:
    options = scripted({"text": "hi"})
    records = listening(options, "UserPromptSubmit", "Stop")
    result = result_of(await run("go", options))
    assert len(records) == 2
    for record in records:
        assert (record.session_id, record.cwd) == (result.session_id, str(project))
        assert Path(record.transcript_path).name == f"{result.session_id}.jsonl"


async def test_pre_tool_use_has_permission_mode_tool_name_and_tool_input(scripted: Any) -> None:
    options = scripted(*once(ECHO), allowed_tools=["Bash"], permission_mode="acceptEdits")
    record = await told(options, "PreToolUse")
    assert (record.permission_mode, record.tool_name, record.tool_input) == ("acceptEdits", "Bash", ECHO["input"])


async def test_post_tool_use_has_tool_response(scripted: Any) -> None:
    record = await told(scripted(*once(ECHO), allowed_tools=["Bash"]), "PostToolUse")
    assert (record.tool_name, record.tool_input) == ("Bash", ECHO["input"])
    assert "original" in str(record.tool_response)


async def test_post_tool_use_failure_has_error_and_is_interrupt(scripted: Any) -> None:
    missing = call("Read", file_path="missing.txt")
    record = await told(scripted(*once(missing)), "PostToolUseFailure")
    assert (record.tool_name, record.tool_input) == ("Read", missing["input"])
    assert "missing.txt" in record.error and not record.is_interrupt


async def test_user_prompt_submit_has_the_prompt(scripted: Any) -> None:
    assert (await told(scripted({"text": "hi"}), "UserPromptSubmit", "what now?")).prompt == "what now?"


async def test_session_start_has_the_source(scripted: Any) -> None:
    options = scripted({"text": "hi", "repeat": True})
    first = await told(options, "SessionStart")
    assert first.source == "startup"
    options.resume = first.session_id
    assert (await told(options, "SessionStart")).source == "resume"


async def test_session_end_has_the_reason(scripted: Any) -> None:
    assert (await told(scripted({"text": "hi"}), "SessionEnd")).reason == "other"


async def test_stop_has_stop_hook_active(scripted: Any) -> None:
    seen = []

    async def hook(record: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        seen.append(record.stop_hook_active)
        return {} if record.stop_hook_active else {"decision": "block", "reason": "say goodbye first"}

    options = scripted({"when": {"turn": 1}, "text": "hello"}, {"when": {"contains": "goodbye"}, "text": "goodbye"})
    options.hooks = {"Stop": [HookMatcher(hooks=[hook])]}
    assert result_of(await run("hi", options)).result == "goodbye"
    assert seen == [False, True]


def with_agent(scripted: Callable[..., QoderAgentOptions]) -> QoderAgentOptions:
    asked = call("Agent", description="look", prompt="Look.", subagent_type="general-purpose")
    return scripted(
        {"when": {"turn": 1}, "toolCalls": [asked]},
        {"when": {"purpose": "subagent"}, "text": "I looked."},
        {"text": "Done.", "repeat": True},
        allowed_tools=["Agent"],
    )


async def test_subagent_start_has_agent_id_and_agent_type(scripted: Any) -> None:
    record = await told(with_agent(scripted), "SubagentStart")
    assert record.agent_id and record.agent_id != record.session_id and record.agent_type == "general-purpose"


async def test_subagent_stop_has_stop_hook_active(scripted: Any) -> None:
    assert (await told(with_agent(scripted), "SubagentStop")).stop_hook_active is False


def compacting(scripted: Callable[..., QoderAgentOptions]) -> QoderAgentOptions:
    usage = {"input_tokens": 95000, "output_tokens": 5}
    return scripted(
        {"when": {"purpose": "compact"}, "text": "All is well so far."},
        {"when": {"contains": "All is well so far."}, "text": "Done."},
        {"toolCalls": [call("Glob", pattern="*")], "usage": usage},
        settings={"model": {"contextWindow": 100000}},
    )


async def test_pre_compact_has_trigger_and_custom_instructions(scripted: Any) -> None:
    record = await told(compacting(scripted), "PreCompact")
    assert record.trigger == "auto" and not record.custom_instructions


async def test_post_compact_has_trigger_and_compact_summary(scripted: Any) -> None:
    record = await told(compacting(scripted), "PostCompact")
    assert record.trigger == "auto" and "All is well so far." in record.compact_summary


async def test_cwd_changed_has_old_cwd_and_new_cwd(scripted: Any, project: Path) -> None:
    (project / "inner").mkdir()
    options = scripted(*once(call("Bash", command="cd inner")), allowed_tools=["Bash"])
    record = await told(options, "CwdChanged")
    assert (record.old_cwd, record.new_cwd) == (str(project), str(project / "inner"))


async def test_instructions_loaded_has_load_reason(scripted: Any, project: Path) -> None:
    (project / "inner").mkdir()
    (project / "inner" / "AGENTS.md").write_text("Be kind.\n")
    (project / "inner" / "note.txt").write_text("buy milk\n")
    options = scripted(*once(call("Read", file_path="inner/note.txt")), extra_args={"trust": None})
    assert (await told(options, "InstructionsLoaded")).load_reason == "nested_traversal"


async def test_instructions_loaded_has_load_reason_path_glob_match(scripted: Any, project: Path) -> None:
    (project / ".qoder" / "rules").mkdir(parents=True)
    (project / ".qoder" / "rules" / "notes.md").write_text("---\npaths: ['*.txt']\n---\nBe brief.\n")
    (project / "note.txt").write_text("buy milk\n")
    options = scripted(*once(call("Read", file_path="note.txt")), extra_args={"trust": None})
    assert (await told(options, "InstructionsLoaded")).load_reason == "path_glob_match"


@pytest.mark.parametrize(("before", "event"), [(None, "add"), ("old\n", "change")])
async def test_file_changed_has_file_path_and_event(
    before: str | None, event: str, scripted: Any, project: Path
) -> None:
    path = project / "a.txt"
    calls = [call("Write", file_path="a.txt", content="new\n")]
    if before is not None:
        path.write_text(before)
    # A file that is there has to be read before it may be written.
    replies = [{"when": {"turn": 1}, "toolCalls": [call("Glob", pattern="*")]}]
    if before is not None:
        replies = [{"when": {"turn": 1}, "toolCalls": [call("Read", file_path="a.txt")]}]
    options = scripted(*replies, {"when": {"turn": 2}, "toolCalls": calls}, {"text": "Done."}, allowed_tools=["Write"])
    record = await told(options, "FileChanged")
    assert (record.file_path, record.event) == (str(path), event)


async def test_permission_request_has_tool_and_permission_suggestions(scripted: Any) -> None:
    write = call("Write", file_path="a.txt", content="x")
    record = await told(scripted(*once(write)), "PermissionRequest")
    assert (record.tool_name, record.tool_input) == ("Write", write["input"])
    assert isinstance(record.permission_suggestions, list)


async def test_a_hook_that_takes_too_long_is_withdrawn_and_its_failure_counts(scripted: Any, project: Path) -> None:
    withdrawn = []

    async def hook(record: Any, tool_use_id: str | None, context: Any) -> Any:
        # It hears of it by the signal, or by being cancelled while it waits; the signal is set either way.
        try:
            while not context["signal"].is_set():
                await anyio.sleep(0.01)
        finally:
            withdrawn.append((record.tool_name, context["signal"].is_set()))

    options = scripted(*once(call("Bash", command="touch a.txt")), allowed_tools=["Bash"])
    options.hooks = {"PreToolUse": [HookMatcher(hooks=[hook], timeout=1)]}
    async with QoderSDKClient(options) as client:
        await client.query("go")
        assert result_of([message async for message in client.receive_response()]).result == "Done."
        # The turn does not wait for a hook that was withdrawn.
        with anyio.fail_after(60):
            while not withdrawn:
                await anyio.sleep(0.01)
    assert withdrawn == [("Bash", True)] and not (project / "a.txt").exists()
