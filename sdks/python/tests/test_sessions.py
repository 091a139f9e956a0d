"""Stored sessions: resuming, forking, listing, reading, renaming, tagging, deleting.

Sessions are made by the real runtime where possible; logs of other shapes are written
by hand.
"""

from __future__ import annotations

import json
import stat
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.looking import call, result_of, run, texts_of

from qoder_agent_sdk import (
    QueryResultError,
    SDKSessionInfo,
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    query,
    rename_session,
    tag_session,
)
from qoder_agent_sdk._transcripts.files import project_key

pytestmark = pytest.mark.anyio

ONE, TWO = {"when": {"turn": 1}, "text": "One."}, {"when": {"turn": 2}, "text": "Two."}


async def a_session(scripted: Any, **options: Any) -> str:
    return result_of(await run("remember the milk", scripted(ONE, TWO, **options))).session_id


async def test_a_given_id_is_used(scripted: Any) -> None:
    wanted = str(uuid.uuid4())
    assert await a_session(scripted, session_id=wanted) == wanted


async def test_resume_goes_on_with_the_same_id(scripted: Any) -> None:
    first = await a_session(scripted)
    messages = await run("and now", scripted(ONE, TWO, resume=first))
    assert texts_of(messages) == ["Two."] and result_of(messages).session_id == first


async def test_continue_takes_the_newest(scripted: Any) -> None:
    await a_session(scripted)
    newest = await a_session(scripted)
    messages = await run("and now", scripted(ONE, TWO, continue_conversation=True))
    assert result_of(messages).session_id == newest


async def test_a_fork_leaves_the_original_alone(scripted: Any, project: Path) -> None:
    first = await a_session(scripted)
    before = [message.uuid for message in get_session_messages(first, project)]
    messages = await run("and now", scripted(ONE, TWO, resume=first, fork_session=True))
    assert texts_of(messages) == ["Two."] and result_of(messages).session_id != first
    assert [message.uuid for message in get_session_messages(first, project)] == before


async def test_an_unknown_session_is_an_error_with_a_result(scripted: Any) -> None:
    got = []
    with pytest.raises(QueryResultError, match="(?i)no conversation found"):
        async for message in query(prompt="hi", options=scripted(ONE, resume=str(uuid.uuid4()))):
            got.append(message)
    assert result_of(got).is_error


async def test_sessions_are_listed_newest_first(scripted: Any, project: Path) -> None:
    first, second = await a_session(scripted), await a_session(scripted)
    infos = list_sessions(project)
    assert [info.session_id for info in infos] == [second, first]
    info = infos[0]
    assert isinstance(info, SDKSessionInfo)
    assert info.first_prompt == info.summary == "remember the milk" and info.cwd == str(project)
    assert info.custom_title is None and info.tag is None and info.created_at and info.file_size
    assert abs(info.last_modified - info.created_at) < 60_000
    assert [each.session_id for each in list_sessions(project, limit=1, offset=1)] == [first]
    assert {each.session_id for each in list_sessions()} == {first, second}
    assert get_session_info(first, project) == infos[1]


async def test_include_worktrees_adds_the_sessions_of_other_worktrees(scripted: Any, project: Path) -> None:
    tree = project.parent / "tree"
    who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    for arguments in (
        ["init", "-q"],
        [*who, "commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", str(tree)],
    ):
        subprocess.run(["git", "-C", str(project), *arguments], check=True)
    here = await a_session(scripted)
    there = result_of(await run("over there", scripted(ONE, cwd=tree))).session_id
    assert {each.session_id for each in list_sessions(project)} == {here, there}
    assert [each.session_id for each in list_sessions(project, include_worktrees=False)] == [here]


async def test_messages_are_read_in_order(scripted: Any, project: Path) -> None:
    replies = [
        {"when": {"turn": 1}, "toolCalls": [call("Bash", command="echo a"), call("Bash", command="echo b")]},
        {"text": "Done."},
    ]
    messages = await run("go", scripted(*replies, allowed_tools=["Bash"]))
    stored = get_session_messages(result_of(messages).session_id, project)
    assert [message.type for message in stored] == ["user", "assistant", "user", "user", "assistant"]
    assert stored[0].message["content"] == "go"
    assert stored[-1].message["content"] == [{"type": "text", "text": "Done."}]
    assert stored[-1].uuid == messages[-2].uuid  # type: ignore[union-attr]
    page = get_session_messages(result_of(messages).session_id, project, limit=2, offset=1)
    assert page == stored[1:3]


async def test_renaming_and_tagging(scripted: Any, project: Path) -> None:
    session = await a_session(scripted)
    rename_session(session, "  Milk  ", project)
    tag_session(session, "errands", project)
    info = get_session_info(session, project)
    assert info is not None and (info.custom_title, info.summary, info.tag) == ("Milk", "Milk", "errands")
    rename_session(session, "Eggs")
    tag_session(session, None)
    info = get_session_info(session, project)
    assert info is not None and (info.custom_title, info.tag) == ("Eggs", None)
    assert texts_of(await run("and now", scripted(ONE, TWO, resume=session))) == ["Two."]


