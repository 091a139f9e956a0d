"""`tool()` defines, `create_sdk_mcp_server()` checks.

What is wrong with a tool is said when its server is built, by the name of the tool and
the server.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from mcp.types import ToolAnnotations

from qoder_agent_sdk import (
    OptionTypeError,
    OptionValueError,
    SdkMcpTool,
    ToolInvocationContext,
    create_sdk_mcp_server,
    tool,
)

Result = dict[str, Any]


async def handler(args: dict[str, Any]) -> Result:
    return {"content": []}


def test_the_decorator_gives_a_tool() -> None:
    annotations = ToolAnnotations(readOnlyHint=True)
    made = tool("t", "Does it.", {"a": str}, annotations=annotations)(handler)
    assert isinstance(made, SdkMcpTool)
    assert (made.name, made.description, made.input_schema) == ("t", "Does it.", {"a": str})
    assert made.handler is handler and made.annotations is annotations


def test_defining_checks_nothing() -> None:
    assert tool("", "", {"a": complex})(handler).name == ""


def test_the_server_config_can_be_used_in_options() -> None:
    config = create_sdk_mcp_server(name="kb")
    assert config["type"] == "sdk" and config["name"] == "kb"
    assert config["instance"].version == "1.0.0"


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_server_needs_a_name(name: Any) -> None:
    with pytest.raises(OptionValueError, match="name of an MCP server"):
        create_sdk_mcp_server(name=name)


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_tool_needs_a_name(name: Any) -> None:
    with pytest.raises(OptionValueError, match="name of a tool"):
        create_sdk_mcp_server(name="s", tools=[tool(name, "d", {})(handler)])


@pytest.mark.parametrize("description", ["", " ", None])
def test_a_tool_needs_a_description(description: Any) -> None:
    with pytest.raises(OptionValueError, match="tool 't' needs a description"):
        create_sdk_mcp_server(name="s", tools=[tool("t", description, {})(handler)])


def test_names_are_unique_within_a_server_only() -> None:
    one, two = tool("t", "d", {})(handler), tool("t", "d", {})(handler)
    create_sdk_mcp_server(name="a", tools=[one])
    create_sdk_mcp_server(name="b", tools=[two])
    with pytest.raises(OptionValueError, match="two tools named 't'"):
        create_sdk_mcp_server(name="s", tools=[one, two])


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(OptionTypeError, match="decorate the handler with @tool"):
        create_sdk_mcp_server(name="s", tools=[handler])  # type: ignore[list-item]


def test_a_handler_must_be_async() -> None:
    def plain(args: Any) -> Any:
        return {"content": []}

    with pytest.raises(OptionTypeError, match="tool 't'.*async def"):
        create_sdk_mcp_server(name="s", tools=[tool("t", "d", {})(plain)])


async def none() -> Result:
    return {"content": []}


async def three(one: Any, two: Any, three: Any) -> Result:
    return {"content": []}


async def keyword(args: Any, *, needed: int) -> Result:
    return {"content": []}


@pytest.mark.parametrize("wrong", [none, three, keyword])
def test_a_handler_takes_one_or_two_parameters(wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match="one parameter .* or two"):
        create_sdk_mcp_server(name="s", tools=[tool("t", "d", {})(wrong)])


async def two(args: Any, extra: Any) -> Result:
    return {"content": []}


class Holder:
    async def method(self, args: Any) -> Result:
        return {"content": []}

    async def __call__(self, args: Any, extra: Any) -> Result:
        return {"content": []}


async def prefixed(prefix: str, args: Any) -> Result:
    return {"content": []}


@pytest.mark.parametrize(
    ("right", "takes_context"),
    [
        (handler, False),
        (two, True),
        (Holder().method, False),
        (Holder(), True),
        (functools.partial(prefixed, "x"), False),
    ],
)
def test_the_second_parameter_decides_about_the_context(right: Any, takes_context: bool) -> None:
    server = create_sdk_mcp_server(name="s", tools=[tool("t", "d", {})(right)])
    assert server["instance"].tools["t"].takes_context is takes_context


def test_a_context_has_a_signal_that_is_not_set() -> None:
    assert ToolInvocationContext().signal.is_set() is False
