"""What `initialize` carries, and which runtimes are refused.

A fake runtime shows what it was sent, or answers as a runtime of another release
would.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import (
    AgentDefinition,
    AuthAccessTokenEnvVarError,
    CLIConnectionError,
    ControlRequestError,
    HookMatcher,
    ProcessError,
    ProtocolVersionMismatchError,
    QoderAgentOptions,
    QoderCliProcessError,
    QoderSDKClient,
    UnsupportedCliCapabilityError,
    access_token,
    access_token_from_env,
    qodercli_auth,
    query,
)

pytestmark = pytest.mark.anyio


async def hook(_input: Any, _tool_use_id: Any, _context: Any) -> dict[str, Any]:
    return {}


async def callback(*_arguments: Any) -> Any:
    return None


async def sent_by(fake_runtime: Any, tmp_path: Path, **options: Any) -> dict[str, Any]:
    """The `initialize` request for these options."""
    seen = tmp_path / "seen.json"
    script = f"open({str(seen)!r}, 'w').write(json.dumps([handshake(hook_on_failure_supported=True), sys.argv]))\nwait_for_end()"
    async with QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script), **options)):
        pass
    request, arguments = json.loads(seen.read_text())
    assert "s3cret" not in " ".join(arguments)
    assert isinstance(request, dict)
    return request


async def test_a_bare_session_declares_nothing(fake_runtime: Any, tmp_path: Path) -> None:
    assert await sent_by(fake_runtime, tmp_path) == {
        "subtype": "initialize",
        "protocolVersion": 1,
        "sdk": {"name": "python", "version": "0.1.0"},
        "hooks": None,
    }


async def test_callbacks_are_declared(fake_runtime: Any, tmp_path: Path) -> None:
    request = await sent_by(
        fake_runtime,
        tmp_path,
        resolve_model=lambda context: {"model": "m"},
        on_elicitation=callback,
        on_mcp_oauth_required=callback,
        on_auth_expired=callback,
    )
    for name in ("modelPolicy", "elicitation", "mcpOAuth", "authExpired"):
        assert request[name] is True


async def test_hooks_are_declared_by_id(fake_runtime: Any, tmp_path: Path) -> None:
    request = await sent_by(
        fake_runtime,
        tmp_path,
        hooks={
            "PreToolUse": [HookMatcher(hooks=[hook, hook], matcher="Bash", timeout=5, on_failure="block")],
            "Stop": [HookMatcher(hooks=[hook])],
        },
    )
    assert request["hooks"] == {
        "PreToolUse": [
            {"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 5, "onFailure": "block"}
        ],
        "Stop": [{"matcher": None, "hookCallbackIds": ["hook_2"]}],
    }


async def test_agents_are_sent_without_what_was_not_set(fake_runtime: Any, tmp_path: Path) -> None:
    agents = {"a": AgentDefinition(description="d", prompt="p", tools=["Read"], maxTurns=3)}
    request = await sent_by(fake_runtime, tmp_path, agents=agents)
    assert request["agents"] == {"a": {"description": "d", "prompt": "p", "tools": ["Read"], "maxTurns": 3}}


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (qodercli_auth(), {"type": "qodercli"}),
        (access_token("s3cret"), {"type": "accessToken", "accessToken": "s3cret"}),
        (access_token_from_env(), {"type": "accessToken", "accessToken": "s3cret-default"}),
        (access_token_from_env("MY_PAT"), {"type": "accessToken", "accessToken": "s3cret-mine"}),
        ({"type": "qodercli"}, {"type": "qodercli"}),
        ({"type": "accessToken", "accessToken": "s3cret"}, {"type": "accessToken", "accessToken": "s3cret"}),
        (
            {"type": "accessToken", "accessToken": {"envVar": "MY_PAT"}},
            {"type": "accessToken", "accessToken": "s3cret-mine"},
        ),
    ],
)
async def test_credentials_travel_here_only(
    auth: Any, expected: Any, fake_runtime: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QODER_PERSONAL_ACCESS_TOKEN", "s3cret-default")
    monkeypatch.setenv("MY_PAT", "of the process")
    request = await sent_by(fake_runtime, tmp_path, auth=auth, env={"MY_PAT": "s3cret-mine"})
    assert request["auth"] == expected


async def test_a_token_variable_that_is_not_set_is_named(fake_runtime: Any) -> None:
    options = QoderAgentOptions(cli_path=fake_runtime("handshake()"), auth=access_token_from_env("NOT_SET"))
    with pytest.raises(AuthAccessTokenEnvVarError, match="NOT_SET"):
        await QoderSDKClient(options).connect()
    with pytest.raises(AuthAccessTokenEnvVarError, match="NOT_SET"):
        [message async for message in query(prompt="hi", options=options)]


@pytest.mark.parametrize("changes", ["protocol_version=2", "protocol_version=None", "qodercli_version='0.2.0'"])
async def test_a_runtime_of_another_version_is_refused(changes: str, fake_runtime: Any) -> None:
    options = QoderAgentOptions(cli_path=fake_runtime(f"handshake({changes})\nwait_for_end()"))
    with pytest.raises(ProtocolVersionMismatchError, match="same release"):
        await QoderSDKClient(options).connect()


async def test_a_newer_patch_version_is_accepted(fake_runtime: Any) -> None:
    options = QoderAgentOptions(cli_path=fake_runtime("handshake(qodercli_version='0.1.7')\nwait_for_end()"))
    async with QoderSDKClient(options) as client:
        assert (await client.get_server_info())["qodercli_version"] == "0.1.7"


@pytest.mark.parametrize("changes", ["", "hook_on_failure_supported=True, hooks_applied=False"])
async def test_hooks_that_must_fail_closed_need_a_runtime_that_promises_it(changes: str, fake_runtime: Any) -> None:
    options = QoderAgentOptions(
        cli_path=fake_runtime(f"handshake({changes})\nwait_for_end()"),
        hooks={"PreToolUse": [HookMatcher(hooks=[hook], on_failure="block")]},
    )
    with pytest.raises(UnsupportedCliCapabilityError, match="on_failure"):
        await QoderSDKClient(options).connect()


async def test_a_refused_handshake_says_why(fake_runtime: Any) -> None:
    script = (
        "request = read_request('initialize')\n"
        "send({'type': 'control_response', 'response': {'subtype': 'error', "
        "'request_id': request['request_id'], 'error': 'no such agent: x'}})\nwait_for_end()"
    )
    with pytest.raises(ControlRequestError, match="no such agent: x"):
        await QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime(script))).connect()


async def test_a_runtime_that_ends_before_the_handshake_is_quoted(fake_runtime: Any) -> None:
    script = "print('bad flag --x', file=sys.stderr)\nsys.exit(42)"
    options = QoderAgentOptions(cli_path=fake_runtime(script))
    with pytest.raises(QoderCliProcessError) as caught:
        await QoderSDKClient(options).connect()
    assert caught.value.exit_code == 42 and caught.value.signal is None
    assert "bad flag --x" in str(caught.value) and "bad flag --x" in (caught.value.stderr or "")
    assert isinstance(caught.value, ProcessError) and isinstance(caught.value, CLIConnectionError)


async def test_a_runtime_that_dies_of_a_signal_says_which(fake_runtime: Any) -> None:
    options = QoderAgentOptions(cli_path=fake_runtime("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(QoderCliProcessError) as caught:
        await QoderSDKClient(options).connect()
    assert caught.value.signal == 9 and caught.value.exit_code is None


async def test_a_clean_end_before_the_handshake_is_an_error_too(fake_runtime: Any) -> None:
    with pytest.raises(QoderCliProcessError, match="initialize"):
        await QoderSDKClient(QoderAgentOptions(cli_path=fake_runtime("sys.exit(0)"))).connect()


async def test_a_missing_directory_is_named(fake_runtime: Any, tmp_path: Path) -> None:
    options = QoderAgentOptions(cli_path=fake_runtime("handshake()"), cwd=tmp_path / "absent")
    with pytest.raises(CLIConnectionError, match="absent.*does not exist"):
        await QoderSDKClient(options).connect()
