"""The example of a store in PostgreSQL, against a real server and with the real runtime.

asyncpg knows asyncio only, so these tests run on one event loop.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.looking import call, result_of, run, texts_of
from support.postgres import postgres_server
from support.stores import example

from qoder_agent_sdk import (
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    list_sessions,
    rename_session,
    tag_session,
)
from qoder_agent_sdk.testing import SESSION_STORE_RULES, check_session_store_rule

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
async def store(server: str) -> AsyncIterator[Any]:
    module = example("postgres_session_store")
    async with module.asyncpg.create_pool(server, min_size=1, max_size=4) as pool:
        made = module.PostgresSessionStore(pool)
        await made.create_table()
        yield made


@pytest.mark.parametrize("rule", SESSION_STORE_RULES)
async def test_it_keeps_every_rule(rule: str, store: Any) -> None:
    assert await check_session_store_rule(lambda: store, rule)


REPLIES: list[dict[str, Any]] = [
    {"when": {"turn": 1}, "toolCalls": [call("Bash", command="printf 'kept: caf\\303\\251'")]},
    {"when": {"lastToolResultContains": "café"}, "text": "It says café."},
    {"when": {"turn": 3, "contains": "again"}, "text": "The third answer."},
]


def another_host(home: Path) -> None:
    """Nothing that the first host wrote is left."""
    shutil.rmtree(home / ".qoder")


async def test_a_session_goes_on_after_another_host_has_taken_it_over(
    scripted: Any, store: Any, project: Path, isolated_home: Path
) -> None:
    first = await run("look", scripted(*REPLIES, session_store=store, allowed_tools=["Bash"]))
    session = result_of(first).session_id
    assert texts_of(first) == ["It says café."]
    local = [message.uuid for message in get_session_messages(session, project)]
    another_host(isolated_home)
    assert list_sessions(project) == []
    assert [each.uuid for each in await get_session_messages(session, project, session_store=store)] == local

    # The playbook counts the turns of the conversation: its third can only follow the two that were restored.
    second = await run("again", scripted(*REPLIES, session_store=store, resume=session))
    assert result_of(second).session_id == session and texts_of(second) == ["The third answer."]
    assert list_sessions(project) == []
    messages = await get_session_messages(session, project, session_store=store)
    assert [each.uuid for each in messages][: len(local)] == local and len(messages) == len(local) + 2
    assert [info.session_id for info in await list_sessions(project, session_store=store)] == [session]


async def test_a_session_is_changed_in_the_database(scripted: Any, store: Any, project: Path) -> None:
    hi, again = {"when": {"turn": 1}, "text": "Hi."}, {"when": {"turn": 2}, "text": "Again."}
    session = result_of(await run("hello", scripted(hi, again, session_store=store))).session_id
    await rename_session(session, "Kept elsewhere", project, session_store=store)
    await tag_session(session, "moved", project, session_store=store)
    fork = await fork_session(session, project, session_store=store)
    info = await get_session_info(session, project, session_store=store)
    assert info is not None and (info.summary, info.tag) == ("Kept elsewhere", "moved")
    await delete_session(session, project, session_store=store)
    assert [each.summary for each in await list_sessions(project, session_store=store)] == ["Kept elsewhere (fork)"]
    resumed = await run("continue", scripted(hi, again, session_store=store, resume=fork.session_id))
    assert texts_of(resumed) == ["Again."]
