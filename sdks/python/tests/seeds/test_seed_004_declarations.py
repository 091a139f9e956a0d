"""Document 004: every type it declares exists with the same fields and defaults.

The declarations are run as they stand and compared with ours: names, fields, their
order, defaults, types, and the values of literals.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, get_origin

import pytest
from support.samples import public_names, samples
from support.spelling import spelled, types_of
from typing_extensions import is_typeddict

import qoder_agent_sdk

FILES = ["004_agents", "004_models", "004_permissions", "004_mcp", "004_tools", "004_hooks", "004_messages"]

#: Named in the document as things that the package does not export.
NOT_EXPORTED = {"AgentInfo"}

#: Messages carry more kinds of blocks than the document lists.
WIDER_FIELDS = {"AssistantMessage": "content"}

#: Callbacks may be written for the input of one event, and may return plain dicts.
WIDER_ALIASES = {"HookCallback"}

PREAMBLE = """
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypedDict, TypeVar
from typing_extensions import NotRequired
"""


class Documented(dict[str, Any]):
    """Names that a declaration uses before it, or without, declaring them are ours."""

    def __missing__(self, name: str) -> Any:
        if name in qoder_agent_sdk.__all__:
            return getattr(qoder_agent_sdk, name)
        raise KeyError(name)


def declared() -> list[Any]:
    """All classes and aliases that the document declares."""
    found = []
    for file in FILES:
        for title, code in samples(file).items():
            names = Documented()
            exec(PREAMBLE, names)
            before = set(names)
            exec(code, names)
            for name in set(names) - before - {"T", "ToolAnnotations"}:
                found.append(pytest.param(name, names[name], id=f"{file} {title} {name}"))
    return found


def has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return type(field.default_factory())
    return field.default


def same_dataclass(documented: Any, ours: Any) -> None:
    theirs = {field.name: field for field in dataclasses.fields(documented)}
    mine = {field.name: field for field in dataclasses.fields(ours)}
    assert set(theirs) <= set(mine)
    required = [name for name, field in theirs.items() if not has_default(field)]
    assert [name for name, field in mine.items() if not has_default(field)] == required
    for name, field in theirs.items():
        if has_default(field):
            assert default_of(mine[name]) == default_of(field), name
    # Who passes arguments by position, as the document lists them, must not be surprised.
    assert list(mine)[: len(theirs)] == list(theirs)
    same_types(documented, ours)


def same_types(documented: Any, ours: Any) -> None:
    theirs, mine = types_of(documented), types_of(ours)
    wider = WIDER_FIELDS.get(documented.__name__)
    assert {name: mine[name] for name in theirs if name != wider} == {
        name: kind for name, kind in theirs.items() if name != wider
    }
    if wider is not None:
        assert set(re.findall(r"\w+", theirs[wider])) < set(re.findall(r"\w+", mine[wider]))


def same_typed_dict(documented: Any, ours: Any) -> None:
    assert list(documented.__annotations__) == list(ours.__annotations__)
    assert documented.__total__ == ours.__total__
    same_types(documented, ours)


@pytest.mark.parametrize(("name", "documented"), declared())
def test_a_declared_type_is_ours(name: str, documented: Any) -> None:
    if name in NOT_EXPORTED:
        assert not hasattr(qoder_agent_sdk, name)
        return
    assert name in qoder_agent_sdk.__all__
    ours = getattr(qoder_agent_sdk, name)
    if dataclasses.is_dataclass(documented):
        same_dataclass(documented, ours)
    elif is_typeddict(documented):
        same_typed_dict(documented, ours)
    elif inspect.isclass(documented) and issubclass(documented, Exception):
        assert issubclass(ours, Exception)
    elif name in WIDER_ALIASES:
        assert get_origin(documented) is get_origin(ours) is Callable
    else:
        assert get_origin(documented) is not None and spelled(documented) == spelled(ours)


@pytest.mark.parametrize(("title", "code"), list(samples("004_methods").items()))
def test_a_documented_signature_is_ours(title: str, code: str) -> None:
    names = Documented()
    exec(
        "from __future__ import annotations\n"
        + PREAMBLE
        + "from collections.abc import AsyncIterable, AsyncIterator\n",
        names,
    )
    before = set(names)
    exec("from __future__ import annotations\n" + code, names)
    (name,) = set(names) - before - {"ToolAnnotations"}
    ours = getattr(qoder_agent_sdk, name, None) or getattr(qoder_agent_sdk.QoderSDKClient, name)
    theirs, mine = inspect.signature(names[name]).parameters, inspect.signature(ours).parameters
    for parameter in theirs.values():
        assert mine[parameter.name].kind == parameter.kind
        assert mine[parameter.name].default == parameter.default
    named = {each: kind for each, kind in types_of(names[name]).items() if each != "return"}
    assert {each: types_of(ours)[each] for each in named} == named
    assert all(each.default is not each.empty for each in mine.values() if each.name not in theirs)


CLIENT_METHODS = """
query receive_response receive_messages connect disconnect interrupt set_model set_permission_mode stop_task
apply_flag_settings supported_agents get_mcp_status set_mcp_servers reconnect_mcp_server toggle_mcp_server
get_available_models list_byok_providers mcp_authenticate mcp_submit_oauth_callback_url inject_mcp_token
mcp_clear_auth
""".split()


@pytest.mark.parametrize("name", CLIENT_METHODS)
def test_a_documented_client_method_exists(name: str) -> None:
    method = getattr(qoder_agent_sdk.QoderSDKClient, name)
    synchronous = name in ("supported_agents", "receive_response", "receive_messages")
    assert inspect.iscoroutinefunction(method) is not synchronous
    assert inspect.isasyncgenfunction(method) is name.startswith("receive_")


UNEXPORTED = """
CallToolResult AnyZodRawShape InferShape ToolExtras CreateSdkMcpServerOptions AgentInfo ToolConfig
AgentInput AgentOutput BashInput BashOutput FileReadInput FileReadOutput FileEditInput FileEditOutput
FileWriteInput FileWriteOutput GlobInput GlobOutput GrepInput GrepOutput WebFetchInput WebFetchOutput
WebSearchInput WebSearchOutput AskUserQuestionInput AskUserQuestionOutput NotebookEditInput NotebookEditOutput
TaskOutputInput TaskStopInput TaskStopOutput ExitPlanModeInput ExitPlanModeOutput ConfigInput ConfigOutput
EnterWorktreeInput EnterWorktreeOutput ExitWorktreeInput ExitWorktreeOutput TodoWriteInput TodoWriteOutput
ListMcpResourcesInput ListMcpResourcesOutput ReadMcpResourceInput McpInput McpOutput ToolInputSchemas ToolOutputSchemas
""".split()


@pytest.mark.parametrize("name", UNEXPORTED)
def test_what_is_documented_as_not_exported_is_not(name: str) -> None:
    assert not hasattr(qoder_agent_sdk, name)


def test_everything_public_is_documented() -> None:
    for name, value in public_names().items():
        if get_origin(value) is None and (inspect.isclass(value) or inspect.isfunction(value)):
            assert value.__doc__, name
