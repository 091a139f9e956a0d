"""Deployments of `qodercli serve` by the unmodified `anthropic` and `qca-sdk` packages: typed objects, runs and schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anthropic import Anthropic
from anthropic.types.beta import BetaManagedAgentsDeployment, BetaManagedAgentsDeploymentRun
from qca.managed import Managed

from conftest import Replies, Served

MESSAGE: Any = {"type": "user.message", "content": [{"type": "text", "text": "look around"}]}
NIGHTLY: Any = {"type": "cron", "expression": "0 3 * * *", "timezone": "Europe/Berlin"}


def test_the_claude_dialect(serve: Callable[[Replies], Served]) -> None:
    served = serve([{"text": "Done."}])
    client = Anthropic(api_key=served.token, base_url=served.url)
    agent = client.beta.agents.create(name="helper", model="auto")
    environment = client.beta.environments.create(name="here", config={"type": "cloud"})
    created = client.beta.deployments.create(
        name="nightly", agent=agent.id, environment_id=environment.id, initial_events=[MESSAGE], schedule=NIGHTLY
    )
    assert isinstance(created, BetaManagedAgentsDeployment)
    assert created.schedule is not None and created.schedule.upcoming_runs_at is not None
    assert len(created.schedule.upcoming_runs_at) == 5 and created.agent.version == 1
    assert created.initial_events[0].type == "user.message"
    paused = client.beta.deployments.pause(created.id)
    assert paused.paused_reason is not None and paused.paused_reason.type == "manual"
    assert client.beta.deployments.unpause(created.id).status == "active"
    run = client.beta.deployments.run(created.id)
    assert isinstance(run, BetaManagedAgentsDeploymentRun) and run.session_id is not None
    assert client.beta.sessions.retrieve(run.session_id).deployment_id == created.id
    assert [each.id for each in client.beta.deployment_runs.list(deployment_id=created.id)] == [run.id]
    assert client.beta.deployment_runs.retrieve(run.id).trigger_context.type == "manual"
    assert client.beta.deployments.update(created.id, name="weekly").name == "weekly"
    assert [each.id for each in client.beta.deployments.list(agent_id=agent.id)] == [created.id]
    assert client.beta.deployments.archive(created.id).archived_at is not None
    assert list(client.beta.deployments.list()) == []


def test_the_qoder_dialect(serve: Callable[[Replies], Served]) -> None:
    served = serve([{"text": "Done."}])
    client: Any = Managed(access_token=served.token, base_url=f"{served.url}/api/v1/cloud", max_retries=0)
    agent = client.agents.create(name="helper", model="auto")
    environment = client.environments.create(name="here", config={"type": "cloud"})
    created = client.deployments.create(
        name="nightly",
        agent=agent.id,
        environment_id=environment.id,
        initial_events=[MESSAGE],
        schedule=NIGHTLY,
        environment_variables='{"GREETING": "hello"}',
    )
    assert created.status == "active" and created.schedule.timezone == "Europe/Berlin"
    run = client.deployments.run(created.id)
    session = client.sessions.retrieve(run.session_id)
    assert session.deployment_id == created.id and session.environment_variables == {"GREETING": "hello"}
    assert [each.id for each in client.deployment_runs.list(deployment_id=created.id)] == [run.id]
    assert client.deployments.pause(created.id).paused_reason.type == "manual"
    assert [each.id for each in client.deployments.list(status="paused")] == [created.id]
    assert client.deployments.archive(created.id).archived_at is not None
