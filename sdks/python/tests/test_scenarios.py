"""The scenarios that all SDKs share: what a user sees, described once in the files of `sdks/scenarios`."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.real_servers import installed, own
from support.repository import repository

from qoder_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    QoderAgentOptions,
    QoderSDKClient,
    QoderSDKError,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)
from qoder_agent_sdk._process.binary import find_binary

pytestmark = pytest.mark.anyio


#: The id of a prompt, by its number.
MESSAGE = "c0ffee00-0000-4000-8000-{:012}"

#: The session of a scenario that resumes one.
SESSION = "5ce7a210-0000-4000-8000-000000000001"

#: The exit code of a run whose question waits.
WAITING = 54

#: Fields of system messages that are not compared; the README of the scenarios says why.
LEFT_OUT = frozenset(
    "type uuid session_id cwd model apiKeySource qodercli_version claude_code_version "
    "hook_id task_id output_file usage".split()
)

#: System messages that `system` does not have; the README of the scenarios says why.
OTHERS = ("notice", "mcp_status_change", "task_progress")

SCENARIOS: list[dict[str, Any]] = [
    scenario
    for name in ("scenarios", "questions", "around-the-turn", "notices", "definitions", "external-servers")
    for scenario in json.loads((repository() / "sdks/scenarios" / f"{name}.json").read_text())
]


def server(name: str, tools: dict[str, Any]) -> Any:
    """A server whose tools answer as the scenario says."""

    def made(tool_name: str, described: dict[str, Any]) -> Any:
        async def handler(_: dict[str, Any]) -> dict[str, Any]:
            if "raises" in described:
                raise RuntimeError(described["raises"])
            return dict(described["result"])

        from mcp.types import ToolAnnotations

        annotations = ToolAnnotations(**described["annotations"]) if "annotations" in described else None
        decorate = tool(tool_name, described["description"], described["input_schema"], annotations=annotations)
        return decorate(handler)

    return create_sdk_mcp_server(name=name, version="1.0.0", tools=[made(*each) for each in tools.items()])


def external(described: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a server outside of this program."""
    config = dict(described)
    if "own" in config:
        return {"command": installed("venv/bin/python"), "args": [own(config.pop("own")), "stdio"], **config}
    if "program" in config:
        return {"command": installed(config.pop("program")), **config}
    return config


