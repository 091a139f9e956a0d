"""Document 003, OAuth that the host drives: beginning, ending, injecting and forgetting; where credentials are kept.

The server and its authorization server are made with the official package.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.looking import text_of
from support.real_servers import calling, everything, results, rows, settled, status_is

from qoder_agent_sdk import ControlRequestError, QoderAgentOptions, QoderSDKClient

pytestmark = pytest.mark.anyio

WHOAMI = "mcp__guarded__whoami"
BACK = "http://localhost:4999/back"


@pytest.fixture
def options(guarded: Any, scripted: Any) -> QoderAgentOptions:
    made = calling(scripted, (WHOAMI, {}), (WHOAMI, {}), mcp_servers={"guarded": guarded.config})
    assert isinstance(made, QoderAgentOptions)
    return made


async def sign_in(client: QoderSDKClient, guarded: Any, **more: Any) -> dict[str, Any]:
    begun = await client.mcp_authenticate("guarded", **more)
    await client.mcp_submit_oauth_callback_url("guarded", guarded.consent(begun["authUrl"]))
    return dict(begun)


def token_file() -> Path:
    return Path(os.environ["QODER_CONFIG_DIR"]) / "mcp-oauth-tokens.json"


async def test_signing_in_before_the_first_message(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        assert (await settled(client))["guarded"]["status"] == "needs-auth"
        begun = await client.mcp_authenticate("guarded")
        assert begun["requiresUserAction"] is True
        assert (await rows(client))["guarded"]["status"] == "needs-auth"
        await client.mcp_submit_oauth_callback_url("guarded", guarded.consent(begun["authUrl"]))
        row = (await rows(client))["guarded"]
        assert row["status"] == "connected"
        assert [each["name"] for each in row["tools"]] == ["whoami"]
        assert text_of((await results(client))[WHOAMI]) == "a client"
    kinds = [len(guarded.seen(what)) for what in ("registration", "authorization", "exchange", "renewal")]
    assert kinds == [1, 1, 1, 0]


async def test_the_redirect_uri_can_be_chosen(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        begun = await sign_in(client, guarded, redirect_uri=BACK)
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun["authUrl"]).query))
        assert parameters["redirect_uri"] == BACK
        assert (await rows(client))["guarded"]["status"] == "connected"
    assert guarded.seen("registration")[0]["redirect_uris"] == [BACK]
    assert guarded.seen("authorization")[0]["redirect_uri"] == BACK


async def test_a_scheme_of_an_application_can_be_the_redirect_uri(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        await sign_in(client, guarded, redirect_uri="my-application://signed-in")
        assert (await rows(client))["guarded"]["status"] == "connected"


async def test_without_a_redirect_uri_the_browser_comes_back_by_itself(
    guarded: Any, options: QoderAgentOptions
) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        begun = await client.mcp_authenticate("guarded")
        # A browser follows the redirect to the runtime's own address.
        with urllib.request.urlopen(begun["authUrl"]) as page:
            assert page.status == 200
        assert (await status_is(client, "guarded", "connected"))["tools"]


async def test_renewing_needs_no_user(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        await sign_in(client, guarded)
        again = await client.mcp_authenticate("guarded")
        assert again["requiresUserAction"] is False and "authUrl" not in again
        assert (await rows(client))["guarded"]["status"] == "connected"
    assert len(guarded.seen("authorization")) == 1


async def test_a_callback_that_belongs_to_nothing_is_refused(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        begun = await client.mcp_authenticate("guarded", redirect_uri=BACK)
        with pytest.raises(ControlRequestError, match="state"):
            await client.mcp_submit_oauth_callback_url("guarded", f"{BACK}?code=stolen&state=not-ours")
        assert (await rows(client))["guarded"]["status"] != "connected"
        await client.mcp_submit_oauth_callback_url("guarded", guarded.consent(begun["authUrl"]))
        assert (await rows(client))["guarded"]["status"] == "connected"


async def test_a_token_of_the_host_is_injected(guarded: Any, options: QoderAgentOptions) -> None:
    guarded.accept("token-of-the-host")
    async with QoderSDKClient(options) as client:
        await settled(client)
        await client.inject_mcp_token("guarded", {"access_token": "token-of-the-host", "token_type": "Bearer"})
        assert (await rows(client))["guarded"]["status"] == "connected"
        assert text_of((await results(client))[WHOAMI]) == "the host"
    assert guarded.seen("authorization") == []


async def test_a_token_that_the_server_does_not_take_leaves_it_unusable(
    guarded: Any, options: QoderAgentOptions
) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        with pytest.raises(ControlRequestError):
            await client.inject_mcp_token("guarded", {"access_token": "made-up"})
        assert (await rows(client))["guarded"]["status"] == "needs-auth"


async def test_after_signing_out_the_next_call_asks_again(guarded: Any, scripted: Any) -> None:
    asked: list[Any] = []

    async def on_mcp_oauth_required(request: dict[str, Any]) -> Any:
        asked.append(request)
        return {"callbackUrl": guarded.consent(request["authUrl"])}

    made = calling(
        scripted,
        (WHOAMI, {}),
        mcp_servers={"guarded": guarded.config},
        on_mcp_oauth_required=on_mcp_oauth_required,
    )
    async with QoderSDKClient(made) as client:
        await status_is(client, "guarded", "connected")
        await client.mcp_clear_auth("guarded")
        result = (await results(client))[WHOAMI]
    assert len(asked) == 2
    assert text_of(result) == "a client"


async def test_signing_out_deletes_what_was_kept(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        await sign_in(client, guarded)
        assert guarded.url in token_file().read_text()
        await client.mcp_clear_auth("guarded")
        assert guarded.url not in token_file().read_text()
        result = (await results(client))[WHOAMI]
        assert result.is_error
        assert (await rows(client))["guarded"]["status"] == "needs-auth"


async def test_the_next_session_is_signed_in(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        await sign_in(client, guarded)
    async with QoderSDKClient(options) as client:
        assert (await settled(client))["guarded"]["status"] == "connected"
    assert len(guarded.seen("authorization")) == 1


async def test_the_file_can_be_read_by_its_owner_only(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as client:
        await settled(client)
        await sign_in(client, guarded)
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
    kept = json.loads(token_file().read_text())
    assert [each["server"] for each in kept["entries"]] == [guarded.url]


async def test_sessions_at_the_same_time_renew_once(guarded: Any, options: QoderAgentOptions) -> None:
    async with QoderSDKClient(options) as first, QoderSDKClient(options) as second:
        await settled(first)
        await sign_in(first, guarded)
        await second.reconnect_mcp_server("guarded")
        guarded.forget()
        given: list[str] = []

        async def ask(client: QoderSDKClient) -> None:
            given.append(text_of((await results(client))[WHOAMI]))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, first)
            group.start_soon(ask, second)
    assert given == ["a client", "a client"]
    assert len(guarded.seen("renewal")) == 1


async def test_servers_without_credentials_say_so(scripted: Any) -> None:
    async with QoderSDKClient(scripted({"text": "Hi."}, mcp_servers={"every": everything()})) as client:
        await settled(client)
        with pytest.raises(ControlRequestError, match="every"):
            await client.mcp_authenticate("every")
        with pytest.raises(ControlRequestError, match="absent"):
            await client.mcp_clear_auth("absent")


@pytest.fixture
def keychain(tmp_path: Path, guarded: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The address of a keychain that hangs up; gives what it was told first."""
    heard: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "bus"))
    listener.listen()

    def hang_up() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(64))

    thread = threading.Thread(target=hang_up, daemon=True)
    thread.start()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
    yield heard
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


if sys.platform == "linux":

    async def test_the_keychain_is_asked_first_and_the_file_serves_when_it_fails(
        guarded: Any, keychain: list[bytes], options: QoderAgentOptions
    ) -> None:
        async with QoderSDKClient(options) as client:
            await settled(client)
            await sign_in(client, guarded)
        assert keychain and b"AUTH" in keychain[0]
        assert guarded.url in token_file().read_text()
