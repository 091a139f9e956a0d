"""The unmodified `qca-sdk` package against `qodercli serve`: the Qoder dialect, with cancel, resumable streams and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import qca
from qca.managed import Managed

from conftest import Replies, Served

TOOLSET: Any = {
    "type": "agent_toolset_20260401",
    "enabled_tools": ["Bash", "Read"],
    "configs": [{"name": "Bash", "permission_policy": {"type": "always_ask"}}],
}


def client_of(served: Served) -> Any:
    return Managed(access_token=served.token, base_url=f"{served.url}/api/v1/cloud", max_retries=0)


def begin(client: Any, tools: list[Any]) -> Any:
    agent = client.agents.create(name="helper", model="auto", tools=tools)
    environment = client.environments.create(name="here", config={"type": "cloud"})
    return client.sessions.create(agent=agent.id, environment_id=environment.id)


def message(text: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def test_a_conversation(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello."}]))
    session = begin(client, [])
    with client.sessions.events.stream(session.id) as stream:
        client.sessions.events.send(session.id, events=[message("hi")])
        kinds = []
        for event in stream:
            kinds.append(event.type)
            if event.type == "session.status_idle":
                break
    assert "agent.message" in kinds
    assert [model.id for model in client.models.list() if model.is_enabled][0] == "auto"
    listed = list(client.sessions.events.list(session.id, limit=2))
    assert [event.type for event in listed] == kinds
    assert client.sessions.retrieve(session.id).status == "idle"
    assert [one.id for one in client.sessions.list()] == [session.id]
    assert [one.name for one in client.agents.list()] == ["helper"]


def test_an_approval_and_a_resumed_stream(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "echo hi"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    session = begin(client, [TOOLSET])
    sent = client.sessions.events.send(session.id, events=[message("go")])
    seen = []
    for event in client.sessions.events.resumable_stream(session.id, last_event_id=sent.data[0].id):
        seen.append(event)
        if event.type == "agent.tool_use":
            assert event.name == "Bash" and event.evaluated_permission == "ask"
            confirm = {"type": "user.tool_confirmation", "tool_use_id": event.id, "result": "allow"}
            client.sessions.events.send(session.id, events=[confirm])
        if event.type == "session.status_idle" and event.stop_reason.type == "end_turn":
            break
    ids = [event.id for event in seen]
    assert ids == [event.id for event in client.sessions.events.list(session.id, limit=100)][1:]


def test_cancel_conflict_and_keys(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "lookup", "input": {}}]}
    client = client_of(serve([call, {"text": "Done.", "repeat": True}]))
    lookup = {"type": "custom", "name": "lookup", "description": "d", "input_schema": {"type": "object"}}
    session = begin(client, [lookup])
    assert client.sessions.cancel(session.id).status == "idle"
    with client.sessions.events.stream(session.id) as stream:
        client.sessions.events.send(session.id, events=[message("go")])
        for event in stream:
            if event.type == "session.status_idle" and event.stop_reason.type == "requires_action":
                with pytest.raises(qca.ConflictError):
                    client.sessions.events.send(session.id, events=[message("hello?")])
                assert client.sessions.cancel(session.id).status == "canceling"
            elif event.type == "session.status_idle":
                assert event.stop_reason.type == "end_turn"
                break
    body = {"name": "once", "config": {"type": "cloud"}}
    key = {"Idempotency-Key": "k1"}
    first = client.environments.create(**body, extra_headers=key)
    assert client.environments.create(**body, extra_headers=key).id == first.id
    with pytest.raises(qca.ConflictError):
        client.environments.create(name="other", config={"type": "cloud"}, extra_headers=key)
    archived = client.environments.archive(first.id)
    assert archived.archived_at is not None
    assert client.environments.delete(first.id).type == "environment_deleted"
    assert client.sessions.delete(session.id).type == "session_deleted"
    with pytest.raises(qca.NotFoundError):
        client.sessions.retrieve(session.id)


def test_files_by_links(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello.", "repeat": True}]))
    file = client.files.upload(file=("a.txt", b"words"), name="b.txt", metadata={"team": "docs"}, expires_in_seconds=3600)
    assert (file.filename, file.size_bytes, file.metadata) == ("b.txt", 5, {"team": "docs"})
    assert client.files.download(file.id).read() == b"words"
    assert [one.id for one in client.files.list(name="b.txt")] == [file.id]
    session = begin(client, [])
    added = client.sessions.resources.add(session.id, type="file", file_id=file.id)
    assert added.file_id == file.id
    assert client.files.delete(file.id).type == "file_deleted"
    with pytest.raises(qca.APIStatusError) as gone:
        client.files.download(file.id)
    assert gone.value.status_code == 410


def test_vaults(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello.", "repeat": True}]))
    vault = client.vaults.create(display_name="Team")
    auth = {"type": "static_bearer", "mcp_server_url": "https://mcp.example.com", "token": "a-secret-token"}
    made = client.vaults.credentials.create(vault.id, auth=auth, display_name="mcp")
    assert made.vault_id == vault.id and made.auth.type == "static_bearer"
    assert [one.id for one in client.vaults.list(name="Team")] == [vault.id]
    assert [one.id for one in client.vaults.credentials.list(vault.id, name="mcp")] == [made.id]
    session = begin(client, [])
    assert client.sessions.update(session.id, vault_ids=[vault.id]).vault_ids == [vault.id]
    assert client.vaults.credentials.delete(made.id, vault_id=vault.id).type == "vault_credential_deleted"
    assert client.vaults.delete(vault.id).type == "vault_deleted"


def test_skills(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello.", "repeat": True}]))
    content = b"---\nname: report\ndescription: Writes reports.\n---\nBegin.\n"
    skill = client.skills.create(
        files=[("report/SKILL.md", content)], display_title="Reports", metadata={"team": "docs"}
    )
    assert (skill.display_title, skill.metadata) == ("Reports", {"team": "docs"})
    assert skill.id is not None and skill.latest_version is not None
    version = client.skills.versions.retrieve(skill.latest_version, skill_id=skill.id)
    assert (version.name, version.directory, version.version) == ("report", "report", skill.latest_version)
    assert [one.id for one in client.skills.list(source="custom")] == [skill.id]
    assert client.skills.delete(skill.id).type == "skill_deleted"


def test_memory_stores(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "cd ../session/memory/notes && cat a.md && echo b > b.md"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    store = client.memory_stores.create(name="Notes", description="For all")
    assert (store.name, store.status, store.entry_count) == ("Notes", "active", 0)
    memory = client.memory_stores.memories.create(store.id, path="a.md", content="What we know.")
    assert memory.path == "/a.md"
    changed = client.memory_stores.memories.update(
        memory.id, memory_store_id=store.id, content="What we learned.", content_sha256=memory.content_sha256
    )
    assert changed.memory_version_id != memory.memory_version_id
    agent = client.agents.create(name="helper", model="auto", tools=[{"type": "agent_toolset_20260401"}])
    session = client.sessions.create(
        agent=agent.id,
        environment_id=client.environments.create(name="here").id,
        resources=[{"type": "memory_store", "memory_store_id": store.id, "access": "read_write"}],
    )
    with client.sessions.events.stream(session.id) as stream:
        client.sessions.events.send(session.id, events=[message("go")])
        events = []
        for event in stream:
            events.append(event)
            if event.type == "session.status_idle":
                break
    results = [event for event in events if event.type == "agent.tool_result"]
    assert "What we learned." in str(results[0].content)
    assert [one.path for one in client.memory_stores.memories.list(store.id)] == ["/a.md", "/b.md"]
    versions = list(client.memory_stores.memory_versions.list(store.id, session_id=session.id))
    assert [one.operation for one in versions] == ["created"]
    assert client.memory_stores.memories.delete(memory.id, memory_store_id=store.id).type == "memory_deleted"
    assert client.memory_stores.delete(store.id).type == "memory_store_deleted"


def test_threads(serve: Callable[[Replies], Served]) -> None:
    delegate = {"toolCalls": [{"name": "Agent", "input": {"agent": "reader", "prompt": "Look around."}}]}
    of_reader = {"when": {"purpose": "subagent"}, "text": "Nothing there."}
    client = client_of(serve([{"when": {"purpose": "main"}, **delegate}, of_reader, {"text": "Done."}]))
    reader = client.agents.create(name="reader", model="auto", tools=[{"type": "agent_toolset_20260401"}])
    lead = client.agents.create(
        name="lead", model="auto", multiagent={"type": "coordinator", "agents": [{"type": "agent", "id": reader.id}]}
    )
    session = client.sessions.create(agent=lead.id, environment_id=client.environments.create(name="here").id)
    with client.sessions.events.stream(session.id) as stream:
        client.sessions.events.send(session.id, events=[message("go")])
        for event in stream:
            if event.type == "session.status_idle":
                break
    primary, child = list(client.sessions.threads.list(session.id))
    assert child.parent_thread_id == primary.id and child.agent.name == "reader"
    kinds = [event.type for event in client.sessions.threads.events.list(child.id, session_id=session.id)]
    assert kinds[:2] == ["session.thread_status_running", "agent.thread_message_received"]