def given(tool_name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> dict[str, Any]:
    """Everything that a permission callback is given, but the signal."""
    fields = {each.name: getattr(context, each.name) for each in dataclasses.fields(context) if each.name != "signal"}
    known = {name: value for name, value in fields.items() if value is not None}
    return {"tool": tool_name, "input": arguments, **known}


def permission_callback(answers: dict[str, Any], asked: list[dict[str, Any]], may_answer: anyio.Event) -> Any:
    """A callback that keeps what it is given, and answers as the scenario says."""

    async def may(tool_name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> Any:
        asked.append(given(tool_name, arguments, context))
        await may_answer.wait()
        answer = answers[tool_name]
        if "raises" in answer:
            raise RuntimeError(answer["raises"])
        if answer.get("deny"):
            return PermissionResultDeny(message=answer["message"], interrupt=answer.get("interrupt", False))
        return PermissionResultAllow(updated_input=answer.get("updated_input"))

    return may


def hooks(described: dict[str, Any]) -> dict[Any, list[HookMatcher]]:
    """Hooks that answer as the scenario says."""

    def made(entry: dict[str, Any]) -> HookMatcher:
        async def hook(*_: Any) -> Any:
            if "raises" in entry:
                raise RuntimeError(entry["raises"])
            return entry["output"]

        return HookMatcher(matcher=entry.get("matcher"), hooks=[hook], on_failure=entry.get("on_failure"))

    return {event: [made(entry) for entry in entries] for event, entries in described.items()}


async def park(prompt: str, model: str, project: Path) -> None:
    """Run a turn in print mode whose question waits in the session."""
    settings = json.dumps({"permissions": {"unattended": "park"}})
    command = [find_binary(None, {}), "-p", prompt, "--session-id", SESSION, "--model", model, "--settings", settings]
    finished = await anyio.run_process(command, cwd=project, check=False)
    assert finished.returncode == WAITING, (finished.stdout, finished.stderr)


async def rewound(client: QoderSDKClient, step: dict[str, Any]) -> dict[str, Any]:
    """Go back to a prompt; what came of it, in the scenario's words."""
    report = await client.rewind_files(MESSAGE.format(step["rewind_files"]), dry_run=step.get("dry_run", False))
    files = [Path(name).name for name in report["filesChanged"]]
    return {"rewound": files, "insertions": report["insertions"], "deletions": report["deletions"]}


def seen(messages: list[Any]) -> list[dict[str, Any]]:
    """What the messages say, in the scenario's words."""
    said: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        if isinstance(message, dict):
            said.append(message)
        elif getattr(message, "parent_tool_use_id", None):
            continue
        elif isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    said.append({"text": block.text})
                elif isinstance(block, ToolUseBlock):
                    names[block.id] = block.name
                    said.append({"tool": block.name, "input": block.input})
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    content = block.content
                    text = content if isinstance(content, str) else json.dumps(content)
                    name = names.get(block.tool_use_id)
                    said.append({"result_of": name, "text": text, "is_error": bool(block.is_error)})
        elif isinstance(message, ResultMessage):
            denied = [denial["tool_name"] for denial in message.permission_denials or []]
            end = {"end": message.subtype, "result": message.result, "errors": message.errors or [], "denied": denied}
            said.append({**end, "structured": message.structured_output})
    return said


def news(messages: list[Any]) -> list[dict[str, Any]]:
    """The system messages, without what differs from run to run."""
    of_system = [each for each in messages if isinstance(each, SystemMessage) and each.subtype not in OTHERS]
    return [{name: value for name, value in each.data.items() if name not in LEFT_OUT} for each in of_system]


def fits(expected: Any, actual: Any) -> bool:
    """True when what was said is what is expected; `~` at the start of a text means that it is contained."""
    if isinstance(expected, str) and expected.startswith("~"):
        return isinstance(actual, str) and expected[1:] in actual
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(fits(value, actual.get(key)) for key, value in expected.items())
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(fits(*pair) for pair in zip(expected, actual, strict=True))
        )
    return bool(expected == actual)


def fits_whole(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> bool:
    """Like `fits`, but every field must be named, except where the subtype stands alone."""
    pairs = zip(expected, actual, strict=False)
    named = all(set(one) == {"subtype"} or set(one) == set(other) for one, other in pairs)
    return named and fits(expected, actual)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
async def test_scenario(
    scenario: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("QODER_CONFIG_DIR", str(tmp_path / "config"))
    project = tmp_path / "project"
    project.mkdir()
    for name, text in scenario.get("files", {}).items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    others = dict(scenario.get("options", {}))
    if "playbook" in scenario:
        playbook = tmp_path / "playbook.json"
        playbook.write_text(json.dumps({"replies": scenario["playbook"]}))
        others["model"] = f"scripted:{playbook}"
    if scenario.get("trusted"):
        others["extra_args"] = {"trust": None}
    if "agents" in others:
        others["agents"] = {name: AgentDefinition(**each) for name, each in others["agents"].items()}
    if "plugins" in scenario:
        others["plugins"] = [{"type": "local", "path": str(project / name)} for name in scenario["plugins"]]
    if "servers" in scenario:
        others["mcp_servers"] = {name: server(name, tools) for name, tools in scenario["servers"].items()}
    if "external_servers" in scenario:
        others["mcp_servers"] = {name: external(each) for name, each in scenario["external_servers"].items()}
    if "elicitation" in scenario:

        async def on_elicitation(_: dict[str, Any]) -> Any:
            return scenario["elicitation"]

        others["on_elicitation"] = on_elicitation
    asked: list[dict[str, Any]] = []
    may_answer = anyio.Event()
    if "can_use_tool" in scenario:
        others["can_use_tool"] = permission_callback(scenario["can_use_tool"], asked, may_answer)
    if "hooks" in scenario:
        others["hooks"] = hooks(scenario["hooks"])
    if "parked" in scenario:
        await park(scenario["parked"], others["model"], project)
        others["resume"] = SESSION
    options = QoderAgentOptions(cwd=project, **others)
    if "fails" in scenario:
        with pytest.raises(QoderSDKError) as failed:
            async with QoderSDKClient(options=options):
                pass
        assert fits(scenario["fails"], str(failed.value)), str(failed.value)
        return
    messages: list[Any] = []
    async with QoderSDKClient(options=options) as client:
        for number, prompt in enumerate(scenario["prompts"], 1):
            if isinstance(prompt, dict) and "rewind_files" in prompt:
                messages.append(await rewound(client, prompt))
                continue
            if isinstance(prompt, str):
                await client.query(prompt, message_uuid=MESSAGE.format(number))
            may_answer.set()
            messages.extend([message async for message in client.receive_response()])
    said = seen(messages)
    assert fits(scenario["expect"], said), json.dumps(said, indent=1)
    reported = news(messages)
    each_turn = [{"subtype": "init"} for prompt in scenario["prompts"] if isinstance(prompt, str)]
    assert fits_whole(scenario.get("system", each_turn), reported), json.dumps(reported, indent=1)
    assert fits_whole(scenario.get("asked", []), asked), json.dumps(asked, indent=1)
    if "notices" in scenario:
        warned = [each.data for each in messages if isinstance(each, SystemMessage) and each.subtype == "notice"]
        assert fits(scenario["notices"], warned), json.dumps(warned, indent=1)
        logged = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert logged == [notice["message"] for notice in warned]
    for name, content in scenario.get("left", {}).items():
        path = project / name
        assert (path.read_text() if path.exists() else None) == content, name
