"""Types of lifecycle hooks: events, inputs, outputs and matchers.

Inputs are records: dataclasses with the documented fields that can also be
read like dicts, with everything the runtime sent as keys. Outputs may be a
`HookJSONOutput` or a plain dict in either spelling of the keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, Union

from .record import Record

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "CwdChanged",
    "InstructionsLoaded",
    "FileChanged",
    "PermissionRequest",
]

#: Events beyond those, for `hooks` too.
FurtherHookEvent = Literal[
    "PermissionDenied",
    "Notification",
    "ConfigChange",
    "StopFailure",
    "WorktreeCreate",
    "WorktreeRemove",
    "Elicitation",
    "ElicitationResult",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "Setup",
]

#: What becomes of the action when a callback fails or takes too long.
HookFailurePolicy = Literal["continue", "block", "allow", "ask", "deny"]


@dataclass(eq=False)
class BaseHookInput(Record):
    """Fields that every event has."""

    hook_event_name: str
    session_id: str
    transcript_path: str
    cwd: str


@dataclass(eq=False)
class PreToolUseHookInput(BaseHookInput):
    """A tool is about to be called."""

    hook_event_name: Literal["PreToolUse"]
    permission_mode: str | None
    tool_name: str
    tool_input: Any
    tool_use_id: str | None = None


@dataclass(eq=False)
class PostToolUseHookInput(BaseHookInput):
    """A tool has succeeded."""

    hook_event_name: Literal["PostToolUse"]
    tool_name: str
    tool_input: Any
    tool_response: Any
    tool_use_id: str | None = None


@dataclass(eq=False)
class PostToolUseFailureHookInput(BaseHookInput):
    """A tool has failed."""

    hook_event_name: Literal["PostToolUseFailure"]
    tool_name: str
    tool_input: Any
    error: str
    is_interrupt: bool | None
    tool_use_id: str | None = None


@dataclass(eq=False)
class UserPromptSubmitHookInput(BaseHookInput):
    """A prompt is about to be sent."""

    hook_event_name: Literal["UserPromptSubmit"]
    prompt: str


@dataclass(eq=False)
class SessionStartHookInput(BaseHookInput):
    """A session starts: `startup`, `resume`, `clear` or `compact`."""

    hook_event_name: Literal["SessionStart"]
    source: str


@dataclass(eq=False)
class SessionEndHookInput(BaseHookInput):
    """A session has ended."""

    hook_event_name: Literal["SessionEnd"]
    reason: str


@dataclass(eq=False)
class StopHookInput(BaseHookInput):
    """The model stops generating."""

    hook_event_name: Literal["Stop"]
    stop_hook_active: bool


@dataclass(eq=False)
class SubagentStartHookInput(BaseHookInput):
    """A subagent starts."""

    hook_event_name: Literal["SubagentStart"]
    agent_id: str
    agent_type: str


@dataclass(eq=False)
class SubagentStopHookInput(BaseHookInput):
    """A subagent stops."""

    hook_event_name: Literal["SubagentStop"]
    stop_hook_active: bool


@dataclass(eq=False)
class PreCompactHookInput(BaseHookInput):
    """The context is about to be compacted, by `manual` or `auto` trigger."""

    hook_event_name: Literal["PreCompact"]
    trigger: str
    custom_instructions: str | None


@dataclass(eq=False)
class PostCompactHookInput(BaseHookInput):
    """The context has been compacted."""

    hook_event_name: Literal["PostCompact"]
    trigger: str
    compact_summary: str


@dataclass(eq=False)
class CwdChangedHookInput(BaseHookInput):
    """The working directory has changed."""

    hook_event_name: Literal["CwdChanged"]
    old_cwd: str
    new_cwd: str


@dataclass(eq=False)
class InstructionsLoadedHookInput(BaseHookInput):
    """An instructions file has been loaded."""

    hook_event_name: Literal["InstructionsLoaded"]
    load_reason: str


@dataclass(eq=False)
class FileChangedHookInput(BaseHookInput):
    """A watched file changed: `change`, `add` or `unlink`."""

    hook_event_name: Literal["FileChanged"]
    file_path: str
    event: str


@dataclass(eq=False)
class PermissionRequestHookInput(BaseHookInput):
    """A permission is asked for."""

    hook_event_name: Literal["PermissionRequest"]
    tool_name: str
    tool_input: Any
    permission_suggestions: list[Any] | None


@dataclass(eq=False)
class ElicitationHookInput(BaseHookInput):
    """An MCP server asks the user for input; observation only."""

    hook_event_name: Literal["Elicitation"]
    mcp_server_name: str
    message: str
    mode: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    title: str | None = None


@dataclass(eq=False)
class ElicitationResultHookInput(BaseHookInput):
    """An MCP server's question has been answered; observation only."""

    hook_event_name: Literal["ElicitationResult"]
    mcp_server_name: str
    action: str
    mode: str | None = None
    elicitation_id: str | None = None
    content: dict[str, Any] | None = None


