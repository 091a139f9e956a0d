"""Fixtures: servers on ports, started once for all tests that need them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.real_servers import asking, everything, everything_running, running

ServerKind = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def everything_over() -> Iterator[ServerKind]:
    """Configurations of the server with a bit of everything, by transport."""
    with everything_running("sse") as sse, everything_running("streamableHttp") as http:
        made = {
            "stdio": everything(),
            "sse": {"type": "sse", "url": f"{sse}/sse"},
            "http": {"type": "http", "url": f"{http}/mcp"},
        }
        yield lambda transport: dict(made[transport])


@pytest.fixture(scope="session")
def asking_over() -> Iterator[ServerKind]:
    """Configurations of our server that asks its user, by transport."""
    with running("asking.py", "sse") as sse, running("asking.py", "http") as http:
        made = {"stdio": asking(), "sse": {"type": "sse", "url": sse}, "http": {"type": "http", "url": http}}
        yield lambda transport: dict(made[transport])


class Guarded:
    """A server that wants OAuth, seen by one test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.config: dict[str, Any] = {"type": "sse" if url.endswith("/sse") else "http", "url": url}
        self._before = len(self._all())

    def seen(self, what: str) -> list[dict[str, Any]]:
        """What came to it since the test began: `registration`, `authorization`, `exchange` or `renewal`."""
        return [each for each in self._all()[self._before :] if each["what"] == what]

    def forget(self) -> None:
        """Makes all access tokens invalid."""
        self._ask("/forget", b"")

    def accept(self, token: str) -> None:
        """Makes a token valid that the server did not issue."""
        self._ask("/accept", token.encode())

    def consent(self, address: str) -> str:
        """What a browser would do: visits the address and returns where it was redirected to."""
        opener = urllib.request.build_opener(_NoRedirect)
        location = opener.open(address).headers["location"]
        assert location, f"{address} did not redirect"
        return str(location)

    def _all(self) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = json.loads(self._ask("/seen"))
        return seen

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        with urllib.request.urlopen(self.url.rpartition("/")[0] + path, data=body) as answer:
            return bytes(answer.read())


class _NoRedirect(urllib.request.HTTPErrorProcessor):
    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


@pytest.fixture(scope="session")
def guarded_addresses() -> Iterator[dict[str, str]]:
    with running("guarded.py", "http") as http, running("guarded.py", "sse") as sse:
        yield {"http": http, "sse": sse}


@pytest.fixture
def guarded_over(guarded_addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Guarded]:
    """The server that wants OAuth, by transport; credentials go to the test's own file, never to a keychain."""
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
    return lambda transport: Guarded(guarded_addresses[transport])


@pytest.fixture
def guarded(guarded_over: Callable[[str], Guarded]) -> Guarded:
    """The server that wants OAuth, over HTTP."""
    return guarded_over("http")
