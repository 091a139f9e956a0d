"""Session stores: what is copied to them, and how a session comes back from one.

A fake runtime reports what it writes, as the real one does with
`--session-mirror`. A store that fails must never stop a conversation.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import run

from qoder_agent_sdk import (
    InMemorySessionStore,
    OptionValueError,
    PermissionResultAllow,
    QoderAgentOptions,
    QoderSDKClient,
    ResultMessage,
    SessionStore,
    SystemMessage,
    query,
)
from qoder_agent_sdk._transcripts.files import project_key

pytestmark = pytest.mark.anyio

SESSION = "11111111-2222-4333-8444-555555555555"

MIRROR = """
import os
handshake()
read()
assert '--session-mirror' in sys.argv
projects = os.path.join(os.environ['QODER_CONFIG_DIR'], 'projects')
def wrote(path, *entries):
    send({'type': 'transcript_mirror', 'filePath': os.path.join(projects, path), 'entries': list(entries)})
"""


def key(**more: str) -> Any:
    return {"project_key": "-p", "session_id": SESSION, **more}


def options(fake_runtime: Any, script: str, **more: Any) -> QoderAgentOptions:
    return QoderAgentOptions(cli_path=fake_runtime(script), **more)


async def test_what_is_written_is_copied_before_the_result(fake_runtime: Any) -> None:
    store = InMemorySessionStore()
    script = MIRROR + (
        f"wrote('-p/{SESSION}.jsonl', {{'type': 'user', 'n': 1}})\n"
        f"wrote('-p/{SESSION}.jsonl', {{'type': 'assistant', 'n': 2}})\n"
        f"wrote('-p/{SESSION}/subagents/agent-a.jsonl', {{'type': 'user', 'n': 3}})\n"
        "result()\nwait_for_end()\n"
        f"wrote('-p/{SESSION}.jsonl', {{'type': 'end', 'n': 4}})"
    )
    kinds = []
    async for message in query(prompt="hi", options=options(fake_runtime, script, session_store=store)):
        kinds.append(type(message))
        assert [entry["n"] for entry in await store.load(key()) or []][:2] == [1, 2]
    assert kinds == [ResultMessage]
    assert [entry["n"] for entry in await store.load(key()) or []] == [1, 2, 4]
    assert await store.list_subkeys(key()) == ["subagents/agent-a"]
    assert await store.load(key(subpath="subagents/agent-a")) == [{"type": "user", "n": 3}]


async def test_paths_that_are_no_logs_are_left_out(fake_runtime: Any) -> None:
    store = InMemorySessionStore()
    script = MIRROR + (
        f"wrote('-p/{SESSION}/odd.jsonl', {{}})\nwrote('../../etc/passwd.jsonl', {{}})\nwrote('-p/notes.txt', {{}})\n"
        "result()\nwait_for_end()"
    )
    assert len(await run("hi", options(fake_runtime, script, session_store=store))) == 1
    assert await store.list_sessions("-p") == []


class Failing:
    """A store that fails so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.got: list[Any] = []

    async def append(self, key: Any, entries: Any) -> None:
        self.times -= 1
        if self.times >= 0:
            raise OSError("disk full")
        self.got += entries

    async def load(self, key: Any) -> None:
        return None


@pytest.mark.parametrize(("times", "copied"), [(2, True), (99, False)])
async def test_a_store_that_fails_is_tried_again_and_never_stops_a_turn(
    times: int, copied: bool, fake_runtime: Any
) -> None:
    store = Failing(times)
    script = MIRROR + f"wrote('-p/{SESSION}.jsonl', {{'n': 1}})\nresult()\nwait_for_end()"
    messages = await run("hi", options(fake_runtime, script, session_store=store))
    errors = [each for each in messages if isinstance(each, SystemMessage) and each.subtype == "mirror_error"]
    assert bool(store.got) is copied and len(errors) == (0 if copied else 1)
    if errors:
        assert errors[0].data["error"] == "disk full" and errors[0].data["key"]["session_id"] == SESSION


class Noting(InMemorySessionStore):
    """Notes how many entries come at once, and reports when a batch has come."""

    def __init__(self, told: Path) -> None:
        super().__init__()
        self.batches: list[int] = []
        self._told = told

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(key, entries)
        self.batches.append(len(entries))
        self._told.touch()


# Waits, in the middle of a turn, until the store has got something.
UNTIL_STORED = "import time\nwhile not os.path.exists({told!r}): time.sleep(0.01)\n"


@pytest.mark.parametrize(
    ("flush", "frames", "batches"),
    [
        ("eager", "[[{'n': 1}]]", [1]),
        ("batched", "[[{'n': 1}] * 200, [{'n': 1}] * 299, [{'n': 1}]]", [500]),
        ("batched", "[[{'n': 1}], [{'text': 'x' * 1024 * 1024}]]", [2]),
    ],
    ids=["eager", "many", "large"],
)
async def test_copies_are_made_before_the_turn_ends(
    flush: Any, frames: str, batches: list[int], fake_runtime: Any, tmp_path: Path
) -> None:
    store = Noting(tmp_path / "told")
    script = MIRROR + (
        f"for frame in {frames}:\n    wrote('-p/{SESSION}.jsonl', *frame)\n"
        + UNTIL_STORED.format(told=str(tmp_path / "told"))
        + "result()\nwait_for_end()"
    )
    await run("hi", options(fake_runtime, script, session_store=store, session_store_flush=flush))
    assert store.batches == batches


async def test_a_turn_is_one_batch_for_each_log(fake_runtime: Any, tmp_path: Path) -> None:
    store = Noting(tmp_path / "told")
    script = MIRROR + (
        f"for number in range(499): wrote('-p/{SESSION}.jsonl', {{'n': number}})\nresult()\nwait_for_end()"
    )
    await run("hi", options(fake_runtime, script, session_store=store))
    assert store.batches == [499]


