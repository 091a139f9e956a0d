"""Types of the session itself: agents, prompts, settings, plugins, thinking.

`AgentDefinition` keeps the camelCase field names of the protocol, because it
is sent as `dataclasses.asdict()` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Union

from typing_extensions import NotRequired, Required

from .permissions import PermissionMode

SettingSource = Literal["user", "project", "local"]

EffortLevel = Literal["low", "medium", "high", "max"]

#: Names of the built-in tools, for `tools`, `allowed_tools`, matchers and agents.
BuiltinToolName = Literal[
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "Agent",
    "AskUserQuestion",
    "NotebookEdit",
    "TaskOutput",
    "TaskStop",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "Config",
    "TodoWrite",
    "ListMcpResources",
    "ReadMcpResource",
    "Mcp",
    "ImageGen",
]

#: Settings as they stand in a settings file.
Settings = dict[str, Any]


@dataclass
class AgentDefinition:
    """A custom agent of this session."""

    description: str
    prompt: str
    tools: list[str] | None = None
    disallowedTools: list[str] | None = None
    model: str | None = None
    skills: list[str] | None = None
    mcpServers: list[str | dict[str, Any]] | None = None
    initialPrompt: str | None = None
    maxTurns: int | None = None
    effort: Literal["low", "medium", "high", "max"] | None = None
    permissionMode: PermissionMode | None = None


class SystemPromptPreset(TypedDict):
    """The built-in system prompt, with text added at its end."""

    type: Literal["preset"]
    preset: Literal["qodercli"]
    append: NotRequired[str]


class SystemPromptFile(TypedDict):
    """A system prompt that the runtime reads from a file."""

    type: Literal["file"]
    path: str


class ToolsPreset(TypedDict):
    """All built-in tools."""

    type: Literal["preset"]
    preset: Literal["qodercli"]


class SdkPluginConfig(TypedDict):
    """A plugin in a directory of this machine."""

    type: Literal["local"]
    path: str


class ThinkingConfigAdaptive(TypedDict, total=False):
    """The model decides how much it thinks."""

    type: Required[Literal["adaptive"]]
    display: Literal["summarized", "omitted"]


class ThinkingConfigEnabled(TypedDict, total=False):
    """Thinking within a budget of tokens."""

    type: Required[Literal["enabled"]]
    budget_tokens: Required[int]
    display: Literal["summarized", "omitted"]


class ThinkingConfigDisabled(TypedDict):
    """No thinking."""

    type: Literal["disabled"]


ThinkingConfig = Union[ThinkingConfigAdaptive, ThinkingConfigEnabled, ThinkingConfigDisabled]


class SandboxSettings(TypedDict, total=False):
    """How shell commands are confined."""

    enabled: bool
    autoAllowBashIfSandboxed: bool
    excludedCommands: list[str]
    allowUnsandboxedCommands: bool
    network: dict[str, Any]
    filesystem: dict[str, Any]
    ignoreViolations: dict[str, list[str]]
    enableWeakerNestedSandbox: bool


class OutputFormat(TypedDict):
    """The JSON schema that the final answer must satisfy."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class RewindFilesResult(TypedDict, total=False):
    """What a rewind changed, or would change."""

    canRewind: Required[bool]
    error: str
    filesChanged: list[str]
    insertions: int
    deletions: int
    skippedLinks: list[str]
    changedElsewhere: list[str]


class InterruptResult(TypedDict, total=False):
    """Which queued messages survived an interrupt and which were dropped."""

    still_queued: list[str]
    cancelled: list[str]


RewindScope = Literal["both", "conversation", "files"]
