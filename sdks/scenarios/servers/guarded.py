"""An MCP server that wants OAuth, with its own authorization server that grants everything.

    python guarded.py http|sse

`GET /seen` returns what came: registrations, requests for authorization,
exchanges and renewals; `POST /forget` makes all access tokens invalid, `POST /accept` with a token accepts it.
Made with the official Python package; run by the interpreter that has it.
"""

from __future__ import annotations

import secrets
import sys
import time
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from serving import PATHS, address, listening, serve_application

SCOPES = ["notes"]
TOKEN_SECONDS = 3600


class Grants(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Grants everything, and remembers what came."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.renewals: dict[str, RefreshToken] = {}
        self.seen: list[dict[str, Any]] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        uris = [str(uri) for uri in client_info.redirect_uris or []]
        self.seen.append({"what": "registration", "redirect_uris": uris})
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or SCOPES,
            expires_at=time.time() + 300,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        redirect = str(params.redirect_uri)
        self.seen.append({"what": "authorization", "redirect_uri": redirect, "resource": params.resource})
        return construct_redirect_uri(redirect, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.seen.append({"what": "exchange"})
        return self._issue(str(client.client_id), authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.renewals[refresh_token.token]
        self.seen.append({"what": "renewal"})
        return self._issue(str(client.client_id), scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.tokens.get(token)
        expired = found is not None and found.expires_at is not None and found.expires_at < time.time()
        return None if expired else found

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)
        self.renewals.pop(token.token, None)

    def accept(self, token: str) -> None:
        self.tokens[token] = AccessToken(token=token, client_id="host", scopes=SCOPES)

    def _issue(self, client: str, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        ends = int(time.time()) + TOKEN_SECONDS
        self.tokens[access] = AccessToken(token=access, client_id=client, scopes=scopes, expires_at=ends)
        self.renewals[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=TOKEN_SECONDS,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )


def main() -> None:
    """Serve until the process is ended."""
    listener, transport, grants = listening(), sys.argv[1], Grants()
    settings = AuthSettings(
        issuer_url=address(listener),
        resource_server_url=address(listener) + PATHS[transport],
        validate_token_resource=False,
        required_scopes=SCOPES,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES),
    )
    server = MCPServer("guarded", version="1.0.0", auth=settings, auth_server_provider=grants)

    @server.tool()
    async def whoami() -> str:
        """Returns whose token it was."""
        token = get_access_token()
        return "no token" if token is None else ("the host" if token.client_id == "host" else "a client")

    @server.custom_route("/seen", methods=["GET"])
    async def seen(_: Request) -> Response:
        return JSONResponse(grants.seen)

    @server.custom_route("/forget", methods=["POST"])
    async def forget(_: Request) -> Response:
        grants.tokens.clear()
        return JSONResponse({})

    @server.custom_route("/accept", methods=["POST"])
    async def accept(request: Request) -> Response:
        grants.accept((await request.body()).decode())
        return JSONResponse({})

    application = server.sse_app() if transport == "sse" else server.streamable_http_app()
    serve_application(application, listener, PATHS[transport])


if __name__ == "__main__":
    main()
