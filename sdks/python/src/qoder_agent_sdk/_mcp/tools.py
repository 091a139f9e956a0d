"""Custom tools: the `@tool()` decorator and in-process MCP servers.

`tool()` only defines. `create_sdk_mcp_server()` checks names, descriptions,
schemas and handlers at once and refuses what cannot work, so that mistakes
show where the server is built and not in the middle of a conversation.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Union, cast

from typing_extensions import NotRequired

from .._errors import OptionTypeError, OptionValueError
from .tool_schema import JsonSchema, tool_schema

if TYPE_CHECKING:
    # Importing `mcp` takes longer than starting the runtime; annotations are only read.
    from mcp.types import ToolAnnotations

    from .._types.mcp import McpSdkServerConfig

T = TypeVar("T")


@dataclass
class ToolInvocationContext:
    """Second argument of a handler; `signal` is set when the runtime cancels the call."""

    signal: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class SdkMcpTool(Generic[T]):
    """A tool with its handler, as `@tool()` makes it."""

    name: str
    description: str
    input_schema: type[T] | dict[str, Any]
    handler: Callable[..., Awaitable[dict[str, Any]]]
    annotations: ToolAnnotations | None = None


class TextToolContent(TypedDict):
    """Text in a tool result."""

    type: Literal["text"]
    text: str


class ImageToolContent(TypedDict):
    """A picture in a tool result; `data` is base64."""

    type: Literal["image"]
    data: str
    mimeType: str


class ResourceLinkToolContent(TypedDict):
    """A link in a tool result; the model sees it as text."""

    type: Literal["resource_link"]
    uri: str
    name: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]


class EmbeddedResourceValue(TypedDict, total=False):
    """The resource inside an embedded resource block."""

    uri: str
    mimeType: str
    text: str
    blob: str


class EmbeddedResourceToolContent(TypedDict):
    """A resource in a tool result; only text reaches the model."""

    type: Literal["resource"]
    resource: EmbeddedResourceValue


ToolContent = Union[TextToolContent, ImageToolContent, ResourceLinkToolContent, EmbeddedResourceToolContent]


class ToolHandlerResult(TypedDict):
    """What a handler returns."""

    content: list[ToolContent]
    is_error: NotRequired[bool]


def tool(
    name: str,
    description: str,
    input_schema: type | dict[str, Any],
    annotations: ToolAnnotations | None = None,
) -> Callable[[Callable[..., Awaitable[Mapping[str, Any]]]], SdkMcpTool[Any]]:
    """Make a tool of an `async def` function that takes the arguments as a dict."""

    def decorate(handler: Callable[..., Awaitable[Mapping[str, Any]]]) -> SdkMcpTool[Any]:
        return SdkMcpTool(
            name=name,
            description=description,
            input_schema=input_schema,
            # A handler may say `ToolHandlerResult`, which is a dict that checkers do not take for one.
            handler=cast("Callable[..., Awaitable[dict[str, Any]]]", handler),
            annotations=annotations,
        )

    return decorate


@dataclass
class RegisteredTool:
    """A tool whose definition has been checked."""

    definition: SdkMcpTool[Any]
    schema: JsonSchema
    takes_context: bool

    def listing(self) -> dict[str, Any]:
        """The row of this tool in an MCP tool list."""
        row: dict[str, Any] = {
            "name": self.definition.name,
            "description": self.definition.description,
            "inputSchema": self.schema,
        }
        annotations = _annotation_values(self.definition.annotations)
        size = annotations.pop("maxResultSizeChars", None)
        if annotations:
            row["annotations"] = annotations
        if size is not None:
            row["_meta"] = {"anthropic/maxResultSizeChars": size}
        return row


def create_sdk_mcp_server(
    name: str,
    version: str = "1.0.0",
    tools: list[SdkMcpTool[Any]] | None = None,
) -> McpSdkServerConfig:
    """Make an MCP server that runs in this process, for `QoderAgentOptions.mcp_servers`."""
    from .server import McpServer

    if not isinstance(name, str) or not name.strip():
        raise OptionValueError(f"the name of an MCP server must be a non-empty string, not {name!r}")
    if not isinstance(version, str):
        raise OptionTypeError(f"MCP server '{name}': version must be a string, not {version!r}")
    registered: dict[str, RegisteredTool] = {}
    for definition in tools or []:
        checked = _register(definition, name)
        if definition.name in registered:
            raise OptionValueError(f"MCP server '{name}' has two tools named '{definition.name}'; names must be unique")
        registered[definition.name] = checked
    return {"type": "sdk", "name": name, "instance": McpServer(name, version, registered)}


def _register(definition: SdkMcpTool[Any], server_name: str) -> RegisteredTool:
    if not isinstance(definition, SdkMcpTool):
        raise OptionTypeError(
            f"MCP server '{server_name}': {definition!r} is not a tool; decorate the handler with @tool(...)"
        )
    if not isinstance(definition.name, str) or not definition.name.strip():
        raise OptionValueError(
            f"MCP server '{server_name}': the name of a tool must be a non-empty string, not {definition.name!r}"
        )
    if not isinstance(definition.description, str) or not definition.description.strip():
        raise OptionValueError(
            f"MCP server '{server_name}': tool '{definition.name}' needs a description; "
            "the model reads it to decide when to use the tool"
        )
    schema = tool_schema(definition.input_schema, definition.name)
    return RegisteredTool(definition, schema, _takes_context(definition))


def _takes_context(definition: SdkMcpTool[Any]) -> bool:
    """Whether the handler declares a second positional parameter; refuses handlers that cannot be called."""
    handler = definition.handler
    if not callable(handler) or not _is_async(handler):
        raise OptionTypeError(f"tool '{definition.name}': the handler must be an 'async def' function")
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except ValueError:
        return False  # some builtins have no signature; they get the arguments alone
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in positional if each.default is each.empty]
    keyword_only = [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(required) > 2 or keyword_only or not (positional or takes_any):
        raise OptionTypeError(
            f"tool '{definition.name}': the handler must take one parameter (the arguments) or two "
            "(the arguments and a ToolInvocationContext)"
        )
    return len(positional) >= 2


def _is_async(handler: Any) -> bool:
    candidates = (handler, inspect.unwrap(handler), type(handler).__call__)
    return any(inspect.iscoroutinefunction(candidate) for candidate in candidates)


def _annotation_values(annotations: Any) -> dict[str, Any]:
    """The annotations that were set, under their MCP names."""
    if annotations is None:
        return {}
    dump = getattr(annotations, "model_dump", None)
    values = dump(by_alias=True, exclude_none=True) if callable(dump) else dict(annotations)
    return {name: value for name, value in values.items() if value is not None}
