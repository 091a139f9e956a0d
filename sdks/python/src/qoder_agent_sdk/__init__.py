"""Python SDK for the `qodercli` agent runtime.

`query()` runs one task, `QoderSDKClient` holds a conversation, `tool()` and
`create_sdk_mcp_server()` give the model functions of this process. Everything
that is public is listed here; modules with a leading underscore are not. Names
are loaded when they are first used, because most programs need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._client import QoderSDKClient
    from ._errors import (
        AuthAccessTokenEnvVarError,
        AuthNotConfiguredError,
        CLIConnectionError,
        CLIJSONDecodeError,
        CLINotFoundError,
        ControlRequestError,
        ControlRequestTimeoutError,
        MessageParseError,
        ModelPolicyTimeoutError,
        OptionTypeError,
        OptionValueError,
        ProcessError,
        ProtocolVersionMismatchError,
        QoderCliProcessError,
        QoderSDKError,
        QueryResultError,
        SessionStoreError,
        UnsupportedCliCapabilityError,
    )
    from ._mcp.server import McpServer
    from ._mcp.tools import (
        EmbeddedResourceToolContent,
        EmbeddedResourceValue,
        ImageToolContent,
        ResourceLinkToolContent,
        SdkMcpTool,
        TextToolContent,
        ToolContent,
        ToolHandlerResult,
        ToolInvocationContext,
        create_sdk_mcp_server,
        tool,
    )
    from ._options.auth import InternalAuthOptions, access_token, access_token_from_env, qodercli_auth
    from ._options.options import QoderAgentOptions
    from ._query import query
    from ._stores.store import (
        InMemorySessionStore,
        SessionKey,
        SessionStore,
        SessionStoreEntry,
        SessionStoreListEntry,
    )
    from ._transcripts.edits import ForkSessionResult, delete_session, fork_session, rename_session, tag_session
    from ._transcripts.facts import SDKSessionInfo, SessionMessage
    from ._transcripts.reading import (
        get_session_info,
        get_session_messages,
        get_subagent_messages,
        list_sessions,
        list_subagents,
    )
    from ._types.hooks import (
        BaseHookInput,
        CwdChangedHookInput,
        ElicitationHookInput,
        ElicitationResultHookInput,
        FileChangedHookInput,
        FurtherHookEvent,
        HookCallback,
        HookCallbackOptions,
        HookEvent,
        HookFailurePolicy,
        HookInput,
        HookJSONOutput,
        HookMatcher,
        InstructionsLoadedHookInput,
        PermissionRequestHookInput,
        PostCompactHookInput,
        PostToolUseFailureHookInput,
        PostToolUseHookInput,
        PreCompactHookInput,
        PreToolUseHookInput,
        SessionEndHookInput,
        SessionStartHookInput,
        StopHookInput,
        SubagentStartHookInput,
        SubagentStopHookInput,
        UserPromptSubmitHookInput,
    )
    from ._types.mcp import (
        ElicitationRequest,
        ElicitationResult,
        McpAuthenticateResult,
        McpHttpServerConfig,
        McpOAuthRequest,
        McpSdkServerConfig,
        McpServerConfig,
        McpServerConnectionStatus,
        McpServerInfo,
        McpServerStatus,
        McpServerToolPolicy,
        McpSetServersResult,
        McpSSEServerConfig,
        McpStatusResponse,
        McpStdioServerConfig,
        McpToolAnnotations,
        McpToolInfo,
        OAuthToken,
        OnElicitation,
        OnMcpOAuthRequired,
        OnMcpStatusChange,
    )
    from ._types.messages import (
        AssistantMessage,
        ContentBlock,
        ImageBlock,
        Message,
        PromptSuggestionMessage,
        ResultMessage,
        StreamEvent,
        SystemMessage,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
        UnknownBlock,
        UnknownMessage,
        UserMessage,
    )
    from ._types.models import (
        AdaptedModel,
        BYOKFieldInfo,
        BYOKModelInfo,
        BYOKModelTypeInfo,
        BYOKProviderInfo,
        CustomModel,
        ModelInfo,
        ModelPolicyContext,
        ModelPolicyProvider,
        ModelPolicyResult,
        QoderModelPurpose,
        SDKControlGetByokConfigResponse,
    )
    from ._types.permissions import (
        CanUseTool,
        ExitPlanModeApprovalDetails,
        PermissionBehavior,
        PermissionDecisionClassification,
        PermissionMode,
        PermissionResult,
        PermissionResultAllow,
        PermissionResultDeny,
        PermissionRuleValue,
        PermissionUpdate,
        PermissionUpdateDestination,
        ToolPermissionContext,
    )
    from ._types.sessions import (
        AgentDefinition,
        BuiltinToolName,
        EffortLevel,
        InterruptResult,
        OutputFormat,
        RewindFilesResult,
        RewindScope,
        SandboxSettings,
        SdkPluginConfig,
        Settings,
        SettingSource,
        SystemPromptFile,
        SystemPromptPreset,
        ThinkingConfig,
        ThinkingConfigAdaptive,
        ThinkingConfigDisabled,
        ThinkingConfigEnabled,
        ToolsPreset,
    )

#: Where each public name is defined.
_HOMES = {
    name: home
    for home, names in {
        "_options.auth": "access_token access_token_from_env InternalAuthOptions qodercli_auth",
        "_client": "QoderSDKClient",
        "_errors": (
            "AuthAccessTokenEnvVarError AuthNotConfiguredError CLIConnectionError CLIJSONDecodeError "
            "CLINotFoundError ControlRequestError ControlRequestTimeoutError MessageParseError "
            "ModelPolicyTimeoutError OptionTypeError OptionValueError ProcessError ProtocolVersionMismatchError "
            "QoderCliProcessError QoderSDKError QueryResultError SessionStoreError "
            "UnsupportedCliCapabilityError"
        ),
        "_types.hooks": (
            "BaseHookInput CwdChangedHookInput ElicitationHookInput ElicitationResultHookInput "
            "FileChangedHookInput FurtherHookEvent HookCallback HookCallbackOptions HookEvent HookFailurePolicy "
            "HookInput HookJSONOutput HookMatcher InstructionsLoadedHookInput PermissionRequestHookInput "
            "PostCompactHookInput PostToolUseFailureHookInput PostToolUseHookInput PreCompactHookInput "
            "PreToolUseHookInput SessionEndHookInput SessionStartHookInput StopHookInput SubagentStartHookInput "
            "SubagentStopHookInput UserPromptSubmitHookInput"
        ),
        "_mcp.server": "McpServer",
        "_types.mcp": (
            "ElicitationRequest ElicitationResult McpAuthenticateResult McpHttpServerConfig McpOAuthRequest "
            "McpSdkServerConfig McpServerConfig McpServerConnectionStatus McpServerInfo McpServerStatus "
            "McpServerToolPolicy McpSetServersResult McpSSEServerConfig McpStatusResponse McpStdioServerConfig "
            "McpToolAnnotations McpToolInfo OAuthToken OnElicitation OnMcpOAuthRequired OnMcpStatusChange"
        ),
        "_types.messages": (
            "AssistantMessage ContentBlock ImageBlock Message PromptSuggestionMessage ResultMessage StreamEvent "
            "SystemMessage TextBlock ThinkingBlock ToolResultBlock ToolUseBlock UnknownBlock UnknownMessage "
            "UserMessage"
        ),
        "_types.models": (
            "AdaptedModel BYOKFieldInfo BYOKModelInfo BYOKModelTypeInfo BYOKProviderInfo CustomModel ModelInfo "
            "ModelPolicyContext ModelPolicyProvider ModelPolicyResult QoderModelPurpose "
            "SDKControlGetByokConfigResponse"
        ),
        "_options.options": "QoderAgentOptions",
        "_types.permissions": (
            "CanUseTool ExitPlanModeApprovalDetails PermissionBehavior PermissionDecisionClassification "
            "PermissionMode PermissionResult PermissionResultAllow PermissionResultDeny PermissionRuleValue "
            "PermissionUpdate PermissionUpdateDestination ToolPermissionContext"
        ),
        "_query": "query",
        "_transcripts.edits": "delete_session fork_session ForkSessionResult rename_session tag_session",
        "_transcripts.facts": "SDKSessionInfo SessionMessage",
        "_stores.store": "InMemorySessionStore SessionKey SessionStore SessionStoreEntry SessionStoreListEntry",
        "_types.sessions": (
            "AgentDefinition BuiltinToolName EffortLevel InterruptResult OutputFormat RewindFilesResult "
            "RewindScope SandboxSettings SdkPluginConfig Settings SettingSource SystemPromptFile "
            "SystemPromptPreset ThinkingConfig ThinkingConfigAdaptive ThinkingConfigDisabled "
            "ThinkingConfigEnabled ToolsPreset"
        ),
        "_transcripts.reading": (
            "get_session_info get_session_messages get_subagent_messages list_sessions list_subagents"
        ),
        "_mcp.tools": (
            "create_sdk_mcp_server EmbeddedResourceToolContent EmbeddedResourceValue ImageToolContent "
            "ResourceLinkToolContent SdkMcpTool TextToolContent tool ToolContent ToolHandlerResult "
            "ToolInvocationContext"
        ),
    }.items()
    for name in names.split()
}

__all__ = [
    "__version__",
    "access_token",
    "access_token_from_env",
    "AdaptedModel",
    "AgentDefinition",
    "AssistantMessage",
    "AuthAccessTokenEnvVarError",
    "AuthNotConfiguredError",
    "BaseHookInput",
    "BuiltinToolName",
    "BYOKFieldInfo",
    "BYOKModelInfo",
    "BYOKModelTypeInfo",
    "BYOKProviderInfo",
    "CanUseTool",
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "ContentBlock",
    "ControlRequestError",
    "ControlRequestTimeoutError",
    "create_sdk_mcp_server",
    "CustomModel",
    "CwdChangedHookInput",
    "delete_session",
    "EffortLevel",
    "ElicitationHookInput",
    "ElicitationRequest",
    "ElicitationResult",
    "ElicitationResultHookInput",
    "EmbeddedResourceToolContent",
    "EmbeddedResourceValue",
    "ExitPlanModeApprovalDetails",
    "FileChangedHookInput",
    "fork_session",
    "ForkSessionResult",
    "FurtherHookEvent",
    "get_session_info",
    "get_session_messages",
    "get_subagent_messages",
    "HookCallback",
    "HookCallbackOptions",
    "HookEvent",
    "HookFailurePolicy",
    "HookInput",
    "HookJSONOutput",
    "HookMatcher",
    "ImageBlock",
    "ImageToolContent",
    "InMemorySessionStore",
    "InstructionsLoadedHookInput",
    "InternalAuthOptions",
    "InterruptResult",
    "list_sessions",
    "list_subagents",
    "McpAuthenticateResult",
    "McpHttpServerConfig",
    "McpOAuthRequest",
    "McpSdkServerConfig",
    "McpServer",
    "McpServerConfig",
    "McpServerConnectionStatus",
    "McpServerInfo",
    "McpServerStatus",
    "McpServerToolPolicy",
    "McpSetServersResult",
    "McpSSEServerConfig",
    "McpStatusResponse",
    "McpStdioServerConfig",
    "McpToolAnnotations",
    "McpToolInfo",
    "Message",
    "MessageParseError",
    "ModelInfo",
    "ModelPolicyContext",
    "ModelPolicyProvider",
    "ModelPolicyResult",
    "ModelPolicyTimeoutError",
    "OAuthToken",
    "OnElicitation",
    "OnMcpOAuthRequired",
    "OnMcpStatusChange",
    "OptionTypeError",
    "OptionValueError",
    "OutputFormat",
    "PermissionBehavior",
    "PermissionDecisionClassification",
    "PermissionMode",
    "PermissionRequestHookInput",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "PermissionRuleValue",
    "PermissionUpdate",
    "PermissionUpdateDestination",
    "PostCompactHookInput",
    "PostToolUseFailureHookInput",
    "PostToolUseHookInput",
    "PreCompactHookInput",
    "PreToolUseHookInput",
    "ProcessError",
    "PromptSuggestionMessage",
    "ProtocolVersionMismatchError",
    "QoderAgentOptions",
    "qodercli_auth",
    "QoderCliProcessError",
    "QoderModelPurpose",
    "QoderSDKClient",
    "QoderSDKError",
    "query",
    "QueryResultError",
    "rename_session",
    "ResourceLinkToolContent",
    "ResultMessage",
    "RewindFilesResult",
    "RewindScope",
    "SandboxSettings",
    "SDKControlGetByokConfigResponse",
    "SdkMcpTool",
    "SdkPluginConfig",
    "SDKSessionInfo",
    "SessionEndHookInput",
    "SessionKey",
    "SessionMessage",
    "SessionStartHookInput",
    "SessionStore",
    "SessionStoreEntry",
    "SessionStoreError",
    "SessionStoreListEntry",
    "Settings",
    "SettingSource",
    "StopHookInput",
    "StreamEvent",
    "SubagentStartHookInput",
    "SubagentStopHookInput",
    "SystemMessage",
    "SystemPromptFile",
    "SystemPromptPreset",
    "tag_session",
    "TextBlock",
    "TextToolContent",
    "ThinkingBlock",
    "ThinkingConfig",
    "ThinkingConfigAdaptive",
    "ThinkingConfigDisabled",
    "ThinkingConfigEnabled",
    "tool",
    "ToolContent",
    "ToolHandlerResult",
    "ToolInvocationContext",
    "ToolPermissionContext",
    "ToolResultBlock",
    "ToolsPreset",
    "ToolUseBlock",
    "UnknownBlock",
    "UnknownMessage",
    "UnsupportedCliCapabilityError",
    "UserMessage",
    "UserPromptSubmitHookInput",
]


if not TYPE_CHECKING:
    # Type checkers take a module with this function to have any name, and would pass misspelt imports.
    def __getattr__(name: str) -> Any:
        """Load a public name when it is first used."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, whether they are loaded or not."""
    return sorted(__all__)
