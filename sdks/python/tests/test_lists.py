"""What a session has, as lists, and the changes that go with them, with the real runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import (
    OptionValueError,
    PermissionRuleValue,
    PermissionUpdate,
    QoderSDKClient,
    ResultMessage,
)

pytestmark = pytest.mark.anyio

DONE = {"text": "done", "repeat": True}


async def test_lists_say_what_the_session_has(scripted: Any, project: Path) -> None:
    async with QoderSDKClient(scripted(DONE)) as client:
        tools = {row["name"]: row for row in await client.list_tools()}
        assert tools["Read"]["annotations"]["readOnly"] is True
        assert {"Explore"} <= {row["name"] for row in await client.list_agents()}
        assert await client.list_hooks() == []
        assert isinstance(await client.list_skills(), list)
        assert isinstance(await client.list_memory(), list)


async def test_rules_that_are_changed_are_listed(scripted: Any, project: Path) -> None:
    rule = PermissionRuleValue("Bash", "git push:*")
    deny = PermissionUpdate(type="addRules", rules=[rule], behavior="deny", destination="session")
    async with QoderSDKClient(scripted(DONE)) as client:
        await client.update_permissions([deny, {"type": "setMode", "mode": "plan", "destination": "session"}])
        listed = await client.list_permission_rules()
        assert listed["mode"] == "plan"
        assert ("deny", "Bash(git push:*)") in [(row["behavior"], row["rule"]) for row in listed["rules"]]
        with pytest.raises(OptionValueError, match="allow_dangerously_skip_permissions"):
            await client.update_permissions([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}])


async def test_a_command_of_the_user_runs_without_a_question_and_a_denial_holds(scripted: Any, project: Path) -> None:
    options = scripted(DONE, disallowed_tools=["Bash(rm:*)"])
    async with QoderSDKClient(options) as client:
        await client.run_command("echo made > made.txt && cat made.txt")
        results = [message async for message in client.receive_response() if isinstance(message, ResultMessage)]
        assert [(one.is_error, (one.result or "").strip()) for one in results] == [(False, "made")]
        await client.run_command("rm made.txt")
        results = [message async for message in client.receive_response() if isinstance(message, ResultMessage)]
        assert [one.is_error for one in results] == [True]
        assert (project / "made.txt").exists()
