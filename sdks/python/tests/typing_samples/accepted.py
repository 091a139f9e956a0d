"""What a typed program may write; type checkers pass all of it. Nothing here is run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import ToolAnnotations

from qoder_agent_sdk import (
    AgentDefinition,
    FurtherHookEvent,
    HookCallbackOptions,
    HookEvent,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    McpSdkServerConfig,
    McpServerConfig,
    McpStdioServerConfig,
    ModelPolicyContext,
    ModelPolicyResult,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PreToolUseHookInput,
    QoderAgentOptions,
    QoderSDKClient,
    ResultMessage,
    SystemMessage,
    ToolHandlerResult,
    ToolInvocationContext,
    ToolPermissionContext,
    create_sdk_mcp_server,
    query,
    tool,
)


async def loose(inp: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
    return {}


async def record(inp: PreToolUseHookInput, tool_use_id: str | None, context: HookCallbackOptions) -> HookJSONOutput:
    return HookJSONOutput(decision="block", reason=inp.tool_name)


async def any_input(inp: HookInput, tool_use_id: str | None, context: HookCallbackOptions) -> HookJSONOutput:
    return HookJSONOutput(continue_=not context.signal.is_set())


async def as_dicts(inp: dict[str, Any], tool_use_id: str | None, context: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": inp["hook_event_name"]}}


async def observer(inp: PreToolUseHookInput, tool_use_id: str | None, context: HookCallbackOptions) -> None:
    print(inp.tool_input)


QoderAgentOptions(hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[loose])]})
QoderAgentOptions(
    hooks={
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[record, any_input, observer])],
        "PostToolUse": [HookMatcher(hooks=[as_dicts], timeout=5, on_failure="block")],
        "Stop": [HookMatcher(hooks=[any_input])],
    }
)
QoderAgentOptions(hooks={"Notification": [HookMatcher(hooks=[loose])], "Stop": [HookMatcher(hooks=[loose])]})
QoderAgentOptions(hooks={"Elicitation": [HookMatcher(hooks=[as_dicts])]})
documented: dict[HookEvent, list[HookMatcher]] = {"Stop": [HookMatcher(hooks=[loose])]}
QoderAgentOptions(hooks=documented)
wider: dict[HookEvent | FurtherHookEvent, list[HookMatcher]] = {"Setup": [HookMatcher(hooks=[loose])]}
QoderAgentOptions(hooks=wider)


@tool("add", "Adds.", {"a": int, "b": int}, annotations=ToolAnnotations(readOnlyHint=True))
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("typed", "Has a typed result.", {})
async def typed(args: dict[str, Any], context: ToolInvocationContext) -> ToolHandlerResult:
    return {"content": [{"type": "text", "text": "done"}], "is_error": False}


async def can_use_tool(name: str, given: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    return PermissionResultAllow() if name == "Read" else PermissionResultDeny(message="no")


async def resolve(context: ModelPolicyContext) -> ModelPolicyResult:
    return {"model": "offline" if context["purpose"] == "main" else "lite"}


def resolve_at_once(context: ModelPolicyContext) -> ModelPolicyResult:
    return {"model": "offline", "parameters": {"contextWindow": 1000}}


ours = create_sdk_mcp_server(name="calc", tools=[add, typed])
servers = {"calc": ours}
stdio: McpStdioServerConfig = {"command": "server", "args": ["--stdio"]}
foreign: McpSdkServerConfig = {"type": "sdk", "name": "low", "instance": Server("low")}
mixed: dict[str, McpServerConfig] = {"calc": ours, "out": stdio, "low": foreign}
variables = {"A": "1"}
agents = {"reviewer": AgentDefinition(description="Reviews.", prompt="Review.", tools=["Read"])}
folders = [Path("/tmp")]

QoderAgentOptions(mcp_servers=servers, env=variables, agents=agents, add_dirs=folders, can_use_tool=can_use_tool)
QoderAgentOptions(
    mcp_servers={"calc": ours, "out": stdio, "fast": {"type": "sdk", "name": "f", "instance": FastMCP("f")}}
)
QoderAgentOptions(mcp_servers=mixed, env={**os.environ, "B": None}, resolve_model=resolve, extra_args={"debug": None})
QoderAgentOptions(env=dict(os.environ), resolve_model=resolve_at_once, setting_sources=["project", "local"])


async def drive() -> None:
    async with create_connected_server_and_client_session(ours["instance"]) as client:
        print((await client.list_tools()).tools[0].name)


async def prompts() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": "hello"}}


async def run() -> str | None:
    async for message in query(prompt=prompts(), options=QoderAgentOptions(max_turns=2)):
        if isinstance(message, SystemMessage) and message.subtype == "notice":
            print(message.data["message"])
        if isinstance(message, ResultMessage):
            return message.result
    async with QoderSDKClient(QoderAgentOptions()) as client:
        await client.query("hello")
        async for message in client.receive_response():
            print(message)
    return None
