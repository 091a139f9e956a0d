"""Plugins with the real runtime: the option, what each plugin brings, and reading them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import QoderSDKClient, SystemMessage, query

pytestmark = pytest.mark.anyio

DONE = {"text": "done", "repeat": True}


def agent(folder: Path, name: str) -> None:
    """Writes an agent into a plugin."""
    (folder / "agents").mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n"
    (folder / "agents" / f"{name}.md").write_text(head)


async def test_plugins_load_local_plugins_in_order(scripted: Any, project: Path) -> None:
    one, two = project / "one", project.parent / "two"
    agent(one, "first")
    agent(two, "second")
    # An absolute or relative path to the plugin directory.
    options = scripted(DONE, plugins=[{"type": "local", "path": "./one"}, {"type": "local", "path": str(two)}])
    messages = [message async for message in query(prompt="hi", options=options)]
    init = next(one.data for one in messages if isinstance(one, SystemMessage) and one.subtype == "init")
    assert [plugin["name"] for plugin in init["plugins"]] == ["one", "two"]
    assert init["plugins"][0] == {"name": "one", "path": str(one), "source": "inline"}
    assert {"first", "second"} <= set(init["agents"])
    assert "plugin_errors" not in init


async def test_list_plugins_and_reload_plugins(scripted: Any, project: Path) -> None:
    plugin, late = project / "demo", project / "late"
    agent(plugin, "first")
    plugins = [{"type": "local", "path": str(plugin)}, {"type": "local", "path": str(late)}]
    async with QoderSDKClient(scripted(DONE, plugins=plugins)) as client:
        [row] = await client.list_plugins()
        assert (row["name"], row["path"], row["parts"]["agents"], row["errors"]) == ("demo", str(plugin), 1, [])
        assert [one["name"] for one in (await client.get_server_info())["plugins"]] == ["demo"]
        told = await client.reload_plugins()
        assert told["error_count"] == 1, "a path that does not exist"
        agent(late, "second")
        told = await client.reload_plugins()
        assert told["error_count"] == 0
        assert [one["name"] for one in told["plugins"]] == ["demo", "late"]
        assert "second" in [one["name"] for one in told["agents"]]
        assert client.supported_agents() == told["agents"], "what was read anew is what there is"
        assert await client.supported_commands() == told["commands"]
        assert "second" not in [one["name"] for one in (await client.get_server_info())["agents"]]
        assert {"commands", "agents", "plugins", "mcpServers", "error_count"} <= set(told)
