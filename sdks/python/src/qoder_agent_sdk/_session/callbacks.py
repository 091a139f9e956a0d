"""Answers to what the runtime asks the host: permissions, hooks, tools, models.

Each request runs in a task of its own. This file turns the request into the
arguments of the user's callback and its return value into the answer; errors
fail closed: a permission callback that raises denies, any other one answers
with an error that the runtime handles by its own rules.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import anyio

from .._errors import ModelPolicyTimeoutError, OptionTypeError
from .._mcp.results import exception_text
from .._options.checks import accepts
from .._options.options import QoderAgentOptions
from .._types.permissions import (
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ToolPermissionContext,
)

if TYPE_CHECKING:
    from .._mcp.foreign import ForeignConnection
    from .._mcp.server import McpConnection
    from .._types.hooks import HookCallback

logger = logging.getLogger("qoder_agent_sdk")

Answer = dict[str, Any]

#: Python spellings of hook output keys, and what travels.
_HOOK_KEYS = {
    "continue_": "continue",
    "async_": "async",
    "stop_reason": "stopReason",
    "hook_specific_output": "hookSpecificOutput",
    "suppress_output": "suppressOutput",
    "system_message": "systemMessage",
    "async_timeout": "asyncTimeout",
}


class Callbacks:
    """The callbacks of one session."""

    def __init__(self, options: QoderAgentOptions) -> None:
        """Number the hooks and connect the in-process servers."""
        self._options = options
        self._hooks: list[HookCallback] = []
        self._connections: dict[str, McpConnection | ForeignConnection] = {}
        self._auth_expired_seen = False
        #: Set when the model callback was too slow; the stream raises it.
        self.policy_timeout: ModelPolicyTimeoutError | None = None
        if isinstance(options.mcp_servers, Mapping):
            self.add_servers(dict(options.mcp_servers))
        self._handlers: dict[str, Callable[[Answer, asyncio.Event], Awaitable[Answer | None]]] = {
            "can_use_tool": self._can_use_tool,
            "hook_callback": self._hook_callback,
            "mcp_message": self._mcp_message,
            "get_model_policy": self._model_policy,
            "mcp_oauth_required": self._oauth_required,
            "elicitation": self._elicitation,
            "auth_expired": self._auth_expired,
        }

    @property
    def any_registered(self) -> bool:
        """Whether the runtime may have something to ask, so that its input must stay open."""
        options = self._options
        asked = (
            options.can_use_tool,
            options.hooks,
            options.resolve_model,
            options.on_elicitation,
            options.on_mcp_oauth_required,
            options.on_auth_expired,
        )
        return any(asked) or bool(self._connections)

    def add_servers(self, servers: dict[str, Any]) -> None:
        """Connect the in-process servers of a configuration."""
        for name, config in servers.items():
            if config.get("type") == "sdk":
                self._connections[name] = _connected(config["instance"])

    async def keep_servers(self, names: Collection[str]) -> None:
        """Release the in-process servers that are not among these."""
        for name in [name for name in self._connections if name not in names]:
            await self._connections.pop(name).close()

    async def close(self) -> None:
        """Release the in-process servers."""
        for connection in self._connections.values():
            await connection.close()

    def hook_registrations(self) -> dict[str, Any] | None:
        """The hooks as `initialize` declares them."""
        if not self._options.hooks:
            return None
        registrations: dict[str, Any] = {}
        for event, matchers in self._options.hooks.items():
            rows = registrations[event] = []
            for matcher in matchers:
                identifiers = []
                for hook in matcher.hooks:
                    identifiers.append(f"hook_{len(self._hooks)}")
                    self._hooks.append(hook)
                row: dict[str, Any] = {"matcher": matcher.matcher, "hookCallbackIds": identifiers}
                if matcher.timeout is not None:
                    row["timeout"] = matcher.timeout
                if matcher.on_failure is not None:
                    row["onFailure"] = matcher.on_failure
                rows.append(row)
        return registrations

    async def answer(self, request: dict[str, Any], signal: asyncio.Event) -> Answer | None:
        """The answer to one request; an exception becomes an error reply."""
        subtype = request.get("subtype")
        handler = self._handlers.get(str(subtype))
        if handler is None:
            raise OptionTypeError(f"unsupported control request subtype: {subtype}")
        try:
            return await handler(request, signal)
        except Exception:
            logger.error("%s failed", self._callback_name(request), exc_info=True)
            raise

    def _callback_name(self, request: Answer) -> str:
        """The callback of a request as its author knows it."""
        subtype = str(request.get("subtype"))
        if subtype != "hook_callback":
            return _CALLBACK_NAMES.get(subtype, subtype)
        index = str(request.get("callback_id")).removeprefix("hook_")
        hook = self._hooks[int(index)] if index.isdigit() and int(index) < len(self._hooks) else None
        event = (request.get("input") or {}).get("hook_event_name")
        return f"the {event} hook '{getattr(hook, '__qualname__', type(hook).__name__)}'"

    async def _can_use_tool(self, request: Answer, signal: asyncio.Event) -> Answer:
        callback = self._options.can_use_tool
        tool_name, arguments = request["tool_name"], request["input"]
        if callback is None:
            raise OptionTypeError("no can_use_tool callback is registered")
        context = ToolPermissionContext(
            signal=signal,
            suggestions=request.get("permission_suggestions") or [],
            **{name: request.get(name) for name in _CONTEXT_FIELDS},
        )
        try:
            decision = await _resolved(callback(tool_name, arguments, context))
            return _permission_answer(decision, arguments)
        except Exception as error:
            logger.error("can_use_tool failed for tool '%s'; the call is denied", tool_name, exc_info=True)
            return {"behavior": "deny", "message": exception_text(error)}

    async def _hook_callback(self, request: Answer, signal: asyncio.Event) -> Answer:
        from .._types.hooks import HOOK_INPUTS, BaseHookInput, HookCallbackOptions

        identifier = str(request.get("callback_id"))
        index = identifier.removeprefix("hook_")
        if not index.isdigit() or int(index) >= len(self._hooks):
            raise OptionTypeError(f"there is no hook callback '{identifier}'")
        payload = request.get("input") or {}
        record = HOOK_INPUTS.get(str(payload.get("hook_event_name")), BaseHookInput).from_wire(payload)
        hook = self._hooks[int(index)]
        output = await _resolved(hook(record, request.get("tool_use_id"), HookCallbackOptions(signal=signal)))
        return _hook_answer(output)

    async def _mcp_message(self, request: Answer, signal: asyncio.Event) -> Answer:
        from .._mcp.server import METHOD_NOT_FOUND, rpc_error

        name, message = request["server_name"], request["message"]
        connection = self._connections.get(name)
        if connection is None:
            response = rpc_error(message.get("id"), METHOD_NOT_FOUND, f"there is no in-process MCP server '{name}'")
        else:
            response = await connection.handle(message, signal)
        return {"mcp_response": response}

    async def _model_policy(self, request: Answer, signal: asyncio.Event) -> Answer:
        provider = self._options.resolve_model
        if provider is None:
            raise OptionTypeError("no resolve_model callback is registered")
        context = {key: request[key] for key in _POLICY_FIELDS if key in request}
        milliseconds = self._options.resolve_model_timeout_ms
        begun = time.monotonic()
        with anyio.move_on_after(milliseconds / 1000) as scope:
            result = await _resolved(provider(context))  # type: ignore[arg-type]
        # A function that blocks cannot be interrupted, but its answer comes too late.
        if scope.cancelled_caught or time.monotonic() - begun > milliseconds / 1000:
            self.policy_timeout = ModelPolicyTimeoutError(
                f"resolve_model did not answer within {milliseconds} ms (purpose: {request.get('purpose')}); "
                "make it faster or raise resolve_model_timeout_ms"
            )
            raise ModelPolicyTimeoutError(str(self.policy_timeout))
        return _policy_answer(result)

    async def _oauth_required(self, request: Answer, signal: asyncio.Event) -> Answer | None:
        callback = self._options.on_mcp_oauth_required
        if callback is None:
            return None
        resolution = await _ask_host(callback, request, signal)
        if resolution is None:
            return None
        if not isinstance(resolution, dict):
            raise OptionTypeError(f"on_mcp_oauth_required must return a dict or None, not {type(resolution).__name__}")
        return {"token": resolution} if "access_token" in resolution else dict(resolution)

    async def _elicitation(self, request: Answer, signal: asyncio.Event) -> Answer:
        callback = self._options.on_elicitation
        if callback is None:
            return {"action": "cancel"}
        try:
            result = await _ask_host(callback, request, signal)
        except Exception:
            logger.error("on_elicitation failed; the request is cancelled", exc_info=True)
            return {"action": "cancel"}
        dump = getattr(result, "model_dump", None)
        if callable(dump):
            result = dump(exclude_none=True)
        if not isinstance(result, dict) or result.get("action") not in ("accept", "decline", "cancel"):
            return {"action": "cancel"}
        return {key: result[key] for key in ("action", "content") if result.get(key) is not None}

    async def _auth_expired(self, request: Answer, signal: asyncio.Event) -> Answer:
        callback = self._options.on_auth_expired
        if callback is None or self._auth_expired_seen:
            return {}
        self._auth_expired_seen = True
        returned = await _resolved(callback(request.get("reason")) if accepts(callback, 1) else callback())
        if isinstance(returned, str):
            return {"access_token": returned}
        token = returned.get("access_token") if isinstance(returned, dict) else None
        return {"access_token": token} if token else {}


_CONTEXT_FIELDS = [each.name for each in fields(ToolPermissionContext) if each.name not in ("signal", "suggestions")]

#: The options behind requests that are named otherwise.
_CALLBACK_NAMES = {
    "get_model_policy": "resolve_model",
    "mcp_oauth_required": "on_mcp_oauth_required",
    "elicitation": "on_elicitation",
    "auth_expired": "on_auth_expired",
    "mcp_message": "an in-process MCP server",
}

_POLICY_FIELDS = ("purpose", "sessionId", "agentId", "turnIndex", "availableModels")


def _connected(instance: Any) -> McpConnection | ForeignConnection:
    """A connection to an in-process server, ours or one of the `mcp` package."""
    from .._mcp.server import McpServer

    if isinstance(instance, McpServer):
        return instance.connect()
    from .._mcp.foreign import ForeignConnection

    return ForeignConnection(instance)


async def _resolved(value: Any) -> Any:
    """What a callback returned, whether it is asynchronous or not."""
    return await value if inspect.isawaitable(value) else value


async def _ask_host(callback: Callable[..., Any], request: Answer, signal: asyncio.Event) -> Any:
    """Call a callback with a request, and with options when it takes them."""
    from .._types.hooks import HookCallbackOptions

    if accepts(callback, 2):
        return await _resolved(callback(_camel_keys(request), HookCallbackOptions(signal=signal)))
    return await _resolved(callback(_camel_keys(request)))


def _permission_answer(decision: Any, arguments: dict[str, Any]) -> Answer:
    if isinstance(decision, PermissionResultAllow):
        answer: Answer = {
            "behavior": "allow",
            "updatedInput": arguments if decision.updated_input is None else decision.updated_input,
        }
        if decision.updated_permissions is not None:
            answer["updatedPermissions"] = [
                update.to_wire() if isinstance(update, PermissionUpdate) else update
                for update in decision.updated_permissions
            ]
    elif isinstance(decision, PermissionResultDeny):
        answer = {"behavior": "deny", "message": decision.message}
        if decision.interrupt:
            answer["interrupt"] = True
    else:
        raise OptionTypeError(
            "can_use_tool must return PermissionResultAllow or PermissionResultDeny, "
            f"not {type(decision).__name__}; the call is denied"
        )
    if decision.decision_classification is not None:
        answer["decisionClassification"] = decision.decision_classification
    return answer


def _hook_answer(output: Any) -> Answer:
    if output is None:
        return {}
    if is_dataclass(output) and not isinstance(output, type):
        output = {each.name: value for each in fields(output) if (value := getattr(output, each.name)) is not None}
    if not isinstance(output, Mapping):
        raise OptionTypeError(f"a hook must return a dict or HookJSONOutput, not {type(output).__name__}")
    return {_HOOK_KEYS.get(str(key), str(key)): value for key, value in output.items()}


def _policy_answer(result: Any) -> Answer:
    model = result.get("model") if isinstance(result, Mapping) else None
    if not model:
        raise OptionTypeError("resolve_model must return a dict with a non-empty 'model'")
    answer: Answer = {}
    if isinstance(model, Mapping):
        if not model.get("model"):
            raise OptionTypeError("resolve_model returned a CustomModel without a 'model'")
        answer["model"] = model["model"]
        answer["credentials"] = {key: value for key, value in model.items() if key != "model"}
    else:
        answer["model"] = str(model)
    if result.get("parameters"):
        answer["parameters"] = result["parameters"]
    return answer


def _camel_keys(request: Answer) -> dict[str, Any]:
    """The request with camelCase keys, as the callbacks are documented."""
    converted = {}
    for key, value in request.items():
        if key != "subtype":
            first, *others = key.split("_")
            converted[first + "".join(part.capitalize() for part in others)] = value
    return converted
