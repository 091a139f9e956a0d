"""Models on a key of one's own (`CustomModel`), behind a server of the test.

Both protocols, the parameters, what is accounted, and that a failure stays one.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.looking import result_of, run
from support.model_server import ModelServer, model_server

from qoder_agent_sdk import QoderAgentOptions, QueryResultError, query

pytestmark = pytest.mark.anyio


def custom(server: ModelServer, **more: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "gpt-4o", "api_key": "byok-key", "url": server.url, **more}


def choosing(project: Any, answer: dict[str, Any], **options: Any) -> QoderAgentOptions:
    return QoderAgentOptions(
        cwd=project, resolve_model=lambda context: answer, resolve_model_timeout_ms=30_000, model="offline", **options
    )


@pytest.mark.parametrize(
    ("style", "path", "header", "key"),
    [
        ({}, "/v1/chat/completions", "authorization", "Bearer byok-key"),
        ({"style": "openai"}, "/v1/chat/completions", "authorization", "Bearer byok-key"),
        ({"style": "anthropic"}, "/v1/messages", "x-api-key", "byok-key"),
    ],
)
async def test_style_defaults_to_openai(style: Any, path: str, header: str, key: str, project: Any) -> None:
    with model_server() as server:
        messages = await run("hi", choosing(project, {"model": custom(server, **style)}))
    assert result_of(messages).result == "hello"
    [request] = server.requests
    assert (request["path"], request["headers"][header]) == (path, key)
    assert request["body"]["model"] == "gpt-4o", "extracted as the model identifier"


@pytest.mark.parametrize("style", ["openai", "anthropic"])
async def test_parameters_override_temperature_and_max_tokens(style: str, project: Any) -> None:
    with model_server() as server:
        answer = {"model": custom(server, style=style), "parameters": {"temperature": 0.25, "max_tokens": 77}}
        await run("hi", choosing(project, answer))
    body = server.requests[0]["body"]
    assert (body["temperature"], body["max_tokens"]) == (0.25, 77)


@pytest.mark.parametrize(
    ("compat", "field"),
    [("groq", "max_completion_tokens"), ({"outputLimit": "max_completion_tokens"}, "max_completion_tokens")],
)
async def test_compat_is_the_profile_of_the_server(compat: Any, field: str, project: Any) -> None:
    with model_server() as server:
        answer = {"model": custom(server, compat=compat), "parameters": {"max_tokens": 77}}
        await run("hi", choosing(project, answer))
    assert server.requests[0]["body"][field] == 77


async def test_byok_calls_report_total_cost_usd_as_0_and_token_usage_as_is(project: Any) -> None:
    with model_server() as server:
        result = result_of(await run("hi", choosing(project, {"model": custom(server)})))
    assert result.total_cost_usd == 0
    assert result.usage is not None
    assert (result.usage["input_tokens"], result.usage["output_tokens"]) == (1000, 20)


async def test_a_wrong_api_key_fails_the_query_without_a_fallback(project: Any) -> None:
    got = []
    with model_server() as server:
        server.status = 401
        options = choosing(project, {"model": custom(server)}, fallback_model="offline")
        with pytest.raises(QueryResultError):
            async for message in query(prompt="hi", options=options):
                got.append(message)
    assert result_of(got).is_error
    assert len(server.requests) == 1, "a key that is not accepted is not tried again"


async def test_a_provider_that_is_not_in_the_catalog_fails_the_query(project: Any) -> None:
    answer = {"model": {"provider": "absent", "model": "m", "api_key": "k"}}
    got = []
    with pytest.raises(QueryResultError):
        async for message in query(prompt="hi", options=choosing(project, answer)):
            got.append(message)
    assert "absent" in str(result_of(got).errors)
