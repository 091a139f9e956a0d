"""Types around MCP servers: configurations, status, OAuth and elicitation.

Keys are spelled as the documents spell them: configurations and status rows as
they travel, callback arguments in camelCase.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

from typing_extensions import NotRequired

if TYPE_CHECKING:
    from typing import TypeAlias

    # Servers of the `mcp` package fit as well, and its clients take ours; its types cannot be named without loading it.
    McpServer: TypeAlias = Any
else:
    from .._mcp.server import McpServer


class McpServerToolPolicy(TypedDict):
    """Whether one tool of a server is allowed, asked for or denied."""

    name: str
    permission_policy: Literal["always_allow", "always_ask", "always_deny"]


class McpStdioServerConfig(TypedDict):
    """A server that the runtime starts as a process."""

    type: NotRequired[Literal["stdio"]]
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[dict[str, str]]
    tools: NotRequired[list[McpServerToolPolicy]]


class McpSSEServerConfig(TypedDict):
    """A remote server that is reached over SSE."""

    type: Literal["sse"]
    url: str
    headers: NotRequired[dict[str, str]]
    tools: NotRequired[list[McpServerToolPolicy]]


class McpHttpServerConfig(TypedDict):
    """A remote server that is reached over HTTP."""

    type: Literal["http"]
    url: str
    headers: NotRequired[dict[str, str]]
    tools: NotRequired[list[McpServerToolPolicy]]


class McpSdkServerConfig(TypedDict):
    """A server that runs in this process; made by `create_sdk_mcp_server()`.

    `instance` may also be a `Server` or `FastMCP` of the `mcp` package.
    """

    type: Literal["sdk"]
    name: str
    instance: McpServer
    tools: NotRequired[list[McpServerToolPolicy]]


McpServerConfig = Union[McpStdioServerConfig, McpSSEServerConfig, McpHttpServerConfig, McpSdkServerConfig]

McpServerConnectionStatus = Literal["pending", "connecting", "connected", "failed", "needs-auth", "disabled"]


class McpToolAnnotations(TypedDict, total=False):
    """Annotations of a tool as the status shows them."""

    readOnly: bool
    destructive: bool
    openWorld: bool


class McpToolInfo(TypedDict):
    """A tool of a server as the status shows it."""

    name: str
    description: NotRequired[str]
    annotations: NotRequired[McpToolAnnotations]


class McpServerInfo(TypedDict):
    """What a server says about itself."""

    name: str
    version: str
    title: NotRequired[str]


class McpServerStatus(TypedDict):
    """One row of the status of MCP servers."""

    name: str
    status: McpServerConnectionStatus
    serverInfo: NotRequired[McpServerInfo]
    error: NotRequired[str]
    config: NotRequired[dict[str, Any]]
    scope: NotRequired[str]
    tools: NotRequired[list[McpToolInfo]]


class McpStatusResponse(TypedDict):
    """Answer of `get_mcp_status()`."""

    mcpServers: list[McpServerStatus]


class McpSetServersResult(TypedDict):
    """Answer of `set_mcp_servers()`."""

    added: list[str]
    removed: list[str]
    errors: dict[str, str]


class McpAuthenticateResult(TypedDict):
    """Answer of `mcp_authenticate()`; without user action there is no URL."""

    authUrl: NotRequired[str]
    requiresUserAction: bool


class OAuthToken(TypedDict, total=False):
    """A token for a remote server; `access_token` is required."""

    access_token: str
    token_type: str
    refresh_token: str
    expires_in: int
    expires_at: int
    scope: str


class McpOAuthRequest(TypedDict, total=False):
    """What a host needs to know to complete OAuth for a server."""

    serverName: str
    serverUrl: str
    authUrl: str
    state: str
    scopes: list[str]
    resourceMetadataUrl: str


class ElicitationRequest(TypedDict, total=False):
    """What an MCP server asks the user for."""

    serverName: str
    message: str
    mode: Literal["form", "url"]
    elicitationId: str
    requestedSchema: dict[str, Any]
    url: str
    title: str
    displayName: str


class ElicitationResult(TypedDict):
    """The host's answer to an `ElicitationRequest`."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[dict[str, Any]]


#: Called with the request; a callback that takes a second parameter gets options with a `signal`.
OnMcpOAuthRequired = Callable[..., Awaitable[Union[dict[str, Any], OAuthToken, None]]]
OnMcpStatusChange = Callable[[list[McpServerStatus]], Any]
OnElicitation = Callable[..., Awaitable[Any]]