async def test_forking_a_stored_session(scripted: Any, project: Path, isolated_home: Path) -> None:
    session = await a_session(scripted)
    original = get_session_messages(session, project)
    fork = fork_session(session, project, title="Copy").session_id
    copy = get_session_messages(fork, project)
    assert [message.message for message in copy] == [message.message for message in original]
    assert not {message.uuid for message in copy} & {message.uuid for message in original}
    assert {message.session_id for message in copy} == {fork}
    info = get_session_info(fork, project)
    assert info is not None and info.custom_title == "Copy"
    path = isolated_home / ".qoder" / "projects" / project_key(project) / f"{fork}.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert texts_of(await run("and now", scripted(ONE, TWO, resume=fork))) == ["Two."]


async def test_forking_up_to_a_message(scripted: Any, project: Path) -> None:
    session = await a_session(scripted)
    first = get_session_messages(session, project)[0]
    fork = fork_session(session, project, up_to_message_id=first.uuid).session_id
    assert [message.type for message in get_session_messages(fork, project)] == ["user"]
    with pytest.raises(ValueError, match="has no message"):
        fork_session(session, project, up_to_message_id=str(uuid.uuid4()))


async def test_deleting(scripted: Any, project: Path, isolated_home: Path) -> None:
    session = await a_session(scripted)
    delete_session(session, project)
    assert list_sessions(project) == [] and get_session_info(session) is None
    assert not list((isolated_home / ".qoder" / "projects").rglob(f"{session}*"))
    with pytest.raises(FileNotFoundError, match=session):
        delete_session(session, project)


async def test_a_session_that_is_not_kept_is_not_listed(scripted: Any, project: Path) -> None:
    await a_session(scripted, persist_session=False)
    assert list_sessions(project) == []


def test_nothing_stored_is_nothing_listed(project: Path) -> None:
    unknown = str(uuid.uuid4())
    assert list_sessions() == [] and list_sessions(project) == []
    assert get_session_info(unknown) is None and get_session_messages(unknown) == []
    assert list_subagents(unknown) == []


@pytest.mark.parametrize("wrong", ["x", "", "../../etc/passwd", None])
def test_an_id_that_is_no_uuid_is_refused(wrong: Any) -> None:
    for function in (get_session_info, get_session_messages, delete_session, list_subagents):
        with pytest.raises(ValueError, match="UUID"):
            function(wrong)


def test_empty_titles_and_tags_are_refused() -> None:
    identifier = str(uuid.uuid4())
    with pytest.raises(ValueError, match="title"):
        rename_session(identifier, "  ")
    with pytest.raises(ValueError, match="tag"):
        tag_session(identifier, "")


def test_a_fork_leaves_out_what_the_conversation_went_back_from(isolated_home: Path, project: Path) -> None:
    session = write_log(
        isolated_home,
        project,
        entry("user", "1", None, "before the new beginning"),
        {"type": "cut", "at": None, "messages": 0},
        entry("user", "2", None, "kept"),
        entry("assistant", "3", "2", "yes"),
        entry("user", "4", "3", "taken back"),
        {"type": "cut", "at": "3", "messages": 2},
        entry("user", "5", "3", "after"),
    )

    def texts(fork: str) -> list[str]:
        folder = isolated_home / ".qoder" / "projects" / project_key(project)
        lines = [json.loads(line) for line in (folder / f"{fork}.jsonl").read_text().splitlines()]
        return [line["message"]["content"] for line in lines if "message" in line]

    assert texts(fork_session(session, project).session_id) == ["kept", "yes", "after"]
    earlier = fork_session(session, project, up_to_message_id="4")
    assert texts(earlier.session_id) == ["kept", "yes", "taken back"]


def test_titles_and_tags_that_no_list_would_find_are_refused() -> None:
    identifier = str(uuid.uuid4())
    with pytest.raises(ValueError, match="the title of a session has 1001 characters, and 1000 are accepted"):
        rename_session(identifier, "x" * 1001)
    with pytest.raises(ValueError, match="the tag of a session has 1001 characters"):
        tag_session(identifier, "x" * 1001)


def test_the_longest_title_is_found_whatever_it_consists_of(isolated_home: Path, project: Path) -> None:
    session = write_log(isolated_home, project, entry("user", "1", None, "hello"))
    for title in ("x" * 1000, "🦀" * 1000, "\x1b" * 1000):
        rename_session(session, title, project)
        assert get_session_info(session, project).custom_title == title
    fork = fork_session(session, project).session_id
    assert get_session_info(fork, project).custom_title == "\x1b" * 993 + " (fork)"


def test_what_tools_are_called_with_does_not_name_a_session(isolated_home: Path, project: Path) -> None:
    names = {"customTitle": "evil", "aiTitle": "evil", "gitBranch": "evil", "summary": "evil", "lastPrompt": "evil"}
    session = write_log(
        isolated_home,
        project,
        entry("user", "1", None, "hello", cwd="/work", gitBranch="main"),
        entry("assistant", "2", "1", [{"type": "tool_use", "id": "t", "name": "Make", "input": names}]),
        {"type": "task-end", "taskId": "b", "summary": "Background command was stopped"},
    )
    info = get_session_info(session, project)
    assert info is not None
    assert (info.summary, info.custom_title, info.git_branch) == ("hello", None, "main")


