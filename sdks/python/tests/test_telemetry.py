"""Telemetry as others read it: what the runtime sends is decoded with the messages that OpenTelemetry publishes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from support.model_server import model_server

from qoder_agent_sdk import QoderAgentOptions, QueryResultError, query

pytestmark = pytest.mark.anyio

TOKEN_BOUNDS = [4.0**power for power in range(14)]
SECOND_BOUNDS = [round(0.01 * 2**power, 2) for power in range(14)]


class Collector:
    """Takes what is sent and decodes it; unknown fields are an error."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/metrics": []}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.headers["content-type"] == "application/x-protobuf"
                collector.bodies[self.path].append(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def spans(self) -> list[Span]:
        found = []
        for body in self.bodies["/v1/traces"]:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                assert plain(resource.resource.attributes)["service.name"] == "tested"
                for scope in resource.scope_spans:
                    assert scope.scope.name == "qoder" and scope.scope.version
                    found.extend(scope.spans)
        return found

    def metrics(self) -> dict[str, Any]:
        """The metrics of the last time they were sent; they are sums since the start."""
        sent = ExportMetricsServiceRequest.FromString(self.bodies["/v1/metrics"][-1])
        return {
            metric.name: metric
            for resource in sent.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes as a dictionary."""
    values: dict[str, Any] = {}
    for pair in attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        values[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return values


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


def observed(collector: Collector, **env: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_SERVICE_NAME": "tested", **env}


async def run(options: QoderAgentOptions) -> None:
    async for _ in query(prompt="go", options=options):
        pass


async def test_spans_of_a_session_with_a_tool(scripted: Any, project: Path, collector: Collector) -> None:
    (project / "a.txt").write_text("text")
    call = {"name": "Read", "id": "toolu_read", "input": {"file_path": "a.txt"}}
    usage = {"input_tokens": 100, "output_tokens": 77, "cache_read_input_tokens": 900}
    await run(scripted({"toolCalls": [call]}, {"text": "done", "usage": usage}, env=observed(collector)))
    spans = collector.spans()
    named = {span.name: span for span in spans}
    turn = named["invoke_agent qodercli"]
    attributes = plain(turn.attributes)
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["gen_ai.provider.name"] == "scripted"
    assert attributes["gen_ai.conversation.id"] and len(turn.trace_id) == 16 and len(turn.span_id) == 8
    assert turn.kind == Span.SPAN_KIND_INTERNAL and not turn.parent_span_id
    tool = named["execute_tool Read"]
    attributes = plain(tool.attributes)
    assert (tool.parent_span_id, tool.kind) == (turn.span_id, Span.SPAN_KIND_INTERNAL)
    assert (attributes["gen_ai.tool.name"], attributes["gen_ai.tool.call.id"]) == ("Read", "toolu_read")
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    chats = [span for span in spans if span.name == "chat scripted"]
    assert len(chats) == 2 and all(chat.kind == Span.SPAN_KIND_CLIENT for chat in chats)
    attributes = plain(chats[1].attributes)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert (attributes["gen_ai.request.model"], attributes["gen_ai.response.model"]) == ("scripted", "scripted")
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (1000, 77)
    assert attributes["gen_ai.response.finish_reasons"] == ["end_turn"]
    for span in spans:
        assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.status.code == Status.STATUS_CODE_UNSET and "error.type" not in plain(span.attributes)


async def test_metrics_have_the_units_and_buckets_of_the_conventions(scripted: Any, collector: Collector) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 77}
    await run(scripted({"text": "done", "usage": usage}, env=observed(collector)))
    metrics = collector.metrics()
    tokens = metrics["gen_ai.client.token.usage"]
    assert tokens.unit == "{token}"
    points = {plain(point.attributes)["gen_ai.token.type"]: point for point in tokens.histogram.data_points}
    assert {kind: (point.count, point.sum) for kind, point in points.items()} == {"input": (1, 1000), "output": (1, 77)}
    for point in points.values():
        assert list(point.explicit_bounds) == TOKEN_BOUNDS
        assert sum(point.bucket_counts) == 1 and len(point.bucket_counts) == len(TOKEN_BOUNDS) + 1
    duration = metrics["gen_ai.client.operation.duration"]
    assert duration.unit == "s"
    (point,) = duration.histogram.data_points
    assert list(point.explicit_bounds) == SECOND_BOUNDS
    assert plain(point.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
    }
    assert duration.histogram.aggregation_temporality == 2, "sums since the start of the process"


@pytest.mark.parametrize(("named", "expected"), [("mine", "openai"), ("deepseek", "deepseek")])
async def test_the_provider_is_the_one_that_was_asked(
    project: Path, collector: Collector, named: str, expected: str
) -> None:
    """A model with the name of one maker, served by another."""
    with model_server() as server:
        provider = {"protocol": "openai-chat", "baseUrl": server.url, "models": ["claude-sonnet-4-5"]}
        settings = {"providers": {named: provider}}
        options = QoderAgentOptions(
            cwd=project, model=f"{named}/claude-sonnet-4-5", settings=settings, env=observed(collector)
        )
        await run(options)
    (chat,) = [span for span in collector.spans() if span.name.startswith("chat ")]
    attributes = plain(chat.attributes)
    assert attributes["gen_ai.provider.name"] == expected
    assert attributes["gen_ai.request.model"] == "claude-sonnet-4-5"


async def test_a_failed_call_has_an_error_type_and_no_usage(project: Path, collector: Collector) -> None:
    with model_server() as server:
        server.status = 401
        settings = {"providers": {"mine": {"protocol": "openai-chat", "baseUrl": server.url}}}
        with pytest.raises(QueryResultError, match="401"):
            await run(QoderAgentOptions(cwd=project, model="mine/m", settings=settings, env=observed(collector)))
    (chat,) = [span for span in collector.spans() if span.name == "chat m"]
    attributes = plain(chat.attributes)
    assert (attributes["error.type"], chat.status.code) == ("401", Status.STATUS_CODE_ERROR)
    assert "gen_ai.usage.input_tokens" not in attributes and "gen_ai.response.model" not in attributes
    metrics = collector.metrics()
    assert "gen_ai.client.token.usage" not in metrics
    (point,) = metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert plain(point.attributes)["error.type"] == "401"
