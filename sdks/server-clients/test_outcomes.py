"""Outcomes of `qodercli serve` by the unmodified `anthropic` and `qca-sdk` packages: typed events and evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from anthropic import Anthropic
from anthropic.types.beta.sessions import BetaManagedAgentsSpanOutcomeEvaluationEndEvent
from qca.managed import Managed

from conftest import Replies, Served

OUTCOME: Any = {
    "type": "user.define_outcome",
    "description": "Write a report.",
    "rubric": {"type": "text", "content": "It has a title."},
    "max_iterations": 2,
}


def replies() -> Replies:
    """Two drafts; the grader is satisfied with the second one."""

    def grade(result: str) -> str:
        return json.dumps({"result": result, "explanation": f"It is {result}."})

    return [
        {"when": {"purpose": "grading", "contains": "# A title"}, "text": grade("satisfied")},
        {"when": {"purpose": "grading"}, "text": grade("needs_revision")},
        {"when": {"contains": "Revise the work."}, "text": "# A title"},
        {"text": "Some words."},
    ]


def test_the_claude_dialect(serve: Callable[[Replies], Served]) -> None:
    served = serve(replies())
    client = Anthropic(api_key=served.token, base_url=served.url)
    agent = client.beta.agents.create(name="helper", model="auto")
    environment = client.beta.environments.create(name="here", config={"type": "cloud"})
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    ends = []
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.events.send(session.id, events=[OUTCOME])
        for event in stream:
            if isinstance(event, BetaManagedAgentsSpanOutcomeEvaluationEndEvent):
                ends.append(event)
            if event.type == "session.status_idle":
                break
    assert [(end.iteration, end.result) for end in ends] == [(0, "needs_revision"), (1, "satisfied")]
    assert ends[0].explanation == "It is needs_revision." and ends[0].usage is not None
    evaluation = client.beta.sessions.retrieve(session.id).outcome_evaluations[0]
    assert (evaluation.result, evaluation.iteration) == ("satisfied", 1)
    assert evaluation.outcome_id == ends[0].outcome_id and evaluation.completed_at is not None


def test_the_qoder_dialect(serve: Callable[[Replies], Served]) -> None:
    served = serve(replies())
    client: Any = Managed(access_token=served.token, base_url=f"{served.url}/api/v1/cloud", max_retries=0)
    agent = client.agents.create(name="helper", model="auto")
    environment = client.environments.create(name="here", config={"type": "cloud"})
    session = client.sessions.create(agent=agent.id, environment_id=environment.id)
    client.sessions.events.send(session.id, events=[OUTCOME])
    while client.sessions.retrieve(session.id).status != "idle":
        pass
    evaluation = client.sessions.retrieve(session.id).outcome_evaluations[0]
    found = evaluation if isinstance(evaluation, dict) else evaluation.model_dump()
    assert found["result"] == "satisfied" and found["iteration"] == 1