def test_a_session_whose_first_prompt_is_very_long_is_listed(isolated_home: Path, project: Path) -> None:
    lines = [entry("user", "1", None, "word " * 50_000), entry("assistant", "2", "1", "x" * 100_000)]
    session = write_log(isolated_home, project, *lines)
    [info] = list_sessions(project)
    assert info.session_id == session and info.summary.startswith("word word") and info.summary.endswith("…")


def write_log(isolated_home: Path, project: Path, *entries: dict[str, Any], name: str = "") -> str:
    session = str(uuid.uuid4())
    folder = isolated_home / ".qoder" / "projects" / project_key(project)
    path = folder / (name.format(session) if name else f"{session}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries))
    return session


def entry(kind: str, identifier: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": identifier,
        "parentUuid": parent,
        "message": {"role": kind, "content": content},
        **more,
    }


def test_after_a_compaction_only_the_new_chain_is_shown(isolated_home: Path, project: Path) -> None:
    session = write_log(
        isolated_home,
        project,
        entry("user", "1", None, "old"),
        entry("assistant", "2", "1", []),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "3",
            "parentUuid": None,
            "compactMetadata": {"trigger": "auto"},
        },
        entry("user", "4", "3", "summary", isCompactSummary=True),
        entry("assistant", "5", "4", [{"type": "text", "text": "new"}]),
    )
    assert [message.uuid for message in get_session_messages(session, project)] == ["4", "5"]
    with_system = get_session_messages(session, project, include_system_messages=True)
    assert [message.uuid for message in with_system] == ["3", "4", "5"]
    assert with_system[0].compact_metadata == {"trigger": "auto"}


def test_what_people_should_not_see_is_left_out(isolated_home: Path, project: Path) -> None:
    session = write_log(
        isolated_home,
        project,
        entry("user", "1", None, "<tick>", isMeta=True),
        entry("user", "2", "1", "real"),
        entry("assistant", "3", "2", []),
        entry("assistant", "9", "2", [], isSidechain=True),
    )
    assert [message.uuid for message in get_session_messages(session, project)] == ["2", "3"]
    info = get_session_info(session, project)
    assert info is not None and info.first_prompt == "real"


def test_parallel_results_are_found_beside_the_chain(isolated_home: Path, project: Path) -> None:
    def use(identifier: str, parent: str) -> dict[str, Any]:
        made = entry(
            "assistant", identifier, parent, [{"type": "tool_use", "id": identifier, "name": "x", "input": {}}]
        )
        made["message"]["id"] = "m"
        return made

    def done(identifier: str, parent: str) -> dict[str, Any]:
        return entry("user", identifier, parent, [{"type": "tool_result", "tool_use_id": parent, "content": "r"}])

    session = write_log(
        isolated_home,
        project,
        entry("user", "1", None, "go"),
        use("2", "1"),
        use("3", "2"),
        done("4", "2"),
        done("5", "3"),
        entry("assistant", "6", "5", []),
    )
    assert [message.uuid for message in get_session_messages(session, project)] == ["1", "2", "3", "4", "5", "6"]


def test_a_sidechain_file_and_an_empty_session_are_not_listed(isolated_home: Path, project: Path) -> None:
    write_log(isolated_home, project, entry("user", "1", None, "x", isSidechain=True))
    write_log(isolated_home, project, {"type": "session-start"})
    write_log(isolated_home, project)
    assert list_sessions(project) == []


def test_subagents_are_listed_and_read(isolated_home: Path, project: Path) -> None:
    session = write_log(isolated_home, project, entry("user", "1", None, "x"))
    folder = isolated_home / ".qoder" / "projects" / project_key(project) / session / "subagents" / "deep"
    folder.mkdir(parents=True)
    lines = [entry("user", "a", None, "task", isSidechain=True), entry("assistant", "b", "a", [], isSidechain=True)]
    (folder / "agent-abc.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list_subagents(session, project) == ["abc"]
    assert [message.uuid for message in get_subagent_messages(session, "abc", project)] == ["a", "b"]
    assert get_subagent_messages(session, "other", project) == []


def test_texts_in_blobs_are_put_back(isolated_home: Path, project: Path) -> None:
    shortened = entry(
        "user", "1", None, [{"type": "text", "text": "(too long)"}], blobs={"/message/content/0/text": "f00"}
    )
    session = write_log(isolated_home, project, shortened)
    blobs = isolated_home / ".qoder" / "projects" / project_key(project) / session / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "f00").write_text("very long")
    assert get_session_messages(session, project)[0].message["content"][0]["text"] == "very long"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/u/my project.x", "-home-u-my-project-x"),
        ("/a_b-c/D9", "-a-b-c-D9"),
        ("/srv/Ünï/🦀", "-srv--n---"),
        ("/" + "a" * 250, "-" + "a" * 199 + "-feo44x"),
    ],
)
def test_project_keys(path: str, key: str) -> None:
    assert project_key(path) == key
