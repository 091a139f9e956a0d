"""The unmodified `anthropic` package against `qodercli serve`: typed objects, streams, approvals and its tool runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import io
import zipfile
from typing import Any, Iterable

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool
from anthropic.types.beta import (
    BetaFileMetadata,
    BetaManagedAgentsAgent,
    BetaManagedAgentsMemoryStore,
    BetaManagedAgentsSession,
    BetaManagedAgentsVault,
)
from anthropic.types.beta.memory_stores import BetaManagedAgentsMemory
from anthropic.types.beta.sessions import (
    BetaManagedAgentsAgentMessageEvent,
    BetaManagedAgentsMemoryStoreResource,
    BetaManagedAgentsSessionThread,
)

from conftest import Replies, Served

TOOLSET: Any = {
    "type": "agent_toolset_20260401",
    "configs": [{"type": "bash", "name": "bash", "permission_policy": {"type": "always_ask"}}],
}
WEATHER: Any = {
    "type": "custom",
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def client_of(served: Served) -> Anthropic:
    return Anthropic(api_key=served.token, base_url=served.url, max_retries=0)


def begin(client: Anthropic, tools: Iterable[Any] = ()) -> tuple[BetaManagedAgentsAgent, BetaManagedAgentsSession]:
    """An agent and a session of it."""
    agent = client.beta.agents.create(name="helper", model="auto", tools=list(tools))
    environment = client.beta.environments.create(name="here", config={"type": "cloud"})
    return agent, client.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="A test")


def message(text: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def said(event: BetaManagedAgentsAgentMessageEvent) -> str:
    """The text of a message."""
    block = event.content[0]
    assert block.type == "text"
    return block.text


def follow(client: Anthropic, session: str, send: list[Any]) -> list[Any]:
    """Sends events and reads the stream until the session is idle."""
    seen: list[Any] = []
    with client.beta.sessions.events.stream(session_id=session) as stream:
        client.beta.sessions.events.send(session_id=session, events=send)
        for event in stream:
            seen.append(event)
            if event.type == "session.status_idle":
                break
    return seen


def test_objects_have_their_types(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello.", "repeat": True}]))
    agent, session = begin(client, [TOOLSET, WEATHER])
    assert isinstance(agent, BetaManagedAgentsAgent) and agent.version == 1
    assert agent.model.id == "auto" and agent.execution_identity.type == "service_account"
    toolset = agent.tools[0]
    assert toolset.type == "agent_toolset_20260401"
    assert toolset.configs[0].name == "bash" and toolset.configs[0].permission_policy.type == "always_ask"
    assert toolset.default_config.permission_policy.type == "always_allow"
    assert session.status == "idle" and session.agent.version == 1 and session.title == "A test"
    assert session.created_at <= session.updated_at
    updated = client.beta.agents.update(agent.id, version=1, system="Be brief.")
    assert updated.version == 2 and updated.system == "Be brief."
    assert [one.version for one in client.beta.agents.versions.list(agent.id)] == [2, 1]
    assert client.beta.agents.retrieve(agent.id, version=1).system is None
    assert [one.id for one in client.beta.agents.list(limit=1)] == [agent.id]
    assert [one.id for one in client.beta.sessions.list(agent_id=agent.id, statuses=["idle"])] == [session.id]
    environment = client.beta.environments.retrieve(session.environment_id)
    assert environment.config.type == "cloud" and environment.config.packages.pip == []
    assert client.beta.sessions.update(session.id, metadata={"a": "1"}).metadata == {"a": "1"}
    assert client.beta.models.retrieve("auto").display_name == "Auto"
    assert "auto" in [model.id for model in client.beta.models.list(limit=2)]


def test_a_conversation_over_the_stream(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "Hello."}, {"text": "Again."}]))
    _, session = begin(client)
    seen = follow(client, session.id, [message("hi")])
    kinds = [event.type for event in seen]
    assert kinds == [
        "user.message",
        "session.status_running",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.status_idle",
    ]
    assert seen[3].content[0].text == "Hello." and seen[-1].stop_reason.type == "end_turn"
    assert seen[4].model_request_start_id == seen[2].id and seen[4].model_usage.output_tokens > 0
    follow(client, session.id, [message("and again")])
    listed = list(client.beta.sessions.events.list(session_id=session.id, limit=2))
    assert [event.id for event in listed[: len(seen)]] == [event.id for event in seen]
    only = client.beta.sessions.events.list(session_id=session.id, types=["agent.message"], order="desc")
    texts = [said(event) for event in only if event.type == "agent.message"]
    assert texts == ["Again.", "Hello."]
    usage = client.beta.sessions.retrieve(session.id).usage
    assert usage.output_tokens and usage.list_cost and usage.list_cost.currency == "USD"


def test_an_approval(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "echo made > made.txt && ls"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    _, session = begin(client, [TOOLSET])
    seen = follow(client, session.id, [message("make it")])
    used = next(event for event in seen if event.type == "agent.tool_use")
    assert used.name == "bash" and used.evaluated_permission == "ask" and used.evaluation.type == "always_ask"
    assert seen[-1].stop_reason.type == "requires_action" and seen[-1].stop_reason.event_ids == [used.id]
    confirm: Any = {"type": "user.tool_confirmation", "tool_use_id": used.id, "result": "allow"}
    seen = follow(client, session.id, [confirm])
    result = next(event for event in seen if event.type == "agent.tool_result")
    assert result.tool_use_id == used.id and "made.txt" in result.content[0].text
    with pytest.raises(anthropic.ConflictError) as refused:
        client.beta.sessions.events.send(session_id=session.id, events=[confirm])
    assert refused.value.response.headers["x-should-retry"] == "false"


def test_an_approval_through_a_kill(serve: Callable[[Replies], Served]) -> None:
    served = serve([{"toolCalls": [{"name": "Bash", "input": {"command": "echo hi"}}]}, {"text": "Done."}])
    _, session = begin(client_of(served), [TOOLSET])
    asked = follow(client_of(served), session.id, [message("go")])[-1].stop_reason.event_ids[0]
    served.start_again()
    confirm: Any = {"type": "user.tool_confirmation", "tool_use_id": asked, "result": "deny", "deny_message": "No."}
    seen = follow(client_of(served), session.id, [confirm])
    result = next(event for event in seen if event.type == "agent.tool_result")
    assert result.is_error and "No." in result.content[0].text


def test_deltas(serve: Callable[[Replies], Served]) -> None:
    client = client_of(serve([{"text": "A longer text that comes in pieces, one after another."}]))
    _, session = begin(client)
    pieces: list[str] = []
    announced = None
    with client.beta.sessions.events.stream(session_id=session.id, event_deltas=["agent.message"]) as stream:
        client.beta.sessions.events.send(session_id=session.id, events=[message("go")])
        for event in stream:
            if event.type == "event_start":
                announced = event.event.id
            elif event.type == "event_delta":
                pieces.append(event.delta.content.text)
            elif event.type == "agent.message":
                assert event.id == announced and said(event) == "".join(pieces)
            elif event.type == "session.status_idle":
                break
    assert pieces


def test_an_interrupt_and_a_queued_message(serve: Callable[[Replies], Served]) -> None:
    slow = {"toolCalls": [{"name": "Bash", "input": {"command": "sleep 60"}}]}
    client = client_of(serve([slow, {"text": "Stopped."}]))
    allowed: Any = {"type": "agent_toolset_20260401"}
    _, session = begin(client, [allowed])
    with client.beta.sessions.events.stream(session_id=session.id) as stream:
        client.beta.sessions.events.send(session_id=session.id, events=[message("go")])
        for event in stream:
            if event.type == "agent.tool_use":
                queued = client.beta.sessions.events.send(session_id=session.id, events=[message("what now?")])
                assert queued.data and queued.data[0].processed_at is None
                client.beta.sessions.events.send(session_id=session.id, events=[{"type": "user.interrupt"}])
            if event.type == "session.status_idle":
                break
    events = client.beta.sessions.events.list(session.id)
    texts = [said(event) for event in events if event.type == "agent.message"]
    assert texts == ["Stopped."]


def test_a_result_that_is_sent_twice(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "get_weather", "input": {"city": "Oslo"}}]}
    client = client_of(serve([call, {"text": "It is sunny in Oslo."}]))
    _, session = begin(client, [WEATHER])
    seen = follow(client, session.id, [message("weather in Oslo?")])
    asked = next(event for event in seen if event.type == "agent.custom_tool_use")
    assert asked.name == "get_weather" and asked.input == {"city": "Oslo"}
    result: Any = {
        "type": "user.custom_tool_result",
        "custom_tool_use_id": asked.id,
        "content": [{"type": "text", "text": "sunny"}],
    }
    first = client.beta.sessions.events.send(session_id=session.id, events=[result])
    # Its helpers send a result again when they did not see the answer.
    again = client.beta.sessions.events.send(session_id=session.id, events=[result])
    assert first.data and again.data and first.data[0].id == again.data[0].id


@beta_async_tool
async def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def test_its_tool_runner(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "get_weather", "input": {"city": "Oslo"}}]}
    served = serve([call, {"text": "It is sunny in Oslo."}])
    _, session = begin(client_of(served), [WEATHER])

    async def run() -> list[Any]:
        client = AsyncAnthropic(api_key=served.token, base_url=served.url, max_retries=0)
        await client.beta.sessions.events.send(session_id=session.id, events=[message("weather?")])
        runner = client.beta.sessions.events.tool_runner(session.id, tools=[get_weather], max_idle=0.2)
        return [call async for call in runner]

    calls = asyncio.run(run())
    assert [call.name for call in calls] == ["get_weather"]
    events = list(client_of(served).beta.sessions.events.list(session_id=session.id, limit=1000))
    result = next(event for event in events if event.type == "user.custom_tool_result")
    assert result.content and "sunny in Oslo" in str(result.content[0])
    assert events[-1].type == "session.status_idle" and events[-1].stop_reason.type == "end_turn"


def test_errors_have_their_classes(serve: Callable[[Replies], Served]) -> None:
    served = serve([{"text": "Hello.", "repeat": True}])
    client = client_of(served)
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.beta.agents.retrieve("agent_00000000000000000000000000000000")
    assert missing.value.request_id and missing.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError):
        client.beta.agents.create(name="", model="auto")
    with pytest.raises(anthropic.AuthenticationError):
        Anthropic(api_key="pt-wrong", base_url=served.url, max_retries=0).beta.agents.list()
    _, session = begin(client)
    archived = client.beta.sessions.archive(session.id)
    assert archived.archived_at is not None
    with pytest.raises(anthropic.ConflictError):
        client.beta.sessions.events.send(session_id=session.id, events=[message("go")])
    assert client.beta.sessions.delete(session.id).type == "session_deleted"


def test_files_are_uploaded_read_by_a_session_and_deleted(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "cat table.csv; echo done > out.md"}}]}
    deliver = {"toolCalls": [{"name": "DeliverArtifacts", "input": {"paths": ["out.md"]}}]}
    client = client_of(serve([call, deliver, {"text": "Done."}]))
    file = client.beta.files.upload(file=("table.csv", b"a;b\n", "text/csv"), expires_in_seconds=3600)
    assert isinstance(file, BetaFileMetadata)
    assert (file.filename, file.mime_type, file.size_bytes, file.scope) == ("table.csv", "text/csv", 4, None)
    assert file.expires_at is not None and file.expires_at > file.created_at
    assert client.beta.files.download(file.id).read() == b"a;b\n"
    assert client.beta.files.retrieve_metadata(file.id) == file
    assert [one.id for one in client.beta.files.list(ids=[file.id, "file_unknown"])] == [file.id]
    agent, _ = begin(client, [{"type": "agent_toolset_20260401"}])
    environment = client.beta.environments.create(name="files", config={"type": "cloud"})
    session = client.beta.sessions.create(
        agent=agent.id,
        environment_id=environment.id,
        resources=[{"type": "file", "file_id": file.id, "mount_path": "/workspace/table.csv"}],
    )
    resource = session.resources[0]
    assert resource.type == "file" and resource.file_id == file.id and resource.mount_path == "/workspace/table.csv"
    seen = follow(client, session.id, [message("go")])
    results = [event for event in seen if event.type == "agent.tool_result"]
    assert "a;b" in results[0].content[0].text
    delivered = list(client.beta.files.list(scope_id=session.id))
    assert [one.filename for one in delivered] == ["out.md"]
    assert delivered[0].scope is not None and delivered[0].scope.id == session.id
    assert client.beta.files.download(delivered[0].id).read() == b"done\n"
    added = client.beta.sessions.resources.add(session.id, type="file", file_id=delivered[0].id)
    assert added.mount_path == f"/mnt/session/uploads/{delivered[0].id}"
    assert client.beta.files.delete(file.id).type == "file_deleted"
    with pytest.raises(anthropic.NotFoundError):
        client.beta.files.download(file.id)


def test_vaults_hold_credentials_that_are_never_shown(serve: Callable[[Replies], Served]) -> None:
    secret = "a-value-that-is-never-shown"
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "echo ${#REPORT_KEY} $REPORT_KEY"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    vault = client.beta.vaults.create(display_name="Team", metadata={"team": "docs"})
    assert isinstance(vault, BetaManagedAgentsVault) and vault.archived_at is None
    assert client.beta.vaults.update(vault.id, display_name="All").display_name == "All"
    assert [one.id for one in client.beta.vaults.list()] == [vault.id]
    made = client.beta.vaults.credentials.create(
        vault.id,
        auth={
            "type": "environment_variable",
            "secret_name": "REPORT_KEY",
            "secret_value": secret,
            "networking": {"type": "unrestricted"},
        },
    )
    assert made.auth.type == "environment_variable" and made.auth.secret_name == "REPORT_KEY"
    oauth = client.beta.vaults.credentials.create(
        vault.id,
        auth={
            "type": "mcp_oauth",
            "mcp_server_url": "http://127.0.0.1:9/mcp",
            "access_token": secret,
            "refresh": {
                "client_id": "c",
                "refresh_token": secret,
                "token_endpoint": "http://127.0.0.1:9/token",
                "token_endpoint_auth": {"type": "none"},
            },
        },
    )
    assert oauth.auth.type == "mcp_oauth" and oauth.auth.refresh is not None and oauth.auth.refresh.client_id == "c"
    validated = client.beta.vaults.credentials.mcp_oauth_validate(oauth.id, vault_id=vault.id)
    assert (validated.status, validated.has_refresh_token) == ("unknown", True)
    assert validated.mcp_probe is not None and validated.mcp_probe.method == "initialize"
    assert [one.id for one in client.beta.vaults.credentials.list(vault.id)] == [oauth.id, made.id]
    shown = client.beta.vaults.credentials.retrieve(made.id, vault_id=vault.id).to_json()
    assert secret not in shown and secret not in oauth.to_json()
    agent, _ = begin(client, [{"type": "agent_toolset_20260401"}])
    environment = client.beta.environments.create(name="vaults", config={"type": "cloud"})
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id, vault_ids=[vault.id])
    assert session.vault_ids == [vault.id]
    seen = follow(client, session.id, [message("go")])
    result = next(event for event in seen if event.type == "agent.tool_result").content[0].text
    assert str(len(secret)) in result and secret not in result
    assert client.beta.vaults.credentials.archive(oauth.id, vault_id=vault.id).archived_at is not None
    assert client.beta.vaults.credentials.delete(made.id, vault_id=vault.id).type == "vault_credential_deleted"
    assert client.beta.vaults.archive(vault.id).archived_at is not None
    assert client.beta.vaults.delete(vault.id).type == "vault_deleted"


SKILL = b"---\nname: report\ndescription: Writes reports.\n---\nBegin with the summary.\n"


def test_skills_are_uploaded_and_loaded_by_a_session(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Skill", "input": {"skill": "report"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    files = [("report/SKILL.md", SKILL), ("report/notes/style.md", b"Short sentences.")]
    skill = client.beta.skills.create(files=files, display_name="Reports")
    assert (skill.type, skill.display_name, skill.source.type) == ("skill", "Reports", "custom")
    version = client.beta.skills.versions.create(skill.id, files=files)
    assert (version.skill_id, version.name, version.description) == (skill.id, "report", "Writes reports.")
    assert client.beta.skills.retrieve(skill.id).latest_version_id == version.id
    assert [one.id for one in client.beta.skills.list()] == [skill.id]
    listed = [one.id for one in client.beta.skills.versions.list(skill.id)]
    assert listed == [version.id, skill.latest_version_id]
    archive = client.beta.skills.versions.download("latest", skill_id=skill.id).read()
    with zipfile.ZipFile(io.BytesIO(archive)) as unpacked:
        assert unpacked.namelist() == ["report/SKILL.md", "report/notes/style.md"]
        assert unpacked.read("report/SKILL.md") == SKILL
    environment = client.beta.environments.create(name="skills", config={"type": "cloud"})
    agent = client.beta.agents.create(
        name="writer",
        model="auto",
        tools=[{"type": "agent_toolset_20260401"}],
        skills=[{"type": "custom", "skill_id": skill.id}],
    )
    assert agent.skills[0].version == "latest"
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    assert session.agent.skills[0].version == version.id
    seen = follow(client, session.id, [message("go")])
    assert "Begin with the summary." in next(e for e in seen if e.type == "agent.tool_result").content[0].text
    deleted = client.beta.skills.versions.delete(version.id, skill_id=skill.id)
    assert (deleted.id, deleted.type) == (version.id, "skill_version_deleted")
    assert client.beta.skills.delete(skill.id).type == "skill_deleted"


def test_memory_stores_are_read_and_changed_by_a_session(serve: Callable[[Replies], Served]) -> None:
    call = {"toolCalls": [{"name": "Bash", "input": {"command": "cd ../session/memory/notes && cat a.md && echo b > b.md"}}]}
    client = client_of(serve([call, {"text": "Done."}]))
    store = client.beta.memory_stores.create(name="Notes")
    assert isinstance(store, BetaManagedAgentsMemoryStore) and store.description == ""
    memories = client.beta.memory_stores.memories
    memory = memories.create(store.id, path="/a.md", content="What we know.")
    assert isinstance(memory, BetaManagedAgentsMemory) and memory.content is None
    lock: Any = {"type": "content_sha256", "content_sha256": memory.content_sha256}
    memories.update(memory.id, memory_store_id=store.id, content="What we learned.", precondition=lock)
    with pytest.raises(anthropic.ConflictError):
        memories.update(memory.id, memory_store_id=store.id, content="Too late.", precondition=lock)
    assert memories.retrieve(memory.id, memory_store_id=store.id).content == "What we learned."
    agent = client.beta.agents.create(name="helper", model="auto", tools=[{"type": "agent_toolset_20260401"}])
    session = client.beta.sessions.create(
        agent=agent.id,
        environment_id=client.beta.environments.create(name="here").id,
        resources=[{"type": "memory_store", "memory_store_id": store.id, "instructions": "Keep decisions."}],
    )
    mounted = session.resources[0]
    assert isinstance(mounted, BetaManagedAgentsMemoryStoreResource)
    assert (mounted.mount_path, mounted.access) == ("/mnt/memory/notes", "read_write")
    events = follow(client, session.id, [message("go")])
    results = [event for event in events if event.type == "agent.tool_result"]
    assert "What we learned." in str(results[0].content)
    listed = list(memories.list(store.id, path_prefix="/", view="full"))
    assert [(one.path, getattr(one, "content", None)) for one in listed] == [("/a.md", "What we learned."), ("/b.md", "b\n")]
    versions = list(client.beta.memory_stores.memory_versions.list(store.id, memory_id=memory.id))
    assert [one.operation for one in versions] == ["modified", "created"]
    redacted = client.beta.memory_stores.memory_versions.redact(versions[1].id, memory_store_id=store.id)
    assert redacted.content is None and redacted.redacted_at is not None
    assert [one.id for one in client.beta.sessions.list(memory_store_id=store.id)] == [session.id]
    assert memories.delete(memory.id, memory_store_id=store.id).type == "memory_deleted"
    assert client.beta.memory_stores.archive(store.id).archived_at is not None
    assert client.beta.memory_stores.delete(store.id).type == "memory_store_deleted"


def test_threads_of_a_coordinator_and_the_tool_runner(serve: Callable[[Replies], Served]) -> None:
    delegate = {"toolCalls": [{"name": "Agent", "input": {"agent": "reader", "prompt": "Ask for the weather."}}]}
    of_reader = {"when": {"purpose": "subagent"}}
    call = {**of_reader, "toolCalls": [{"name": "get_weather", "input": {"city": "Oslo"}}]}
    main = {"when": {"purpose": "main"}}
    served = serve([{**main, **delegate}, call, {**of_reader, "text": "It rains."}, {**main, "text": "Take an umbrella."}])
    client = client_of(served)
    reader = client.beta.agents.create(name="reader", model="auto", tools=[WEATHER])
    lead = client.beta.agents.create(
        name="lead", model="auto", multiagent={"type": "coordinator", "agents": [reader.id, {"type": "self"}]}
    )
    assert lead.multiagent is not None and lead.multiagent.type == "coordinator"
    session = client.beta.sessions.create(agent=lead.id, environment_id=client.beta.environments.create(name="here").id)
    roster = session.agent.multiagent
    assert roster is not None and roster.type == "coordinator"
    assert [getattr(agent, "name", None) for agent in roster.agents] == ["reader", "lead"]
    client.beta.sessions.events.send(session.id, events=[message("go")])

    async def run() -> list[str]:
        async with AsyncAnthropic(api_key=served.token, base_url=served.url) as runner_client:
            runner = runner_client.beta.sessions.events.tool_runner(session.id, tools=[get_weather], max_idle=0.5)
            return [call.name async for call in runner]

    assert asyncio.run(run()) == ["get_weather"]
    threads = list(client.beta.sessions.threads.list(session.id))
    assert all(isinstance(thread, BetaManagedAgentsSessionThread) for thread in threads)
    primary, child = threads
    assert (primary.parent_thread_id, child.parent_thread_id) == (None, primary.id)
    assert child.agent.type == "agent" and child.agent.name == "reader"
    events = list(client.beta.sessions.threads.events.list(child.id, session_id=session.id))
    received = next(event for event in events if event.type == "agent.thread_message_received")
    assert received.from_session_thread_id == primary.id
    results = [event for event in events if event.type == "user.custom_tool_result"]
    assert [event.session_thread_id for event in results] == [child.id]
    assert client.beta.sessions.threads.archive(child.id, session_id=session.id).archived_at is not None
