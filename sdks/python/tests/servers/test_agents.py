"""Document 004, `AgentDefinition.mcpServers`: servers of the session by name, and servers for one agent alone.

The model follows a playbook; the servers are made with the official package.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.looking import call, results_by_tool, run, text_of
from support.real_servers import asking

from qoder_agent_sdk import AgentDefinition

pytestmark = pytest.mark.anyio

VARIABLE = "mcp__desk__variable"


def delegating(scripted: Any, agent: AgentDefinition, **options: Any) -> Any:
    """Options for a model that hands a task to the agent, which asks its server for a variable."""
    options.setdefault("allowed_tools", ["Agent", VARIABLE])
    return scripted(
        {"when": {"turn": 1}, "toolCalls": [call("Agent", description="ask", prompt="Ask.", subagent_type="clerk")]},
        {"when": {"purpose": "subagent", "turn": 1}, "toolCalls": [call(VARIABLE, name="FRUIT")]},
        {"when": {"purpose": "subagent", "lastToolResultContains": "pear"}, "text": "It is a pear."},
        {"when": {"purpose": "subagent"}, "text": "I do not know."},
        {"text": "Done.", "repeat": True},
        agents={"clerk": agent},
        **options,
    )


def clerk(*servers: Any) -> AgentDefinition:
    return AgentDefinition("Asks.", "You ask.", tools=[VARIABLE], mcpServers=list(servers))


async def answer(options: Any) -> Any:
    return results_by_tool(await run("go", options))["Agent"]


async def test_a_session_level_server_is_referenced_by_name(scripted: Any) -> None:
    server = {**asking(), "env": {"FRUIT": "pear"}}
    patience = {"QODER_MCP_START_WAIT_MS": "60000"}
    result = await answer(delegating(scripted, clerk("desk"), mcp_servers={"desk": server}, env=patience))
    assert "It is a pear." in text_of(result)


async def test_a_dedicated_server_is_waited_for_however_long_the_session_waits_for_its_own(scripted: Any) -> None:
    server = {**asking(), "env": {"FRUIT": "pear"}}
    impatience = {"QODER_MCP_START_WAIT_MS": "1"}
    result = await answer(delegating(scripted, clerk({"desk": server}), env=impatience))
    assert "It is a pear." in text_of(result)


async def test_a_dedicated_server_that_cannot_start_is_named_to_the_model(scripted: Any) -> None:
    result = await answer(delegating(scripted, clerk({"desk": {"command": "no-such-program-anywhere"}})))
    assert result.is_error is True
    assert "its server desk failed" in text_of(result) and "no-such-program-anywhere" in text_of(result)
