"""The scenarios that all SDKs share: what a user sees, described once in the files of `sdks/scenarios`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)

pytestmark = pytest.mark.anyio


#: The id of a prompt, by its number.
MESSAGE = "c0ffee00-0000-4000-8000-{:012}"

SCENARIOS: list[dict[str, Any]] = [
    scenario
    for name in ("scenarios", "around-the-turn", "definitions", "external-servers")
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


def permission_callback(answers: dict[str, Any]) -> Any:
    """A callback that answers as the scenario says."""

    async def may(tool_name: str, _: dict[str, Any], __: Any) -> Any:
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
                    name = names[block.tool_use_id]
                    said.append({"result_of": name, "text": text, "is_error": bool(block.is_error)})
        elif isinstance(message, ResultMessage):
            denied = [denial["tool_name"] for denial in message.permission_denials or []]
            end = {"end": message.subtype, "result": message.result, "errors": message.errors or [], "denied": denied}
            said.append({**end, "structured": message.structured_output})
    return said


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


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
async def test_scenario(scenario: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    if "can_use_tool" in scenario:
        others["can_use_tool"] = permission_callback(scenario["can_use_tool"])
    if "hooks" in scenario:
        others["hooks"] = hooks(scenario["hooks"])
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
            if isinstance(prompt, dict):
                messages.append(await rewound(client, prompt))
                continue
            await client.query(prompt, message_uuid=MESSAGE.format(number))
            messages.extend([message async for message in client.receive_response()])
    said = seen(messages)
    assert fits(scenario["expect"], said), json.dumps(said, indent=1)
    for name, content in scenario.get("left", {}).items():
        path = project / name
        assert (path.read_text() if path.exists() else None) == content, name
