"""Document 000: sessions with tools and permissions, against the runtime.

The samples stand in `samples/000_sessions.md` with their indentation restored. The
model follows a playbook, so that each sample has a known course.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.looking import call, results_by_tool, run, text_of, tool_results_of
from support.samples import execute, playbook, public_names, sample

from qoder_agent_sdk import QoderAgentOptions, SystemMessage, create_sdk_mcp_server, tool

pytestmark = pytest.mark.anyio

FILE = "000_sessions"

LOOKUP = call("mcp__orders__lookup_order", order_id="O-1001")


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples name no model and mostly no directory."""
    monkeypatch.chdir(project)


@pytest.fixture
def replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the model says."""

    def use(*each: dict[str, Any]) -> None:
        monkeypatch.setenv("QODER_MODEL", playbook(tmp_path, *each))

    return use


def with_calls(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"when": {"turn": 1}, "toolCalls": list(calls)}, {"text": "All done."}]


def order_tools() -> Any:
    @tool("lookup_order", "Looks up an order.", {"order_id": str})
    async def lookup_order(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{args['order_id']}: shipped"}]}

    return create_sdk_mcp_server(name="orders", tools=[lookup_order])


def kb_tools() -> Any:
    @tool("search_docs", "Searches.", {"query": str})
    async def search_docs(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"policy about {args['query']}"}]}

    return create_sdk_mcp_server(name="kb", tools=[search_docs])


#: Runs a sample as it stands, in the folder that it calls `/path/to/project`.
IN_FOLDER = """
import runpy, sys
import qoder_agent_sdk
made = qoder_agent_sdk.QoderAgentOptions
qoder_agent_sdk.QoderAgentOptions = lambda **given: made(**{**given, "cwd": sys.argv[2]})
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def program_output(code: str, folder: Path, *frame: str) -> str:
    path = folder / "sample.py"
    path.write_text(code)
    command = ["-c", frame[0], str(path), *frame[1:]] if frame else [str(path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_built_in_tools(replies: Any, project: Path, tmp_path: Path) -> None:
    (project / "auth.py").write_text("token = 'abc'\n")
    replies(*with_calls(call("Read", file_path="auth.py")))
    output = program_output(sample(FILE, "built-in tools"), tmp_path, IN_FOLDER, str(project))
    assert "'tools': ['Read', 'Glob', 'Grep']" in output
    assert "token = " in output
    assert "ResultMessage(subtype='success'" in output and "All done." in output


def test_complete_minimal_example(replies: Any, tmp_path: Path) -> None:
    replies(*with_calls(LOOKUP))
    output = program_output(sample(FILE, "complete minimal example"), tmp_path)
    assert '"status": "shipped"' in output
    assert "ResultMessage(subtype='success'" in output


SEARCH = with_calls(call("mcp__kb__search_docs", query="refunds"))


@pytest.mark.parametrize("title", ["attach to query", "client"])
async def test_a_server_is_used(title: str, replies: Any, capsys: pytest.CaptureFixture[str]) -> None:
    replies(*SEARCH)
    await execute(sample(FILE, title), {**public_names(), "kb_tools": kb_tools()})
    output = capsys.readouterr().out
    assert "policy about refunds" in output
    assert "ResultMessage(subtype='success'" in output


async def options_in(title: str, **names: Any) -> list[QoderAgentOptions]:
    """The options that a sample makes, in order."""
    made: list[QoderAgentOptions] = []

    def make(**given: Any) -> QoderAgentOptions:
        made.append(QoderAgentOptions(**given))
        return made[-1]

    await execute(sample(FILE, title), {**public_names(), "QoderAgentOptions": make, **names})
    return made


async def test_allow_and_deny(replies: Any) -> None:
    expose, deny, custom, none = await options_in("allow and deny", order_tools=order_tools())
    replies({"text": "hi", "repeat": True})
    assert await visible_tools(expose) == {"Read", "Glob", "Grep"}
    assert not {"Bash", "Write", "Edit"} & await visible_tools(deny)
    assert "mcp__orders__lookup_order" in await visible_tools(custom)
    assert await visible_tools(none) == set()
    replies(*with_calls(call("Bash", command="echo hi")))
    assert tool_results_of(await run("go", deny))[0].is_error is True


async def visible_tools(options: QoderAgentOptions) -> set[str]:
    messages = await run("hi", options)
    init = next(each for each in messages if isinstance(each, SystemMessage) and each.subtype == "init")
    return set(init.data["tools"])


async def test_permission_mode(replies: Any, project: Path) -> None:
    (options,) = await options_in("permission mode")
    replies(*with_calls(call("Write", file_path="new.txt", content="written")))
    await run("go", options)
    assert (project / "new.txt").read_text() == "written"


async def test_can_use_tool(replies: Any) -> None:
    (options,) = await options_in("can_use_tool", order_tools=order_tools())
    replies(*with_calls(LOOKUP, call("Write", file_path="new.txt", content="x")))
    results = results_by_tool(await run("go", options))
    denied = results["Write"]
    assert text_of(results["mcp__orders__lookup_order"]) == "O-1001: shipped"
    assert denied.is_error is True
    assert "Only order lookup is allowed in this workflow." in text_of(denied)


DELEGATED: list[dict[str, Any]] = [
    {"when": {"turn": 1, "purpose": "main"}, "toolCalls": [call("Agent", agent="order-support", prompt="O-1001?")]},
    {"when": {"purpose": "subagent", "turn": 1}, "toolCalls": [LOOKUP]},
    {"when": {"purpose": "subagent", "lastToolResultContains": "O-1001: shipped"}, "text": "It left yesterday."},
    {"when": {"purpose": "subagent"}, "text": "I may not look."},
    {"text": "Done."},
]


@pytest.mark.parametrize(
    ("allowed", "answer"), [(["mcp__orders__lookup_order"], "It left yesterday."), ([], "I may not look.")]
)
async def test_agents(allowed: list[str], answer: str, replies: Any, isolated_home: Path) -> None:
    """The sample lets the model delegate; the tool of the agent is for the settings of the user to allow."""
    (isolated_home / ".qoder").mkdir()
    (isolated_home / ".qoder/settings.json").write_text(json.dumps({"permissions": {"allow": allowed}}))
    (options,) = await options_in("agents", order_tools=order_tools())
    replies(*DELEGATED)
    assert answer in text_of(results_by_tool(await run("go", options))["Agent"])


async def test_hooks(replies: Any, project: Path) -> None:
    (options,) = await options_in("hooks")
    (project / "kept").mkdir()
    replies(*with_calls(call("Bash", command="rm -rf kept")))
    (denied,) = tool_results_of(await run("go", options))
    assert denied.is_error is True and "rm -rf is not allowed" in text_of(denied)
    assert (project / "kept").is_dir()
    replies(*with_calls(call("Bash", command="echo fine")))
    (allowed,) = tool_results_of(await run("go", options))
    assert "fine" in text_of(allowed)
