"""`resolve_model` in sessions with the real runtime.

The callback names a playbook or the offline model, so that its choice shows in the
reply.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.looking import call, result_of, run, texts_of

from qoder_agent_sdk import ModelPolicyTimeoutError, QueryResultError, ResultMessage, query

pytestmark = pytest.mark.anyio


async def test_the_callback_is_asked_before_every_call_and_decides(scripted: Any) -> None:
    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [call("Bash", command="echo hi")]}, {"text": "Done."}, allowed_tools=["Bash"]
    )
    playbook, contexts = options.model, []

    async def resolve(context: Any) -> Any:
        contexts.append(context)
        return {"model": playbook}

    options.model, options.resolve_model = None, resolve
    messages = await run("go", options)
    assert result_of(messages).result == "Done."
    assert [context["purpose"] for context in contexts] == ["main", "main"]
    assert {context["sessionId"] for context in contexts} == {result_of(messages).session_id}
    assert all({"agentId", "turnIndex", "availableModels"} <= set(context) for context in contexts)


async def test_the_callback_beats_the_option(scripted: Any) -> None:
    options = scripted({"text": "never"}, resolve_model=lambda context: {"model": "offline"})
    assert "offline model" in texts_of(await run("hello", options))[0]


async def fails(options: Any, error: type[Exception]) -> ResultMessage:
    got = []
    with pytest.raises(error):
        async for message in query(prompt="hello", options=options):
            got.append(message)
    return result_of(got)


@pytest.mark.parametrize("answer", [{"model": ""}, {}])
async def test_an_empty_model_fails_the_query(answer: Any, scripted: Any) -> None:
    result = await fails(scripted({"text": "never"}, resolve_model=lambda context: answer), QueryResultError)
    assert result.is_error and "non-empty 'model'" in str(result.errors)


async def test_an_exception_fails_the_query(scripted: Any) -> None:
    async def resolve(context: Any) -> Any:
        raise RuntimeError("no licence")

    result = await fails(scripted({"text": "never"}, resolve_model=resolve), QueryResultError)
    assert "no licence" in str(result.errors)


async def test_a_slow_callback_fails_the_query_by_name(scripted: Any) -> None:
    async def resolve(context: Any) -> Any:
        await anyio.sleep_forever()

    options = scripted({"text": "never"}, resolve_model=resolve, resolve_model_timeout_ms=50)
    assert (await fails(options, ModelPolicyTimeoutError)).is_error