async def test_a_store_that_hangs_is_not_tried_again(fake_runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qoder_agent_sdk._stores.mirror._ATTEMPT_SECONDS", 0.05)
    calls = 0

    class Hanging(InMemorySessionStore):
        async def append(self, key: Any, entries: Any) -> None:
            nonlocal calls
            calls += 1
            await anyio.sleep_forever()

    script = MIRROR + f"wrote('-p/{SESSION}.jsonl', {{'n': 1}})\nresult()\nwait_for_end()"
    messages = await run("hi", options(fake_runtime, script, session_store=Hanging()))
    assert calls == 1 and [type(each) for each in messages] == [SystemMessage, ResultMessage]
    assert isinstance(messages[0], SystemMessage) and "did not answer" in messages[0].data["error"]


async def test_a_slow_store_does_not_keep_the_runtime_waiting(fake_runtime: Any) -> None:
    """In the middle of a turn, the runtime is answered while the store is at work."""
    asked = anyio.Event()

    class Slow(InMemorySessionStore):
        async def append(self, key: Any, entries: Any) -> None:
            await asked.wait()
            await super().append(key, entries)

    async def allow(name: str, given: Any, context: Any) -> PermissionResultAllow:
        asked.set()
        return PermissionResultAllow()

    store = Slow()
    script = MIRROR + (
        f"wrote('-p/{SESSION}.jsonl', {{'n': 1}})\n"
        "ask('r1', subtype='can_use_tool', tool_name='Bash', input={}, tool_use_id='t1')\n"
        "assert read()['response']['subtype'] == 'success'\nresult()\nwait_for_end()"
    )
    made = options(fake_runtime, script, session_store=store, session_store_flush="eager", can_use_tool=allow)
    with anyio.fail_after(60):
        async with QoderSDKClient(made) as client:
            await client.query("hi")
            assert [type(each) async for each in client.receive_response()] == [ResultMessage]
    assert await store.load(key()) == [{"n": 1}]


RESUMED = """
import os
root = os.environ['QODER_CONFIG_DIR']
found = {}
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        found[os.path.relpath(path, root)] = open(path).read()
handshake(found=found, arguments=sys.argv, root=root)
wait_for_end()
"""


async def stored(project: Path) -> tuple[InMemorySessionStore, str]:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    main: Any = {"project_key": project_key(project), "session_id": session}
    await store.append(main, [{"type": "user", "text": "Ünï"}, {"type": "assistant"}])
    await store.append({**main, "subpath": "subagents/agent-a"}, [{"type": "user"}])
    return store, session


@pytest.mark.parametrize("how", ["resume", "continue"])
async def test_a_session_comes_back_from_the_store(
    how: str, fake_runtime: Any, project: Path, isolated_home: Path
) -> None:
    settings = isolated_home / ".qoder" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    store, session = await stored(project)
    more: dict[str, Any] = {"resume": session} if how == "resume" else {"continue_conversation": True}
    made = options(fake_runtime, RESUMED, session_store=store, cwd=project, **more)
    async with QoderSDKClient(made) as client:
        info = await client.get_server_info()
    logs = f"projects/{project_key(project)}/{session}"
    assert [json.loads(line) for line in info["found"][f"{logs}.jsonl"].splitlines()] == [
        {"type": "user", "text": "Ünï"},
        {"type": "assistant"},
    ]
    assert f"{logs}/subagents/agent-a.jsonl" in info["found"] and info["found"]["settings.json"] == "{}"
    assert f"--resume={session}" in info["arguments"] and "--continue" not in info["arguments"]
    assert info["root"] != str(settings.parent) and not os.path.exists(info["root"])


async def test_a_session_that_the_store_does_not_have_is_named(fake_runtime: Any, project: Path) -> None:
    unknown = str(uuid.uuid4())
    made = options(fake_runtime, RESUMED, session_store=InMemorySessionStore(), cwd=project, resume=unknown)
    with pytest.raises(OptionValueError, match=unknown):
        await QoderSDKClient(made).connect()


async def test_a_store_cannot_write_outside_of_the_session(fake_runtime: Any, project: Path) -> None:
    store, session = await stored(project)
    await store.append(
        {"project_key": project_key(project), "session_id": session, "subpath": "../../../evil"}, [{"type": "user"}]
    )
    with pytest.raises(OptionValueError, match="outside of the session"):
        await QoderSDKClient(options(fake_runtime, RESUMED, session_store=store, cwd=project, resume=session)).connect()


async def test_deleting_a_session_takes_its_agents_with_it(project: Path) -> None:
    store, session = await stored(project)
    main: Any = {"project_key": project_key(project), "session_id": session}
    assert isinstance(store, SessionStore)
    await store.delete(main)
    assert await store.load(main) is None and await store.list_subkeys(main) == []
    assert await store.list_sessions(project_key(project)) == []


class Bare:
    """A store with what every store must have, and nothing else."""

    async def append(self, key: Any, entries: Any) -> None:
        raise AssertionError("never called")

    async def load(self, key: Any) -> None:
        raise AssertionError("never called")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"session_store": object()}, "append and load"),
        ({"session_store": Bare(), "enable_file_checkpointing": True}, "enable_file_checkpointing"),
        ({"session_store": Bare(), "persist_session": False}, "persist_session=True"),
        ({"session_store": Bare(), "continue_conversation": True}, "list_sessions"),
        ({"session_store": Bare(), "resume": "my title"}, "id of a session"),
        ({"session_store_flush": "sometimes"}, "batched, eager"),
    ],
)
def test_what_a_store_cannot_be_combined_with_is_refused(more: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionValueError, match=text):
        QoderAgentOptions(**more)
