"""Document 003, OAuth that the runtime asks the host for: the request, the four answers, and what comes of each.

The server and its authorization server are made with the official package.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest
from support.asking import drain
from support.looking import results_by_tool, text_of
from support.real_servers import calling, everything, settled, until

from qoder_agent_sdk import HookMatcher, QoderSDKClient

pytestmark = pytest.mark.anyio

WHOAMI = "mcp__guarded__whoami"


async def signed_in(guarded: Any, scripted: Any, answer: Any, **options: Any) -> tuple[dict[str, Any], Any]:
    """The row of the server, and what its tool said, when the callback answers a request like this."""

    async def on_mcp_oauth_required(request: dict[str, Any]) -> Any:
        return answer(request)

    made = calling(
        scripted,
        (WHOAMI, {}),
        mcp_servers={"guarded": guarded.config},
        on_mcp_oauth_required=on_mcp_oauth_required,
        **options,
    )
    async with QoderSDKClient(made) as client:
        row = (await settled_with_authorization(client))["guarded"]
        await client.query("go")
        return row, results_by_tool(await drain(client))[WHOAMI]


async def settled_with_authorization(client: QoderSDKClient) -> dict[str, Any]:
    """The rows once the host was asked and its answer was used."""
    return await until(client, lambda seen: all(row["status"] in ("connected", "failed") for row in seen.values()))


async def test_the_request_has_what_a_host_needs(guarded: Any, scripted: Any) -> None:
    requests: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> None:
        requests.append(request)

    await signed_in(guarded, scripted, answer)
    request = requests[0]
    assert request["serverName"] == "guarded"
    assert request["serverUrl"] == guarded.url
    assert request["scopes"] == ["notes"]
    assert request["resourceMetadataUrl"].endswith("/.well-known/oauth-protected-resource/mcp")
    parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request["authUrl"]).query))
    assert parameters["state"] == request["state"]
    assert parameters["code_challenge_method"] == "S256" and parameters["code_challenge"]
    assert parameters["response_type"] == "code" and parameters["resource"] == guarded.url
    (registration,) = guarded.seen("registration")
    assert registration["redirect_uris"] == [parameters["redirect_uri"]]


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_token_of_the_host_is_injected(wrapped: bool, guarded: Any, scripted: Any) -> None:
    guarded.accept("token-of-the-host")
    token = {"access_token": "token-of-the-host", "token_type": "Bearer", "expires_in": 3600}
    row, result = await signed_in(guarded, scripted, lambda _: {"token": token} if wrapped else token)
    assert row["status"] == "connected"
    assert [each["name"] for each in row["tools"]] == ["whoami"]
    assert text_of(result) == "the host"
    assert guarded.seen("exchange") == []


async def test_a_callback_url_is_exchanged(guarded: Any, scripted: Any) -> None:
    row, result = await signed_in(
        guarded, scripted, lambda request: {"callbackUrl": guarded.consent(request["authUrl"])}
    )
    assert row["status"] == "connected" and text_of(result) == "a client"
    assert len(guarded.seen("exchange")) == 1


async def test_servers_over_events_ask_too(guarded_over: Any, scripted: Any) -> None:
    guarded = guarded_over("sse")
    row, result = await signed_in(
        guarded, scripted, lambda request: {"callbackUrl": guarded.consent(request["authUrl"])}
    )
    assert row["status"] == "connected" and row["config"]["type"] == "sse"
    assert text_of(result) == "a client"


async def test_code_and_state_are_exchanged(guarded: Any, scripted: Any) -> None:
    def answer(request: dict[str, Any]) -> dict[str, str]:
        query = urllib.parse.urlsplit(guarded.consent(request["authUrl"])).query
        parameters = dict(urllib.parse.parse_qsl(query))
        return {"code": parameters["code"], "state": parameters["state"]}

    row, result = await signed_in(guarded, scripted, answer)
    assert row["status"] == "connected" and text_of(result) == "a client"


async def test_none_makes_the_server_fail_and_harms_no_other(guarded: Any, scripted: Any) -> None:
    async def on_mcp_oauth_required(_: dict[str, Any]) -> None:
        return None

    servers = {"guarded": guarded.config, "every": everything()}
    options = scripted({"text": "Hi."}, mcp_servers=servers, on_mcp_oauth_required=on_mcp_oauth_required)
    async with QoderSDKClient(options) as client:
        seen = await settled_with_authorization(client)
    assert (seen["guarded"]["status"], seen["every"]["status"]) == ("failed", "connected")
    assert seen["guarded"]["error"]


async def test_a_callback_that_fails_makes_the_server_fail(guarded: Any, scripted: Any) -> None:
    def answer(_: dict[str, Any]) -> Any:
        raise RuntimeError("no browser")

    row, result = await signed_in(guarded, scripted, answer)
    assert row["status"] == "failed" and result.is_error


async def test_a_state_of_somebody_else_is_refused(guarded: Any, scripted: Any) -> None:
    row, _ = await signed_in(guarded, scripted, lambda _: {"code": "stolen", "state": "not-ours"})
    assert row["status"] == "failed"
    assert "state" in row["error"]
    assert guarded.seen("exchange") == []


async def test_without_a_callback_the_server_needs_authorization(guarded: Any, scripted: Any) -> None:
    options = calling(scripted, (WHOAMI, {}), mcp_servers={"guarded": guarded.config, "every": everything()})
    async with QoderSDKClient(options) as client:
        seen = await settled(client)
        assert (seen["guarded"]["status"], seen["every"]["status"]) == ("needs-auth", "connected")
        assert not seen["guarded"].get("tools")


async def test_the_server_is_connected_anew_and_its_tools_are_discovered(guarded: Any, scripted: Any) -> None:
    told: list[tuple[str, int]] = []

    async def changed(servers: list[Any]) -> None:
        told.extend((row["status"], len(row.get("tools") or [])) for row in servers)

    await signed_in(
        guarded,
        scripted,
        lambda request: {"callbackUrl": guarded.consent(request["authUrl"])},
        on_mcp_status_change=changed,
    )
    assert told == [("connecting", 0), ("needs-auth", 0), ("connecting", 0), ("connected", 1)]


async def test_authorization_fires_no_hooks_for_elicitation(guarded: Any, scripted: Any) -> None:
    fired: list[Any] = []

    async def note(given: Any, _: Any, __: Any) -> dict[str, Any]:
        fired.append(given["hook_event_name"])
        return {}

    hooks = {event: [HookMatcher(hooks=[note])] for event in ("Elicitation", "ElicitationResult", "PreToolUse")}
    await signed_in(
        guarded, scripted, lambda request: {"callbackUrl": guarded.consent(request["authUrl"])}, hooks=hooks
    )
    assert fired == ["PreToolUse"]


async def test_an_access_token_that_was_refused_is_renewed_without_asking(guarded: Any, scripted: Any) -> None:
    asked: list[Any] = []

    async def on_mcp_oauth_required(request: dict[str, Any]) -> Any:
        asked.append(request)
        return {"callbackUrl": guarded.consent(request["authUrl"])}

    options = calling(
        scripted,
        (WHOAMI, {}),
        mcp_servers={"guarded": guarded.config},
        on_mcp_oauth_required=on_mcp_oauth_required,
    )
    async with QoderSDKClient(options) as client:
        await settled_with_authorization(client)
        guarded.forget()
        await client.query("go")
        result = results_by_tool(await drain(client))[WHOAMI]
    assert text_of(result) == "a client"
    assert len(asked) == 1 and len(guarded.seen("renewal")) == 1
