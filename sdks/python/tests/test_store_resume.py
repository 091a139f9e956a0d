"""What a session from a store looks like to the runtime, and what is not believed of a store."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import result_of, run, texts_of

from qoder_agent_sdk import (
    InMemorySessionStore,
    OptionValueError,
    QoderAgentOptions,
    QoderSDKClient,
    SessionStoreError,
    get_session_messages,
)
from qoder_agent_sdk._transcripts.files import project_key

pytestmark = pytest.mark.anyio

FOUND = """
import os
root = os.environ['QODER_CONFIG_DIR'] + '/projects'
found = {}
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        found[os.path.relpath(path, root)] = open(path).read()
handshake(found=found, arguments=sys.argv)
wait_for_end()
"""


def key(project: Path, session: str, **more: str) -> Any:
    return {"project_key": project_key(project), "session_id": session, **more}


async def found_by_runtime(fake_runtime: Any, **options: Any) -> Any:
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(FOUND), **options)) as client:
        return await client.get_server_info()


async def test_entries_that_came_twice_are_restored_once(fake_runtime: Any, project: Path) -> None:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    first, second = {"type": "user", "uuid": "1"}, {"type": "assistant", "uuid": "2"}
    for batch in ([first], [first, second], [{"type": "turn-end"}], [second]):
        await store.append(key(project, session), batch)
    info = await found_by_runtime(fake_runtime, session_store=store, cwd=project, resume=session)
    lines = info["found"][f"{project_key(project)}/{session}.jsonl"].splitlines()
    assert [json.loads(line) for line in lines] == [first, second, {"type": "turn-end"}]


async def test_the_type_comes_first_whatever_the_store_does_to_keys(fake_runtime: Any, project: Path) -> None:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    await store.append(key(project, session), [{"tag": "a", "sessionId": session, "type": "tag"}])
    info = await found_by_runtime(fake_runtime, session_store=store, cwd=project, resume=session)
    assert info["found"][f"{project_key(project)}/{session}.jsonl"].startswith('{"type":"tag"')


async def test_what_is_known_of_an_agent_is_a_file_beside_its_log(fake_runtime: Any, project: Path) -> None:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    await store.append(key(project, session), [{"type": "user"}])
    agent = [
        {"type": "agent_metadata", "agentType": "old"},
        {"type": "user"},
        {"type": "agent_metadata", "agentType": "new"},
    ]
    await store.append(key(project, session, subpath="subagents/agent-a"), agent)
    info = await found_by_runtime(fake_runtime, session_store=store, cwd=project, resume=session)
    folder = f"{project_key(project)}/{session}/subagents"
    assert info["found"][f"{folder}/agent-a.jsonl"] == '{"type":"user"}\n'
    assert json.loads(info["found"][f"{folder}/agent-a.meta.json"]) == {"agentType": "new"}


async def test_continue_believes_no_name_that_is_no_session(fake_runtime: Any, project: Path) -> None:
    class Lying(InMemorySessionStore):
        async def list_sessions(self, project_key: str) -> Any:
            return [{"session_id": "../../evil", "mtime": 1}]

    options = {"session_store": Lying(), "cwd": project, "continue_conversation": True}
    info = await found_by_runtime(fake_runtime, **options)
    assert info["found"] == {} and not any(flag.startswith("--resume") for flag in info["arguments"])


class Answering(InMemorySessionStore):
    """A store whose `load` does something else."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    async def load(self, key: Any) -> Any:
        return await self._answer()


async def refuse() -> None:
    raise OSError("no connection")


async def answer_with_a_text() -> Any:
    return "entries"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (refuse, "could not load .*no connection"),
        (answer_with_a_text, "list of objects"),
        (anyio.sleep_forever, "within"),
    ],
)
async def test_a_store_that_cannot_load_is_an_error_that_names_it(
    answer: Any, text: str, fake_runtime: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qoder_agent_sdk._stores.reading.ANSWER_SECONDS", 0.05)
    session = str(uuid.uuid4())
    with pytest.raises(SessionStoreError, match=text):
        await found_by_runtime(fake_runtime, session_store=Answering(answer), cwd=project, resume=session)


async def test_an_empty_log_is_no_session(fake_runtime: Any, project: Path) -> None:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    await store.append(key(project, session), [])
    with pytest.raises(OptionValueError, match="has no session"):
        await found_by_runtime(fake_runtime, session_store=store, cwd=project, resume=session)


ONE, TWO, THREE = ({"when": {"turn": turn}, "text": text} for turn, text in ((1, "One."), (2, "Two."), (3, "Three.")))


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
async def test_a_fork_is_complete_in_the_store(named: bool, scripted: Any, project: Path) -> None:
    store = InMemorySessionStore()
    original = result_of(await run("first", scripted(ONE, TWO, THREE, session_store=store))).session_id
    before = await store.load(key(project, original))
    more: dict[str, Any] = {"session_id": str(uuid.uuid4())} if named else {}
    second = await run(
        "second", scripted(ONE, TWO, THREE, session_store=store, resume=original, fork_session=True, **more)
    )
    fork = result_of(second).session_id
    assert fork == more.get("session_id", fork) != original and texts_of(second) == ["Two."]
    assert await store.load(key(project, original)) == before
    assert len(await get_session_messages(fork, project, session_store=store)) == 4
    third = await run("third", scripted(ONE, TWO, THREE, session_store=store, resume=fork))
    assert texts_of(third) == ["Three."]


async def test_the_place_where_a_fork_begins_has_its_new_id(fake_runtime: Any, project: Path) -> None:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    await store.append(key(project, session), [{"type": "user", "uuid": "1"}, {"type": "assistant", "uuid": "2"}])
    more = {"resume": session, "fork_session": True, "resume_session_at": "1"}
    info = await found_by_runtime(fake_runtime, session_store=store, cwd=project, **more)
    ((place, text),) = info["found"].items()
    entries = [json.loads(line) for line in text.splitlines()]
    assert f"--resume={Path(place).stem}" in info["arguments"] and "--fork-session" not in info["arguments"]
    assert [entry["forkedFrom"]["messageUuid"] for entry in entries] == ["1", "2"]
    assert any(entries[0]["uuid"] in argument for argument in info["arguments"])
    assert await store.load(key(project, Path(place).stem)) == entries
