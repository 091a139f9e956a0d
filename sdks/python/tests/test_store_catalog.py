"""The functions on stored sessions, with a session store: the same answers as from local logs."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from support.looking import result_of, run
from support.stores import Bare

from qoder_agent_sdk import (
    InMemorySessionStore,
    OptionValueError,
    SessionStoreError,
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    rename_session,
    tag_session,
)
from qoder_agent_sdk._transcripts.files import project_key

pytestmark = pytest.mark.anyio


def key(project: Path, session: str, **more: str) -> Any:
    return {"project_key": project_key(project), "session_id": session, **more}


def entry(kind: str, name: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": f"text {name}"}
    return {"type": kind, "uuid": name, "parentUuid": parent, "message": message, **more}


async def filled(project: Path) -> tuple[InMemorySessionStore, str]:
    store, session = InMemorySessionStore(), str(uuid.uuid4())
    main = [entry("user", "1", timestamp="2026-01-02T03:04:05.000Z"), entry("assistant", "2", "1")]
    await store.append(key(project, session), main)
    await store.append(key(project, session), [*main, entry("user", "3", "2"), entry("assistant", "4", "3")])
    await store.append(key(project, session, subpath="subagents/agent-b"), [entry("user", "5", isSidechain=True)])
    await store.append(
        key(project, session, subpath="subagents/deeper/agent-a"), [entry("user", "6"), entry("user", "7")]
    )
    return store, session


async def test_the_answers_are_those_of_local_logs(scripted: Any, project: Path) -> None:
    store = InMemorySessionStore()
    session = result_of(await run("remember the milk", scripted({"text": "Yes."}, session_store=store))).session_id
    rename_session(session, "Milk", project)
    await rename_session(session, "Milk", project, session_store=store)
    tag_session(session, "kitchen", project)
    await tag_session(session, "kitchen", project, session_store=store)
    local, stored = get_session_info(session, project), await get_session_info(session, project, session_store=store)
    assert local is not None and stored is not None
    assert {**vars(local), "file_size": None, "last_modified": 0} == {**vars(stored), "last_modified": 0}
    messages = await get_session_messages(session, project, session_store=store)
    assert messages == get_session_messages(session, project) and len(messages) == 2


async def test_messages_come_once_and_in_pages(project: Path) -> None:
    store, session = await filled(project)
    messages = await get_session_messages(session, project, session_store=store)
    assert [message.uuid for message in messages] == ["1", "2", "3", "4"]
    page = await get_session_messages(session, project, limit=2, offset=1, session_store=store)
    assert [message.uuid for message in page] == ["2", "3"]
    assert await get_session_messages(str(uuid.uuid4()), project, session_store=store) == []


async def test_sessions_are_listed_newest_first(project: Path) -> None:
    store, first = await filled(project)
    second = (await fork_session(first, project, session_store=store)).session_id
    times = {first: 2_000, second: 1_000}
    store._changed = {(project_key(project), session): changed for session, changed in times.items()}
    infos = await list_sessions(project, session_store=store)
    assert [(info.session_id, info.last_modified) for info in infos] == [(first, 2_000), (second, 1_000)]
    assert [info.session_id for info in await list_sessions(project, 1, 1, session_store=store)] == [second]


async def test_without_a_directory_the_current_one_is_meant(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, session = await filled(project)
    assert await list_sessions(session_store=store) == []
    monkeypatch.chdir(project)
    assert [info.session_id for info in await list_sessions(session_store=store)] == [session]


async def test_agents_are_found(project: Path) -> None:
    store, session = await filled(project)
    assert await list_subagents(session, project, session_store=store) == ["a", "b"]
    messages = await get_subagent_messages(session, "a", project, session_store=store)
    assert [message.uuid for message in messages] == ["6", "7"]
    assert await get_subagent_messages(session, "none", project, session_store=store) == []


async def test_a_fork_ends_with_the_message_that_is_named(project: Path) -> None:
    store, session = await filled(project)
    fork = await fork_session(session, project, up_to_message_id="2", title="Half", session_store=store)
    messages = await get_session_messages(fork.session_id, project, session_store=store)
    assert [message.message["content"] for message in messages] == ["text 1", "text 2"]
    info = await get_session_info(fork.session_id, project, session_store=store)
    assert info is not None and info.summary == "Half"


async def test_delete_takes_the_copy_in_the_store_and_leaves_the_local_one(scripted: Any, project: Path) -> None:
    store = InMemorySessionStore()
    session = result_of(await run("hello", scripted({"text": "Hi."}, session_store=store))).session_id
    await delete_session(session, project, session_store=store)
    assert await store.load(key(project, session)) is None and get_session_info(session, project) is not None
    await delete_session(session, project, session_store=store)


async def test_a_store_with_two_methods_does_what_it_can(project: Path) -> None:
    full, session = await filled(project)
    store = Bare(full)
    info = await get_session_info(session, project, session_store=store)
    assert info is not None and info.last_modified == 1767323045000
    assert await list_subagents(session, project, session_store=store) == []
    await delete_session(session, project, session_store=store)
    assert await store.load(key(project, session)) is not None
    with pytest.raises(SessionStoreError, match="list_sessions"):
        await list_sessions(project, session_store=store)


async def test_what_cannot_be_is_an_error(project: Path) -> None:
    store, session = await filled(project)
    with pytest.raises(FileNotFoundError, match="has no session"):
        await rename_session(str(uuid.uuid4()), "title", project, session_store=store)
    with pytest.raises(OptionValueError, match="UUID"):
        await get_session_info("../x", project, session_store=store)
    with pytest.raises(OptionValueError, match="has no message 9"):
        await fork_session(session, project, up_to_message_id="9", session_store=store)
    with pytest.raises(OptionValueError, match="must not be empty"):
        rename_session(session, " ", project, session_store=store)


async def test_a_list_loads_no_more_logs_than_it_shows(project: Path) -> None:
    class Counting(InMemorySessionStore):
        loaded = 0

        async def list_sessions(self, project_key: str) -> Any:
            rows = await super().list_sessions(project_key)
            return [
                {**row, "mtime": number} for number, row in enumerate(sorted(rows, key=lambda row: row["session_id"]))
            ]

        async def load(self, key: Any) -> Any:
            self.loaded += 1
            return await super().load(key)

    store, sessions = Counting(), sorted(str(uuid.uuid4()) for _ in range(9))
    for session in sessions:
        await store.append(key(project, session), [entry("user", session)])
    listed = await list_sessions(project, limit=2, offset=1, session_store=store)
    assert [info.session_id for info in listed] == [sessions[7], sessions[6]]
    assert store.loaded == 3


@pytest.mark.parametrize(
    "rows", [None, [None], [{"session_id": str(uuid.uuid4())}], [{"session_id": str(uuid.uuid4()), "mtime": "x"}]]
)
async def test_a_store_that_lists_nonsense_is_an_error_that_says_so(project: Path, rows: Any) -> None:
    class Confused(InMemorySessionStore):
        async def list_sessions(self, project_key: str) -> Any:
            return rows

        async def list_subkeys(self, key: Any) -> Any:
            return rows

    store = Confused()
    with pytest.raises(SessionStoreError, match="must list sessions as objects"):
        await list_sessions(project, session_store=store)
    with pytest.raises(SessionStoreError, match="must list the agents"):
        await list_subagents(str(uuid.uuid4()), project, session_store=store)
