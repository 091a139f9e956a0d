"""Webhooks of `qodercli serve`: managed by the unmodified `qca-sdk`, verified by the helpers of `qca-sdk` and `anthropic`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from anthropic import Anthropic
from qca.forward import Forward
from qca.forward.webhook_signature import WebhookVerificationError, verify_webhook_signature
from qca.managed import Managed

from conftest import Replies, Served

Notice = tuple[dict[str, str], bytes]


@pytest.fixture
def receiver() -> Iterator[tuple[str, queue.Queue[Notice]]]:
    """An endpoint that takes every notice."""
    notices: queue.Queue[Notice] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            notices.put((dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", notices
    server.shutdown()
    server.server_close()


def test_endpoints_and_signatures(
    serve: Callable[[Replies], Served], receiver: tuple[str, queue.Queue[Notice]]
) -> None:
    served = serve([{"text": "Hello."}])
    url, notices = receiver
    forward: Any = Forward(access_token=served.token, base_url=f"{served.url}/api/v1/cloud", max_retries=0)
    managed: Any = Managed(access_token=served.token, base_url=f"{served.url}/api/v1/cloud", max_retries=0)
    endpoints = forward.webhooks.endpoints
    created = endpoints.create(url=url, events=["session.status_idled"], description="ours", metadata={"team": "docs"})
    secret = created.signing_secret
    assert secret.startswith("whsec_") and created.active
    assert [endpoint.id for endpoint in endpoints.list()] == [created.id]
    updated = endpoints.update(created.id, events=["session.created", "session.status_idled"], metadata={"team": None})
    assert updated.metadata == {} and updated.consecutive_fail == 0

    agent = managed.agents.create(name="helper", model="auto")
    environment = managed.environments.create(name="here", config={"type": "cloud"})
    session = managed.sessions.create(agent=agent.id, environment_id=environment.id)
    managed.sessions.events.send(
        session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "hi"}]}]
    )
    claude = Anthropic(api_key=served.token, base_url=served.url, webhook_key=secret)
    kinds = []
    for _ in range(2):
        headers, body = notices.get(timeout=30)
        verify_webhook_signature(body, headers, secret)
        event = claude.beta.webhooks.unwrap(body.decode(), headers={key.lower(): value for key, value in headers.items()})
        data: Any = event.data
        assert event.id == headers["webhook-id"] and data.id == session.id
        assert data.workspace_id == data.organization_id
        kinds.append(type(data).__name__)
        with pytest.raises(WebhookVerificationError):
            verify_webhook_signature(body + b" ", headers, secret)
    assert sorted(kinds) == ["BetaWebhookSessionCreatedEventData", "BetaWebhookSessionStatusIdledEventData"]

    assert not endpoints.disable(created.id).active
    assert endpoints.enable(created.id).active
    assert endpoints.test(created.id).delivery_rows == 1
    headers, body = notices.get(timeout=30)
    verify_webhook_signature(body, headers, secret)
    assert headers["webhook-event-type"] == "webhook.test"
    endpoints.delete(created.id)
    assert list(endpoints.list()) == []
