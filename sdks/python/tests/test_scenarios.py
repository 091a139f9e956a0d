"""The scenarios that all SDKs share: what a user sees, described once in `sdks/scenarios/scenarios.json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import (
    AssistantMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    QoderAgentOptions,
    QoderSDKClient,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)

pytestmark = pytest.mark.anyio


def repository() -> Path:
    """Where the scenarios are."""
    return Path(os.environ.get("QODER_SDK_REPOSITORY", Path(__file__).resolve().parents[3]))


SCENARIOS: list[dict[str, Any]] = json.loads((repository() / "sdks/scenarios/scenarios.json").read_text())


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

        return HookMatcher(matcher=entry.get("matcher"), hooks=[hook])

    return {event: [made(entry) for entry in entries] for event, entries in described.items()}


def seen(messages: list[Any]) -> list[dict[str, Any]]:
    """What the messages say, in the scenario's words."""
    said: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
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
            and all(fits(*pair) for pair in zip(expected, actual))
        )
    return bool(expected == actual)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
async def test_scenario(scenario: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QODER_CONFIG_DIR", str(tmp_path / "config"))
    project = tmp_path / "project"
    project.mkdir()
    for name, text in scenario.get("files", {}).items():
        (project / name).write_text(text)
    playbook = tmp_path / "playbook.json"
    playbook.write_text(json.dumps({"replies": scenario["playbook"]}))
    others = dict(scenario.get("options", {}))
    if "servers" in scenario:
        others["mcp_servers"] = {name: server(name, tools) for name, tools in scenario["servers"].items()}
    if "can_use_tool" in scenario:
        others["can_use_tool"] = permission_callback(scenario["can_use_tool"])
    if "hooks" in scenario:
        others["hooks"] = hooks(scenario["hooks"])
    options = QoderAgentOptions(model=f"scripted:{playbook}", cwd=project, **others)
    messages: list[Any] = []
    async with QoderSDKClient(options=options) as client:
        for prompt in scenario["prompts"]:
            await client.query(prompt)
            messages.extend([message async for message in client.receive_response()])
    said = seen(messages)
    assert fits(scenario["expect"], said), json.dumps(said, indent=1)
    for name, content in scenario.get("left", {}).items():
        path = project / name
        assert (path.read_text() if path.exists() else None) == content, name
