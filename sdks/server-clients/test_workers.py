"""The unmodified workers of the `anthropic` package against the queue of `qodercli serve`."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from anthropic import Anthropic, AsyncAnthropic, PreconditionFailedError
from anthropic.lib.environments import EnvironmentWorker
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

from conftest import Replies, Served, environment

import pytest

LONGEST = 60.0


def client_of(served: Served) -> Anthropic:
    return Anthropic(api_key=served.token, base_url=served.url, max_retries=0)


def key_of(served: Served, folder: Path, environment_id: str) -> str:
    """The key of an environment."""
    command = [os.environ["QODERCLI_PATH"], "serve", "token", "create", "--user", "worker", "--tenant", "ana"]
    command += ["--scopes", f"environment:{environment_id}", "--data-dir", str(folder / "data")]
    made = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=True)
    return made.stdout.split()[-1]


def begin(client: Anthropic, policies: Iterable[tuple[str, str]] = ()) -> tuple[str, str]:
    """A self-hosted environment and a session in it."""
    configs: Any = [{"type": name, "name": name, "permission_policy": {"type": word}} for name, word in policies]
    tools: Any = [{"type": "agent_toolset_20260401", "configs": configs}]
    agent = client.beta.agents.create(name="helper", model="auto", tools=tools)
    made = client.beta.environments.create(name="ours", config={"type": "self_hosted"})
    return made.id, client.beta.sessions.create(agent=agent.id, environment_id=made.id).id


def message(text: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


async def until_end(client: AsyncAnthropic, session: str, approve: bool = False) -> list[Any]:
    """Reads a session until its turn is over."""
    seen: list[Any] = []
    async with await client.beta.sessions.events.stream(session) as stream:
        await client.beta.sessions.events.send(session, events=[message("go")])
        async for event in stream:
            seen.append(event)
            if approve and event.type == "agent.tool_use" and event.evaluated_permission == "ask":
                answer: Any = {"type": "user.tool_confirmation", "tool_use_id": event.id, "result": "allow"}
                await client.beta.sessions.events.send(session, events=[answer])
            if event.type == "session.status_idle" and event.stop_reason.type == "end_turn":
                return seen
    return seen


def test_the_worker_serves_sessions(serve: Callable[[Replies], Served], tmp_path: Path) -> None:
    write = {"toolCalls": [{"name": "write", "input": {"file_path": "notes/a.txt", "content": "alpha\n"}}]}
    look = {"toolCalls": [{"name": "bash", "input": {"command": "cat notes/a.txt; pwd"}}]}
    served = serve([write, look, {"text": "Written."}])
    client = client_of(served)
    environment_id, session = begin(client, [("write", "always_ask")])
    key = key_of(served, tmp_path, environment_id)
    workdir = tmp_path / "work"
    workdir.mkdir()

    async def both() -> list[Any]:
        reader = AsyncAnthropic(api_key=served.token, base_url=served.url, max_retries=0)
        own = AsyncAnthropic(api_key="none", base_url=served.url)
        worker = EnvironmentWorker(
            own, environment_id=environment_id, environment_key=key, workdir=workdir, max_idle=1.0
        )
        running = asyncio.create_task(worker.run())
        try:
            seen = await asyncio.wait_for(until_end(reader, session, approve=True), LONGEST)

            async def stopped() -> None:
                while client.beta.environments.work.list(environment_id).data[0].state != "stopped":
                    await asyncio.sleep(0.05)

            # It gives the item back when nothing is left to do.
            await asyncio.wait_for(stopped(), LONGEST)
            return seen
        finally:
            running.cancel()

    seen = asyncio.run(both())
    assert (workdir / "notes" / "a.txt").read_text() == "alpha\n"
    results = [event for event in seen if event.type == "user.tool_result"]
    assert len(results) == 2 and not any(result.is_error for result in results)
    assert "alpha" in results[1].content[0].text and str(workdir) in results[1].content[0].text
    uses = [event for event in seen if event.type == "agent.tool_use"]
    assert [(use.name, use.evaluated_permission) for use in uses] == [("write", "ask"), ("bash", "allow")]
    item = client.beta.environments.work.list(environment_id).data[0]
    assert item.data.id == session and item.started_at is not None and item.secret is None


def test_the_tool_runner_answers_calls(serve: Callable[[Replies], Served], tmp_path: Path) -> None:
    call = {"toolCalls": [{"name": "bash", "input": {"command": "echo from-the-runner"}}]}
    served = serve([call, {"text": "Done."}])
    client = client_of(served)
    _, session = begin(client)
    client.beta.sessions.events.send(session, events=[message("go")])

    async def run() -> list[Any]:
        own = AsyncAnthropic(api_key=served.token, base_url=served.url, max_retries=0)
        called: list[Any] = []
        async with AgentToolContext(workdir=str(tmp_path)) as context:
            tools = beta_agent_toolset_20260401(context)
            async for call in own.beta.sessions.events.tool_runner(session, tools=tools, max_idle=0.5):
                called.append(call)
        return called

    called = asyncio.run(asyncio.wait_for(run(), LONGEST))
    assert [(call.name, call.posted, call.is_error) for call in called] == [("bash", True, False)]
    listed = client.beta.sessions.events.list(session)
    brought: Any = next(event for event in listed if event.type == "user.tool_result")
    assert "from-the-runner" in brought.content[0].text


def test_a_lease_is_refused_to_a_worker_that_lost_it(serve: Callable[[Replies], Served], tmp_path: Path) -> None:
    client = client_of(serve([{"text": "Hello.", "repeat": True}]))
    environment_id, session = begin(client)
    work = client.beta.environments.work
    item = work.poll(environment_id, anthropic_worker_id="one")
    assert item is not None and item.data.id == session and item.secret
    assert work.poll(environment_id) is None
    assert work.ack(item.id, environment_id=environment_id).state == "starting"
    first = work.heartbeat(item.id, environment_id=environment_id, expected_last_heartbeat="NO_HEARTBEAT")
    assert first.lease_extended and first.state == "active" and first.ttl_seconds == 90
    with pytest.raises(PreconditionFailedError) as refused:
        work.heartbeat(item.id, environment_id=environment_id, expected_last_heartbeat="NO_HEARTBEAT")
    body: Any = refused.value.body
    assert body["error"]["details"]["current_state"]["last_heartbeat"] == first.last_heartbeat
    assert work.update(item.id, environment_id=environment_id, metadata={"a": "b"}).metadata == {"a": "b"}
    stats = work.stats(environment_id)
    assert (stats.depth, stats.pending, stats.workers_polling) == (0, 0, 1)
    assert work.stop(item.id, environment_id=environment_id, force=True).state == "stopped"
