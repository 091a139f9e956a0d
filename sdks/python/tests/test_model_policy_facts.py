"""`resolve_model`: what the callback gets, and for which purposes it is asked.

Each fact of the document about the context is looked at in a session with the real runtime.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest
from support.looking import call, result_of, run
from support.model_server import model_server

from qoder_agent_sdk import QoderAgentOptions, QoderModelPurpose, QoderSDKClient

pytestmark = pytest.mark.anyio

#: Long enough for a machine that is busy; no test waits for it.
PATIENT = 30_000


def keeping(options: QoderAgentOptions, is_async: bool = False) -> list[Any]:
    """Make the callback choose the options' own model; gives the list of what it was told."""
    chosen, contexts = options.model, []

    def resolve(context: Any) -> Any:
        contexts.append(context)
        return {"model": chosen}

    async def resolve_later(context: Any) -> Any:
        return resolve(context)

    options.resolve_model = resolve_later if is_async else resolve
    options.resolve_model_timeout_ms = PATIENT
    return contexts


def test_there_are_13_purposes() -> None:
    named = (
        "main plan task compact title suggestion generate hook_prompt subagent web_fetch image_gen compression utility"
    )
    assert sorted(get_args(QoderModelPurpose)) == sorted(named.split())


def test_the_timeout_is_500_by_default() -> None:
    assert QoderAgentOptions().resolve_model_timeout_ms == 500


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_callback_may_be_synchronous_or_asynchronous(is_async: bool, scripted: Any) -> None:
    options = scripted({"text": "Done."})
    contexts = keeping(options, is_async)
    assert result_of(await run("go", options)).result == "Done."
    assert len(contexts) == 1


async def test_all_fields_of_the_context_are_there_and_session_id_is_the_same(scripted: Any) -> None:
    options = scripted(
        {"when": {"turn": 1}, "toolCalls": [call("Agent", description="look", prompt="Look around.")]},
        {"when": {"purpose": "subagent"}, "text": "I looked."},
        {"text": "Done.", "repeat": True},
        allowed_tools=["Agent"],
    )
    contexts = keeping(options)
    messages = await run("go", options)
    assert result_of(messages).result == "Done."
    for context in contexts:
        assert {"purpose", "sessionId", "agentId", "turnIndex", "availableModels"} <= set(context)
    assert {context["sessionId"] for context in contexts} == {result_of(messages).session_id}
    told = [(context["purpose"], context["turnIndex"]) for context in contexts]
    assert told == [("main", 0), ("subagent", 0), ("main", 1)], "subagents share the same provider"
    agents = [context["agentId"] for context in contexts]
    assert agents[0] == agents[2] == "main" and agents[1] not in ("", "main")


async def test_web_fetch_is_a_second_call_that_summarizes(scripted: Any) -> None:
    with model_server() as server:
        options = scripted(
            {
                "when": {"turn": 1},
                "toolCalls": [call("WebFetch", url=f"{server.url}/v1/models", prompt="Which models?")],
            },
            {"when": {"purpose": "web_fetch"}, "text": "Two."},
            {"text": "There are two.", "repeat": True},
            allowed_tools=["WebFetch(domain:127.0.0.1)"],
        )
        contexts = keeping(options)
        assert result_of(await run("go", options)).result == "There are two."
    assert [context["purpose"] for context in contexts] == ["main", "web_fetch", "main"]


async def test_compact_is_asked_before_compaction_starts(scripted: Any) -> None:
    usage = {"input_tokens": 95000, "output_tokens": 5}
    options = scripted(
        {"when": {"purpose": "compact"}, "text": "All is well so far."},
        {"when": {"contains": "All is well so far."}, "text": "Done."},
        {"toolCalls": [call("Glob", pattern="*")], "usage": usage},
        settings={"model": {"contextWindow": 100000}},
    )
    contexts = keeping(options)
    assert result_of(await run("go", options)).result == "Done."
    assert [context["purpose"] for context in contexts] == ["main", "compact", "main"]


async def test_title_is_a_purpose_of_its_own(scripted: Any) -> None:
    options = scripted(
        {"when": {"purpose": "title"}, "text": "Fixing the login", "repeat": True}, {"text": "hello", "repeat": True}
    )
    contexts = keeping(options)
    async with QoderSDKClient(options) as client:
        await client.query("hi")
        assert [message async for message in client.receive_response()]
        assert await client.generate_session_title("the login") == "Fixing the login"
    assert [context["purpose"] for context in contexts] == ["main", "title"]


async def test_available_models_are_those_of_get_available_models(scripted: Any) -> None:
    with model_server() as server:
        options = scripted({"text": "hello"}, env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url})
        contexts = keeping(options)
        options.model = "large"
        async with QoderSDKClient(options) as client:
            await client.query("hi")
            assert [message async for message in client.receive_response()]
            listed = await client.get_available_models()
    assert [model["value"] for model in listed] == ["large", "small"]
    assert contexts[0]["availableModels"] == listed


async def test_set_model_does_not_override_the_callback(scripted: Any) -> None:
    options = scripted({"text": "chosen", "repeat": True})
    keeping(options)
    async with QoderSDKClient(options) as client:
        await client.set_model("offline")
        await client.query("hi")
        assert result_of([message async for message in client.receive_response()]).result == "chosen"


async def test_set_model_takes_effect_on_the_next_call_in_fixed_model_mode(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "chosen", "repeat": True})) as client:
        await client.query("hi")
        assert result_of([message async for message in client.receive_response()]).result == "chosen"
        await client.set_model("offline")
        await client.query("hello")
        said = result_of([message async for message in client.receive_response()]).result
    assert said is not None and "offline model" in said


async def test_set_model_without_a_name_goes_back_to_the_model_of_the_options(project: Any) -> None:
    with model_server() as server:
        variables = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        async with QoderSDKClient(QoderAgentOptions(cwd=project, model="first", env=variables)) as client:
            for wanted in (["second"], []):
                await client.query("hi")
                assert [message async for message in client.receive_response()]
                await client.set_model(*wanted)
            await client.query("hi")
            assert [message async for message in client.receive_response()]
    assert [request["body"]["model"] for request in server.requests] == ["first", "second", "first"]
