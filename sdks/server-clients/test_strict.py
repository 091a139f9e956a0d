"""Every method of the `anthropic` package that the server answers, once: each object has all keys that its type requires."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from anthropic import Anthropic

from conftest import Replies, Served

BASH: Any = {
    "type": "agent_toolset_20260401",
    "configs": [{"type": "bash", "name": "bash", "permission_policy": {"type": "always_ask"}}],
}
LOOKUP: Any = {"type": "custom", "name": "lookup", "description": "d", "input_schema": {"type": "object"}}
DEAD = "http://127.0.0.1:9"


def whole(value: Any) -> Any:
    """The object, after its own type has read it strictly: the client itself forgives what is missing."""
    type(value).model_validate_json(value.to_json(exclude_unset=True))
    return value


def every(values: Iterable[Any]) -> list[Any]:
    """The same for each object of a list, which is not empty."""
    listed = [whole(value) for value in values]
    assert listed
    return listed


def text(words: str) -> Any:
    return {"type": "text", "text": words}


def given(client: Any) -> tuple[Any, Any, Any, Any]:
    """Files, skills, vaults and memory stores."""
    file = whole(client.files.upload(file=("t.csv", b"a;b")))
    whole(client.files.retrieve_metadata(file.id))
    every(client.files.list())
    content = b"---\nname: rep\ndescription: Writes.\n---\nx\n"
    skill = whole(client.skills.create(files=[("rep/SKILL.md", content)]))
    version = whole(client.skills.versions.create(skill.id, files=[("rep/SKILL.md", content + b"y")]))
    whole(client.skills.versions.retrieve(version.id, skill_id=skill.id))
    assert client.skills.versions.download(version.id, skill_id=skill.id).read().startswith(b"PK")
    every(client.skills.versions.list(skill.id))
    whole(client.skills.retrieve(skill.id))
    every(client.skills.list())
    whole(client.skills.versions.delete(version.id, skill_id=skill.id))
    whole(client.skills.delete(skill.id))
    vault = whole(client.vaults.create(display_name="v"))
    whole(client.vaults.update(vault.id, display_name="w"))
    whole(client.vaults.retrieve(vault.id))
    every(client.vaults.list())
    static = {"type": "static_bearer", "mcp_server_url": f"{DEAD}/mcp", "token": "a-secret-token"}
    credential = whole(client.vaults.credentials.create(vault.id, auth=static))
    whole(client.vaults.credentials.update(credential.id, vault_id=vault.id, display_name="q"))
    whole(client.vaults.credentials.retrieve(credential.id, vault_id=vault.id))
    refresh = {
        "client_id": "c",
        "refresh_token": "r",
        "token_endpoint": f"{DEAD}/token",
        "token_endpoint_auth": {"type": "none"},
    }
    oauth = {"type": "mcp_oauth", "mcp_server_url": f"{DEAD}/o", "access_token": "another-token", "refresh": refresh}
    renewed = whole(client.vaults.credentials.create(vault.id, auth=oauth))
    whole(client.vaults.credentials.mcp_oauth_validate(renewed.id, vault_id=vault.id))
    every(client.vaults.credentials.list(vault.id))
    whole(client.vaults.credentials.archive(renewed.id, vault_id=vault.id))
    whole(client.vaults.credentials.delete(renewed.id, vault_id=vault.id))
    store = whole(client.memory_stores.create(name="notes"))
    whole(client.memory_stores.update(store.id, description="d"))
    whole(client.memory_stores.retrieve(store.id))
    every(client.memory_stores.list())
    memory = whole(client.memory_stores.memories.create(store.id, path="/d/a.md", content="x"))
    whole(client.memory_stores.memories.retrieve(memory.id, memory_store_id=store.id))
    lock = {"type": "content_sha256", "content_sha256": memory.content_sha256}
    whole(client.memory_stores.memories.update(memory.id, memory_store_id=store.id, content="y", precondition=lock))
    every(client.memory_stores.memories.list(store.id))
    every(client.memory_stores.memories.list(store.id, depth=1, path_prefix="/"))
    versions = every(client.memory_stores.memory_versions.list(store.id))
    whole(client.memory_stores.memory_versions.retrieve(versions[-1].id, memory_store_id=store.id))
    whole(client.memory_stores.memory_versions.redact(versions[-1].id, memory_store_id=store.id))
    return file, vault, store, memory


def definitions(client: Any) -> tuple[Any, Any]:
    """Agents, environments and models."""
    server = {"type": "url", "name": "m", "url": f"{DEAD}/mcp"}
    tools = [BASH, LOOKUP, {"type": "mcp_toolset", "mcp_server_name": "m"}]
    agent = whole(client.agents.create(name="a", model={"id": "auto", "effort": "high"}, tools=tools, mcp_servers=[server]))
    agent = whole(client.agents.update(agent.id, version=agent.version, mcp_servers=[], tools=[BASH, LOOKUP]))
    whole(client.agents.retrieve(agent.id))
    every(client.agents.list())
    every(client.agents.versions.list(agent.id))
    limited = {"type": "limited", "allowed_hosts": ["example.com"], "allow_mcp_servers": True}
    strict = whole(client.environments.create(name="e", config={"type": "cloud", "networking": limited}))
    whole(client.environments.update(strict.id, description="q"))
    whole(client.environments.archive(strict.id))
    whole(client.environments.delete(strict.id))
    environment = whole(client.environments.create(name="here"))
    whole(client.environments.retrieve(environment.id))
    every(client.environments.list())
    every(client.models.list())
    whole(client.models.retrieve("auto"))
    return agent, environment


def deployments(client: Any, agent: Any, environment: Any) -> None:
    """Deployments and their runs."""
    deployment = whole(
        client.deployments.create(
            name="d",
            agent=agent.id,
            environment_id=environment.id,
            initial_events=[{"type": "user.message", "content": [text("go")]}],
            schedule={"type": "cron", "expression": "0 0 1 1 *", "timezone": "Europe/Oslo"},
        )
    )
    whole(client.deployments.update(deployment.id, name="e"))
    whole(client.deployments.retrieve(deployment.id))
    every(client.deployments.list())
    whole(client.deployments.pause(deployment.id))
    whole(client.deployments.unpause(deployment.id))
    run = whole(client.deployments.run(deployment.id))
    whole(client.deployment_runs.retrieve(run.id))
    every(client.deployment_runs.list(deployment_id=deployment.id))
    whole(client.deployments.archive(deployment.id))


def turn(client: Any, session: str, events: list[Any]) -> Any:
    """Sends events and reads the stream until the session is idle."""
    deltas = ["agent.message", "agent.thinking"]
    with client.sessions.events.stream(session_id=session, event_deltas=deltas) as stream:
        client.sessions.events.send(session_id=session, events=events)
        for event in stream:
            if whole(event).type == "session.status_idle":
                return event
    raise AssertionError("the stream ended")


def test_every_object_is_whole(serve: Callable[[Replies], Served]) -> None:
    bash = {"thinking": "hm", "text": "x", "toolCalls": [{"name": "Bash", "input": {"command": "echo hi"}}]}
    lookup = {"toolCalls": [{"name": "lookup", "input": {}}]}
    served = serve([bash, lookup, {"text": "Done.", "repeat": True}])
    client: Any = Anthropic(api_key=served.token, base_url=served.url, max_retries=0).beta
    file, vault, store, memory = given(client)
    agent, environment = definitions(client)
    deployments(client, agent, environment)
    budget = {"type": "limit", "max_list_cost": {"amount": "1.00", "currency": "USD"}}
    session = whole(
        client.sessions.create(
            agent={"type": "agent_with_overrides", "id": agent.id, "system": "Be brief."},
            environment_id=environment.id,
            vault_ids=[vault.id],
            resources=[{"type": "file", "file_id": file.id}, {"type": "memory_store", "memory_store_id": store.id}],
            budget=budget,
        )
    )
    whole(client.sessions.retrieve(session.id))
    whole(client.sessions.update(session.id, title="u"))
    every(client.sessions.list())
    resources = every(client.sessions.resources.list(session.id))
    mounted = next(resource for resource in resources if resource.type == "file")
    whole(client.sessions.resources.retrieve(mounted.id, session_id=session.id))
    added = whole(client.sessions.resources.add(session.id, type="file", file_id=client.files.upload(file=("u", b"u")).id))
    whole(client.sessions.resources.delete(added.id, session_id=session.id))
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"}
    message = {"type": "user.message", "content": [text("hi"), document]}
    idle = turn(client, session.id, [{"type": "system.message", "content": [text("Be nice.")]}, message])
    denied = {"type": "user.tool_confirmation", "tool_use_id": idle.stop_reason.event_ids[0], "result": "deny"}
    idle = turn(client, session.id, [denied])
    brought = {"type": "user.custom_tool_result", "custom_tool_use_id": idle.stop_reason.event_ids[0], "is_error": True}
    assert turn(client, session.id, [{**brought, "content": [text("none")]}]).stop_reason.type == "end_turn"
    every(client.sessions.events.list(session.id, limit=3))
    thread = every(client.sessions.threads.list(session.id))[0]
    whole(client.sessions.threads.retrieve(thread.id, session_id=session.id))
    every(client.sessions.threads.events.list(thread.id, session_id=session.id))
    whole(client.memory_stores.memories.delete(memory.id, memory_store_id=store.id))
    whole(client.memory_stores.archive(store.id))
    whole(client.memory_stores.delete(store.id))
    whole(client.vaults.archive(vault.id))
    whole(client.vaults.delete(vault.id))
    whole(client.sessions.archive(session.id))
    whole(client.sessions.delete(session.id))
    whole(client.files.delete(file.id))
    whole(client.agents.archive(agent.id))