HookInput = Union[
    PreToolUseHookInput,
    PostToolUseHookInput,
    PostToolUseFailureHookInput,
    UserPromptSubmitHookInput,
    SessionStartHookInput,
    SessionEndHookInput,
    StopHookInput,
    SubagentStartHookInput,
    SubagentStopHookInput,
    PreCompactHookInput,
    PostCompactHookInput,
    CwdChangedHookInput,
    InstructionsLoadedHookInput,
    FileChangedHookInput,
    PermissionRequestHookInput,
    ElicitationHookInput,
    ElicitationResultHookInput,
    BaseHookInput,
]

#: Which input an event has; events outside this table arrive as `BaseHookInput`.
HOOK_INPUTS: dict[str, type[BaseHookInput]] = {
    "PreToolUse": PreToolUseHookInput,
    "PostToolUse": PostToolUseHookInput,
    "PostToolUseFailure": PostToolUseFailureHookInput,
    "UserPromptSubmit": UserPromptSubmitHookInput,
    "SessionStart": SessionStartHookInput,
    "SessionEnd": SessionEndHookInput,
    "Stop": StopHookInput,
    "SubagentStart": SubagentStartHookInput,
    "SubagentStop": SubagentStopHookInput,
    "PreCompact": PreCompactHookInput,
    "PostCompact": PostCompactHookInput,
    "CwdChanged": CwdChangedHookInput,
    "InstructionsLoaded": InstructionsLoadedHookInput,
    "FileChanged": FileChangedHookInput,
    "PermissionRequest": PermissionRequestHookInput,
    "Elicitation": ElicitationHookInput,
    "ElicitationResult": ElicitationResultHookInput,
}


@dataclass(eq=False)
class HookCallbackOptions(Record):
    """Third argument of a hook callback; `signal` is set when the runtime cancels the hook."""

    signal: asyncio.Event


@dataclass
class HookJSONOutput:
    """What a hook callback returns; `None` leaves a field out."""

    continue_: bool | None = None
    stop_reason: str | None = None
    decision: str | None = None
    reason: str | None = None
    hook_specific_output: dict[str, Any] | None = None
    suppress_output: bool | None = None
    system_message: str | None = None
    async_: bool | None = None
    async_timeout: int | None = None


HookCallback = Callable[
    [Any, Union[str, None], HookCallbackOptions],
    Awaitable[Union[HookJSONOutput, Mapping[str, Any], None]],
]


@dataclass
class HookMatcher:
    """Callbacks for the calls that `matcher` (a regular expression) fits; without one, for all."""

    hooks: list[HookCallback]
    matcher: str | None = None
    timeout: int | None = None
    on_failure: HookFailurePolicy | None = None


KeyType = TypeVar("KeyType", covariant=True)
ValueType = TypeVar("ValueType", covariant=True)


class SupportsItems(Protocol[KeyType, ValueType]):
    """A dict, seen by its items alone: the keys of `dict` are invariant, so that no one type of dict would do."""

    def items(self) -> AbstractSet[tuple[KeyType, ValueType]]:
        """The keys with their values."""
        ...


#: Both a literal and a `dict[HookEvent, list[HookMatcher]]`.
HookMatchers = SupportsItems[Union[HookEvent, FurtherHookEvent], Sequence[HookMatcher]]
