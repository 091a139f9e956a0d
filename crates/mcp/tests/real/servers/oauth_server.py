"""An MCP server behind OAuth, made with the official package; its authorization server grants everything at once.

Prints `{"port": N}` when it listens. `GET /seen` returns what was asked of it, `POST /expire` makes every access token
invalid. Options: --lifetime SECONDS, --metadata-issuer URL, --callback-issuer URL, --deny, --slow-refresh SECONDS,
--no-pkce, --promise-issuer, --secret.
"""

import argparse
import asyncio
import json
import secrets
import socket
import time
import warnings

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse

warnings.simplefilter("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("--lifetime", type=int, default=3600)
parser.add_argument("--metadata-issuer")
parser.add_argument("--callback-issuer")
parser.add_argument("--deny", action="store_true")
parser.add_argument("--slow-refresh", type=float, default=0)
parser.add_argument("--no-pkce", action="store_true")
parser.add_argument("--promise-issuer", action="store_true")
parser.add_argument("--secret", action="store_true")
options = parser.parse_args()

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 0))
port = listener.getsockname()[1]
base = f"http://127.0.0.1:{port}"


class Provider:
    """Keeps everything in memory; a refresh token is good for one use, and a second use is counted."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}
        self.used = set()
        self.seen = {
            "registrations": 0,
            "codes": 0,
            "refreshes": 0,
            "reused": 0,
            "resources": [],
            "redirects": [],
            "scopes": [],
        }

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.seen["registrations"] += 1
        if options.secret:
            client.client_secret = secrets.token_hex(16)
            client.token_endpoint_auth_method = "client_secret_basic"
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        self.seen["resources"].append(params.resource)
        self.seen["redirects"].append(str(params.redirect_uri))
        self.seen["scopes"].append(params.scopes)
        extra = {"iss": options.callback_issuer} if options.callback_issuer else {}
        if options.deny:
            return construct_redirect_uri(
                str(params.redirect_uri), error="access_denied", state=params.state, **extra
            )
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or ["use"],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, **extra)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        self.codes.pop(code.code)
        self.seen["codes"] += 1
        return self.issue(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        if token in self.used:
            self.seen["reused"] += 1
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        if self.refresh.pop(token.token, None) is None:
            raise TokenError("invalid_grant", "used already")
        self.used.add(token.token)
        self.seen["refreshes"] += 1
        await asyncio.sleep(options.slow_refresh)
        return self.issue(client, scopes or token.scopes, token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)

    def issue(self, client, scopes, resource):
        access, refresh = "access-" + secrets.token_hex(16), "refresh-" + secrets.token_hex(16)
        ends = int(time.time()) + options.lifetime
        owner = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=ends, **owner)
        self.refresh[refresh] = RefreshToken(token=refresh, **owner)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=options.lifetime,
            scope=" ".join(scopes),
        )


provider = Provider()
server = MCPServer(
    "guarded",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        required_scopes=["use"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use", "more"], default_scopes=["use"]
        ),
    ),
    log_level="ERROR",
)


@server.tool()
def echo(text: str) -> str:
    """Says the same."""
    return text


@server.custom_route("/seen", methods=["GET"])
async def seen(request: Request):
    return JSONResponse(provider.seen)


@server.custom_route("/expire", methods=["POST"])
async def expire(request: Request):
    provider.access.clear()
    return JSONResponse({})


def changed(app):
    """Changes the metadata as the options say."""

    async def wrapped(scope, receive, send):
        if scope["type"] != "http" or "oauth-authorization-server" not in scope["path"]:
            return await app(scope, receive, send)
        start, body = {}, b""

        async def collect(message):
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            else:
                body += message.get("body", b"")

        await app(scope, receive, collect)
        if start["status"] == 200:
            metadata = json.loads(body)
            if options.metadata_issuer:
                metadata["issuer"] = options.metadata_issuer
            if options.no_pkce:
                metadata.pop("code_challenge_methods_supported", None)
            if options.promise_issuer:
                metadata["authorization_response_iss_parameter_supported"] = True
            body = json.dumps(metadata).encode()
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await send({**start, "headers": headers + [(b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    return wrapped


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(json.dumps({"port": port}), flush=True)


app = changed(server.streamable_http_app(host="127.0.0.1", json_response=True))
Server(uvicorn.Config(app, log_level="error", lifespan="on")).run(sockets=[listener])
