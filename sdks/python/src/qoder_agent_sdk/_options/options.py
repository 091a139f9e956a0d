"""`QoderAgentOptions`: everything a session can be configured with.

A dataclass with snake_case fields and the documented defaults. Values are
checked when the object is made and again when a session starts, since fields
may be changed in between. Fields that may hold secrets are not printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from .._stores.store import SessionStore
    from .._types.hooks import HookMatchers
    from .._types.mcp import McpServerConfig, OnElicitation, OnMcpOAuthRequired, OnMcpStatusChange
    from .._types.models import ModelPolicyProvider
    from .._types.permissions import CanUseTool, PermissionMode
    from .._types.sessions import (
        AgentDefinition,
        OutputFormat,
        SandboxSettings,
        SdkPluginConfig,
        Settings,
        SettingSource,
        SystemPromptFile,
        SystemPromptPreset,
        ThinkingConfig,
        ToolsPreset,
    )
    from .auth import InternalAuthOptions


@dataclass(kw_only=True)
class QoderAgentOptions:
    """Configuration of `query()` and `QoderSDKClient`."""

    # Authentication
    auth: InternalAuthOptions | dict[str, Any] | None = field(default=None, repr=False)
    on_auth_expired: Callable[..., Any] | None = None

    # Tools and permissions
    tools: list[str] | ToolsPreset | None = None
    allowed_tools: list[str] = field(default_factory=list)
    disallowed_tools: list[str] = field(default_factory=list)
    can_use_tool: CanUseTool | None = None
    permission_mode: PermissionMode | None = None
    allow_dangerously_skip_permissions: bool = False
    permission_prompt_tool_name: str | None = None
    plan_mode_instructions: str | None = None
    sandbox: SandboxSettings | None = None

    # Model
    model: str | None = None
    fallback_model: str | None = None
    resolve_model: ModelPolicyProvider | None = None
    resolve_model_timeout_ms: int = 500
    thinking: ThinkingConfig | None = None
    max_thinking_tokens: int | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    betas: list[str] = field(default_factory=list)

    # Prompt and context
    system_prompt: str | SystemPromptPreset | SystemPromptFile | None = None
    custom_context: dict[str, str] | None = None
    output_format: OutputFormat | None = None
    exclude_dynamic_sections: bool | None = None

    # Process
    cwd: str | Path | None = None
    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    cli_path: str | Path | None = None
    user: str | None = None
    extra_args: Mapping[str, str | None] = field(default_factory=dict)
    proxy: str | None = field(default=None, repr=False)
    stderr: Callable[[str], Any] | None = None
    max_buffer_size: int | None = None
    control_request_timeout_ms: int = 60_000

    # Session
    session_id: str | None = None
    resume: str | None = None
    continue_conversation: bool = False
    fork_session: bool = False
    resume_session_at: str | None = None
    resume_drops_turn: str | None = None
    persist_session: bool = True
    enable_file_checkpointing: bool | None = None
    session_store: SessionStore | None = None
    session_store_flush: Literal["batched", "eager"] = "batched"

    # Limits
    max_turns: int | None = None
    max_budget_usd: float | None = None
    task_budget: int | None = None
    goal_max_turns: int | None = None

    # Stream
    include_partial_messages: bool = False
    include_hook_events: bool = False
    forward_subagent_text: bool = False
    prompt_suggestions: bool = False

    # MCP
    mcp_servers: Mapping[str, McpServerConfig] | str | Path = field(default_factory=dict, repr=False)
    allowed_mcp_server_names: list[str] = field(default_factory=list)
    strict_mcp_config: bool = False
    on_mcp_oauth_required: OnMcpOAuthRequired | None = None
    on_mcp_status_change: OnMcpStatusChange | None = None
    on_elicitation: OnElicitation | None = None

    # Hooks, agents, skills, plugins, settings
    hooks: HookMatchers | None = None
    agents: Mapping[str, AgentDefinition] | None = None
    agent: str | None = None
    skills: list[str] | Literal["all"] | None = None
    plugins: list[SdkPluginConfig] = field(default_factory=list)
    settings: str | Path | Settings | None = field(default=None, repr=False)
    setting_sources: list[SettingSource] | None = None
    add_dirs: Sequence[str | Path] = field(default_factory=list)

    def __new__(cls, *_args: Any, **given: Any) -> Self:
        """Refuse names that do not exist, with the one that was probably meant."""
        for name in given:
            if name not in cls.__dataclass_fields__:
                import difflib

                close = difflib.get_close_matches(name, cls.__dataclass_fields__, n=1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                raise TypeError(f"QoderAgentOptions has no option '{name}'{hint}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        self.validate()

    def validate(self) -> None:
        """Check all values; `query()` and `QoderSDKClient` do this before they start a process."""
        from .checks import check_options

        check_options(self)
