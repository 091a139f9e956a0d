"""`QoderSDKClient`: a conversation of many turns over one connection.

Prompts are sent and messages received independently of each other, and the
session can be changed while it runs. Every method is one control request; what
the runtime refuses is raised as `ControlRequestError` with its reason.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ._backend import BackgroundTask, spawn
from ._errors import CLIConnectionError, ControlRequestError, OptionTypeError, OptionValueError
from ._options.checks import check_mcp_servers
from ._options.options import QoderAgentOptions
from ._options.prompts import check_prompt, prompt_messages
from ._process.command import mcp_wire_servers
from ._session.session import Session
from ._types.messages import Message, ResultMessage

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from ._types.mcp import McpAuthenticateResult, McpServerConfig, McpSetServersResult, McpStatusResponse, OAuthToken
    from ._types.models import BYOKProviderInfo, ModelInfo
    from ._types.permissions import PermissionMode, PermissionUpdate
    from ._types.sessions import EffortLevel, InterruptResult, RewindFilesResult, RewindScope, Settings


class QoderSDKClient:
    """A connection to a runtime; also an async context manager."""

    def __init__(self, options: QoderAgentOptions | None = None) -> None:
        """Prepare a client; `connect` (or `async with`) starts the runtime."""
        self.options = options if options is not None else QoderAgentOptions()
        self.options.validate()
        self._session: Session | None = None
        self._feeder: BackgroundTask | None = None

    # ---- connection

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        """Start the runtime and, if given, send a first prompt."""
        if self._session is not None:
            raise CLIConnectionError("this client is already connected; disconnect() it first")
        if prompt is not None:
            check_prompt("connect()", prompt)
        self.options.validate()
        session = Session(self.options)
        try:
            await session.start()
        except BaseException:
            await session.close()
            raise
        self._session = session
        if isinstance(prompt, str):
            await self.query(prompt)
        elif prompt is not None:
            self._feed(session, prompt)

    async def disconnect(self) -> None:
        """End the runtime; a client that is not connected stays so."""
        session, self._session = self._session, None
        if self._feeder is not None:
            self._feeder.cancel()
            self._feeder = None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        """Connect."""
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Disconnect."""
        await self.disconnect()

    def _feed(self, session: Session, prompt: AsyncIterable[dict[str, Any]]) -> None:
        async def feed() -> None:
            try:
                async for message in prompt_messages(prompt, session_id="default"):
                    await session.send(message)
            except CLIConnectionError:
                return  # the reader reports how the process ended
            except Exception as error:
                session.fail(error)

        self._feeder = spawn(feed, "qoder-prompts")

    def _connected(self) -> Session:
        if self._session is None:
            raise CLIConnectionError("this client is not connected; call connect() or use 'async with'")
        return self._session

    async def _request(self, subtype: str, **fields: Any) -> dict[str, Any]:
        return await self._connected().request(subtype, fields)

    # ---- conversation

    async def query(
        self,
        prompt: str | AsyncIterable[dict[str, Any]],
        session_id: str = "default",
        *,
        message_uuid: str | None = None,
    ) -> None:
        """Send a new round of user input; `message_uuid` names it for rewinding and cancelling."""
        session = self._connected()
        check_prompt("client.query()", prompt)
        if message_uuid is not None and not isinstance(prompt, str):
            raise OptionValueError("message_uuid goes with a text; put 'uuid' into the messages of an iterable")
        async for message in prompt_messages(prompt, session_id, message_uuid):
            await session.send(message)

    async def receive_messages(self) -> AsyncGenerator[Message, None]:
        """All messages of the session, until it ends."""
        session = self._connected()
        while (message := await session.next_message()) is not None:
            yield message

    async def receive_response(self) -> AsyncGenerator[Message, None]:
        """The messages up to and including the next `ResultMessage`."""
        session = self._connected()
        while (message := await session.next_message()) is not None:
            yield message
            if isinstance(message, ResultMessage):
                session.raise_pending()
                return

    async def interrupt(self) -> InterruptResult:
        """Interrupt the current generation or tool execution; the session stays open."""
        return cast("InterruptResult", await self._request("interrupt"))

    async def cancel_async_message(self, uuid: str) -> bool:
        """Take a queued message back; False when it is too late."""
        return bool((await self._request("cancel_async_message", uuid=uuid)).get("cancelled"))

    async def rewind_files(self, user_message_id: str, *, dry_run: bool = False) -> RewindFilesResult:
        """Restore the files as they were when that user message came."""
        fields: dict[str, Any] = {"dry_run": True} if dry_run else {}
        answer = await self._request("rewind_files", user_message_id=user_message_id, **fields)
        return cast("RewindFilesResult", answer)

    async def rewind(
        self, user_message_id: str, *, scope: RewindScope | None = None, dry_run: bool = False
    ) -> dict[str, Any]:
        """Go back to before that user message: conversation, files or both."""
        fields: dict[str, Any] = {"dry_run": True} if dry_run else {}
        if scope is not None:
            fields["scope"] = scope
        return await self._request("rewind", user_message_id=user_message_id, **fields)

    # ---- what the session is

    async def get_server_info(self) -> dict[str, Any]:
        """What the runtime said about itself when the connection was made."""
        return self._connected().initialization

    def supported_agents(self) -> list[dict[str, Any]]:
        """The agents that can be used: name, description and, if set, model."""
        return list(self._connected().agents)

    async def supported_commands(self) -> list[dict[str, Any]]:
        """The slash commands that can be used."""
        return list((await self._request("supported_commands")).get("commands") or [])

    async def account_info(self) -> dict[str, Any]:
        """Who is logged in."""
        return dict((await self._request("account_info")).get("account") or {})

    async def get_usage_info(self) -> dict[str, Any] | None:
        """What has been used of the account's quota; None when that is not known."""
        return (await self._request("get_usage_info")).get("usageInfo")

    async def get_context_usage(self) -> dict[str, Any]:
        """What fills the context window."""
        return await self._request("get_context_usage")

    async def list_agents(self) -> list[dict[str, Any]]:
        """Every definition of an agent with its source, shadowed ones included."""
        return await self._rows("list_agents", "agents")

    async def list_hooks(self) -> list[dict[str, Any]]:
        """The hooks that the settings define."""
        return await self._rows("list_hooks", "hooks")

    async def list_skills(self) -> list[dict[str, Any]]:
        """The skills of the session."""
        return await self._rows("list_skills", "skills")

    async def list_memory(self) -> list[dict[str, Any]]:
        """The memory files that the model has read."""
        return await self._rows("list_memory", "files")

    async def list_tools(self) -> list[dict[str, Any]]:
        """The tools that the model sees, with their annotations."""
        return await self._rows("list_tools", "tools")

    async def list_permission_rules(self) -> dict[str, Any]:
        """The permission mode and the rules in force, with the file and line of each."""
        return await self._request("list_permission_rules")

    async def _rows(self, subtype: str, key: str) -> list[dict[str, Any]]:
        return list((await self._request(subtype)).get(key) or [])

    # ---- changing the session

    async def set_permission_mode(self, mode: PermissionMode) -> None:
        """Switch the permission mode, from the next decision on."""
        if mode in ("bypassPermissions", "yolo") and not self.options.allow_dangerously_skip_permissions:
            raise OptionValueError(
                f"permission mode '{mode}' skips all permission checks; the client must be made with "
                "allow_dangerously_skip_permissions=True"
            )
        await self._request("set_permission_mode", mode="bypassPermissions" if mode == "yolo" else mode)

    async def set_model(self, model: str | None = None) -> None:
        """Switch the model, from the next model call on; None is the default model."""
        await self._request("set_model", model=model)

    async def set_effort(self, effort: EffortLevel | None) -> None:
        """Set the effort, from the next model call on; None is the default of the model."""
        await self._request("set_effort", effort=effort)

    async def update_permissions(self, updates: list[PermissionUpdate | dict[str, Any]]) -> None:
        """Change rules, the mode or the directories."""
        if not isinstance(updates, list):
            raise OptionTypeError(f"updates must be a list, not {type(updates).__name__}")
        wire = [update if isinstance(update, dict) else update.to_wire() for update in updates]
        skips = any(update.get("mode") == "bypassPermissions" for update in wire)
        if skips and not self.options.allow_dangerously_skip_permissions:
            raise OptionValueError(
                "permission mode 'bypassPermissions' skips all permission checks; the client must be made with "
                "allow_dangerously_skip_permissions=True"
            )
        await self._request("update_permissions", updates=wire)

    async def set_session_title(self, title: str) -> None:
        """Give the session a title."""
        await self._request("set_session_title", title=title)

    async def run_command(self, command: str) -> None:
        """Run a command in the shell, as the user; the model reads its output with the next prompt."""
        await self._request("run_command", command=command)

    async def apply_flag_settings(self, settings: Settings) -> None:
        """Merge settings into those that were given at the start; the last call wins per key."""
        if not isinstance(settings, dict):
            raise OptionTypeError(f"settings must be a dict, not {type(settings).__name__}")
        await self._request("apply_flag_settings", settings=settings)

    async def add_directories(self, directories: list[str | Path]) -> list[str]:
        """Let the session use more directories; returns those that were added."""
        names = [os.fspath(directory) for directory in directories]
        return list((await self._request("add_directories", directories=names)).get("added") or [])

    async def set_goal_max_turns(self, max_turns: int | None) -> None:
        """Limit the turns of a running goal; None lifts the limit."""
        await self._request("set_goal_max_turns", maxTurns=max_turns)

    async def generate_session_title(self, description: str, *, persist: bool = False) -> str | None:
        """Let a model find a title for the session."""
        fields: dict[str, Any] = {"persist": True} if persist else {}
        return (await self._request("generate_session_title", description=description, **fields)).get("title")

    # ---- tasks

    async def stop_task(self, task_id: str) -> None:
        """Stop a background task."""
        await self._request("stop_task", task_id=task_id)

    async def background_tasks(self, tool_use_id: str | None = None) -> bool:
        """Move running foreground work to the background; False when nothing matched."""
        fields = {} if tool_use_id is None else {"tool_use_id": tool_use_id}
        return bool((await self._request("background_tasks", **fields)).get("moved"))

    async def task_output(self, task_id: str) -> str:
        """The end of what a background task has printed."""
        return str((await self._request("task_output", task_id=task_id)).get("output") or "")

    # ---- models

    async def get_available_models(self, *, fetch_strategy: str | None = None) -> list[ModelInfo]:
        """The models that can be used now; an empty list when they cannot be fetched."""
        fields = {} if fetch_strategy is None else {"fetchStrategy": fetch_strategy}
        try:
            return list((await self._request("get_available_models", **fields)).get("models") or [])
        except ControlRequestError:
            return []

    async def list_byok_providers(self) -> list[BYOKProviderInfo] | None:
        """The third-party providers that can be used; None when the runtime has no such catalog."""
        try:
            return list((await self._request("get_byok_config")).get("providers") or [])
        except ControlRequestError:
            return None

    # ---- plugins

    async def list_plugins(self) -> list[dict[str, Any]]:
        """The plugins of the session."""
        return list((await self._request("list_plugins")).get("plugins") or [])

    async def reload_plugins(self) -> dict[str, Any]:
        """Read the plugins again; `error_count` says how many parts could not be loaded."""
        session = self._connected()
        answer = await session.request("reload_plugins", {})
        session.agents = list(answer.get("agents") or [])
        return answer

    # ---- MCP servers

    async def get_mcp_status(self) -> McpStatusResponse:
        """The status of all MCP servers and their tools."""
        answer = await self._request("mcp_status")
        return cast("McpStatusResponse", {"mcpServers": [], **answer})

    async def set_mcp_servers(self, servers: dict[str, McpServerConfig]) -> McpSetServersResult:
        """Replace the MCP servers by the full set that is wanted."""
        if not isinstance(servers, dict):
            raise OptionTypeError(f"servers must be a dict of server configurations, not {type(servers).__name__}")
        check_mcp_servers("servers", servers)
        session = self._connected()
        # The runtime talks to new in-process servers before it answers.
        session.callbacks.add_servers(dict(servers))
        answer = await session.request("mcp_set_servers", {"servers": mcp_wire_servers(dict(servers))})
        await session.callbacks.keep_servers(servers)
        return cast("McpSetServersResult", {"added": [], "removed": [], "errors": {}, **answer})

    async def reload_mcp_servers(self) -> dict[str, Any]:
        """Read the descriptions of MCP servers in settings and files again."""
        return await self._request("mcp_reload")

    async def reconnect_mcp_server(self, name: str) -> None:
        """Connect an MCP server again."""
        await self._request("mcp_reconnect", serverName=name)

    async def toggle_mcp_server(self, name: str, enabled: bool) -> None:
        """Enable or disable an MCP server."""
        await self._request("mcp_toggle", serverName=name, enabled=enabled)

    async def mcp_authenticate(self, name: str, redirect_uri: str | None = None) -> McpAuthenticateResult:
        """Start OAuth for a server; without user action there is nothing more to do."""
        fields = {} if redirect_uri is None else {"redirectUri": redirect_uri}
        answer = await self._request("mcp_authenticate", serverName=name, **fields)
        return cast("McpAuthenticateResult", answer)

    async def mcp_submit_oauth_callback_url(self, name: str, callback_url: str) -> None:
        """Complete OAuth with the URL that the browser was sent to."""
        await self._request("mcp_submit_oauth_callback_url", serverName=name, callbackUrl=callback_url)

    async def inject_mcp_token(self, name: str, token: OAuthToken) -> None:
        """Give the runtime a token that the host obtained itself."""
        await self._request("inject_mcp_token", serverName=name, token=token)

    async def mcp_clear_auth(self, name: str) -> None:
        """Delete the stored credentials of a server."""
        await self._request("mcp_clear_auth", serverName=name)
