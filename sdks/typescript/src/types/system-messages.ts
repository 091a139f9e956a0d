/**
 * Messages of type `system`, told apart by `subtype`. As with messages in general the union has an open end,
 * {@link SDKOtherSystemMessage}.
 */
import type { McpServerStatus } from './mcp.js';
import type { PermissionMode } from './permissions.js';

interface SystemCommon {
  type: 'system';
  uuid: string;
  session_id: string;
}

/** What a session works with; sent at the start of each turn. */
export interface SDKSystemMessage extends SystemCommon {
  subtype: 'init';
  qodercli_version: string;
  protocol_version?: string | number;
  apiKeySource: string;
  cwd: string;
  model: string;
  permissionMode: PermissionMode;
  /** What the model is offered. */
  tools: string[];
  slash_commands: string[];
  output_style: string;
  agents?: string[];
  skills: string[];
  plugins: Array<{ name: string; path: string; source?: string; version?: string }>;
  /** What could not be loaded of plugins. */
  plugin_errors?: Array<{ plugin: string; type: string; message: string; path?: string }>;
  mcp_servers: Array<{ name: string; status: string; source?: string }>;
  fast_mode_state?: 'off' | 'cooldown' | 'on';
  capabilities?: string[];
  /** True when the built-in offline model answers, which is not a language model. */
  offline?: boolean;
}

/** The conversation was summarised here. */
export interface SDKCompactBoundaryMessage extends SystemCommon {
  subtype: 'compact_boundary';
  compact_metadata: {
    trigger: 'manual' | 'auto';
    pre_tokens: number;
    preserved_segment?: { head_uuid: string; anchor_uuid: string; tail_uuid: string };
  };
}

/** What the runtime is doing besides answering. */
export interface SDKStatusMessage extends SystemCommon {
  subtype: 'status';
  status: 'compacting' | null;
  permissionMode?: PermissionMode;
}

/** A warning of the runtime; `console.warn` gets it too. */
export interface SDKNoticeMessage extends SystemCommon {
  subtype: 'notice';
  level: 'warning';
  /** `untrusted_folder`: files that are not used because their folder is not trusted. */
  kind: 'untrusted_folder' | 'general' | (string & {});
  message: string;
  /** The files that it names; absolute paths. */
  files?: string[];
}

/** MCP servers whose state changed. */
export interface SDKMcpStatusChangeMessage extends SystemCommon {
  subtype: 'mcp_status_change';
  servers: McpServerStatus[];
}

/** A model request failed and is made again. */
export interface SDKApiRetryMessage extends SystemCommon {
  subtype: 'api_retry';
  attempt: number;
  max_retries: number;
  retry_delay_ms: number;
  error_status: number | null;
  error: string;
}

/** Output of a local slash command. */
export interface SDKLocalCommandOutputMessage extends SystemCommon {
  subtype: 'local_command_output';
  content: string;
}

interface HookFields extends SystemCommon {
  hook_id?: string;
  hook_name?: string;
  hook_event: string;
}

/** A hook was started; see `includeHookEvents`. */
export interface SDKHookStartedMessage extends HookFields {
  subtype: 'hook_started';
}

/** A hook wrote something. */
export interface SDKHookProgressMessage extends HookFields {
  subtype: 'hook_progress';
  stdout: string;
  stderr: string;
  output: string;
}

/** A hook ended. */
export interface SDKHookResponseMessage extends HookFields {
  subtype: 'hook_response';
  output?: string;
  stdout?: string;
  stderr?: string;
  exit_code?: number;
  outcome: 'success' | 'error' | 'cancelled';
}

/** What a background task has used. */
export interface TaskUsage {
  total_tokens: number;
  tool_uses: number;
  duration_ms: number;
}

/** A background task or subagent started. */
export interface SDKTaskStartedMessage extends SystemCommon {
  subtype: 'task_started';
  task_id: string;
  description: string;
  tool_use_id?: string;
  task_type?: string;
  workflow_name?: string;
  prompt?: string;
}

/** A background task or subagent made progress. */
export interface SDKTaskProgressMessage extends SystemCommon {
  subtype: 'task_progress';
  task_id: string;
  description: string;
  usage: TaskUsage;
  tool_use_id?: string;
  last_tool_name?: string;
  summary?: string;
}

/** Facts about a task changed. */
export interface SDKTaskUpdatedMessage extends SystemCommon {
  subtype: 'task_updated';
  task_id: string;
  patch: { status?: string; end_time?: number; [key: string]: unknown };
}

/** A background task or subagent ended. */
export interface SDKTaskNotificationMessage extends SystemCommon {
  subtype: 'task_notification';
  task_id: string;
  status: 'completed' | 'failed' | 'stopped';
  output_file: string;
  summary: string;
  tool_use_id?: string;
  usage?: TaskUsage;
}

/** Whether the session works, waits for an answer, or is at rest. */
export interface SDKSessionStateChangedMessage extends SystemCommon {
  subtype: 'session_state_changed';
  state: 'idle' | 'running' | 'requires_action';
}

/** The session has a new title. */
export interface SDKSessionTitleChangedMessage extends SystemCommon {
  subtype: 'session_title_changed';
  title: string;
  source: 'ai' | 'custom';
  revision?: number;
}

/** The conversation continues from an earlier entry. Only sent where user messages are shown again. */
export interface SDKConversationCutMessage extends SystemCommon {
  subtype: 'conversation_cut';
  /** The last entry that stays; null when the conversation starts over. */
  at: string | null;
}

/** An interaction that an MCP server asked for is over. */
export interface SDKElicitationCompleteMessage extends SystemCommon {
  subtype: 'elicitation_complete';
  mcp_server_name: string;
  elicitation_id: string;
}

/** A call was denied without a question. */
export interface SDKPermissionDeniedMessage extends SystemCommon {
  subtype: 'permission_denied';
  tool_name: string;
  tool_use_id: string;
  agent_id?: string;
  decision_reason_type?: string;
  decision_reason?: string;
  message: string;
}

/** A part of a transcript could not be written to the session store. */
export interface SDKMirrorErrorMessage extends SystemCommon {
  subtype: 'mirror_error';
  key: { projectKey: string; sessionId: string; subpath?: string };
  error: string;
}

/** Stands for the subtypes that this version does not know, as in `messages.ts`. */
declare enum OtherSystemSubtype {
  Unknown = 'a kind of a newer runtime',
}

/** A system message of a kind that this version does not know. */
export interface SDKOtherSystemMessage {
  type: 'system';
  subtype: OtherSystemSubtype;
  uuid?: string;
  session_id?: string;
  [key: string]: unknown;
}

/** Every system message. */
export type SDKSystemMessageUnion =
  | SDKSystemMessage
  | SDKCompactBoundaryMessage
  | SDKStatusMessage
  | SDKNoticeMessage
  | SDKMcpStatusChangeMessage
  | SDKApiRetryMessage
  | SDKLocalCommandOutputMessage
  | SDKHookStartedMessage
  | SDKHookProgressMessage
  | SDKHookResponseMessage
  | SDKTaskStartedMessage
  | SDKTaskProgressMessage
  | SDKTaskUpdatedMessage
  | SDKTaskNotificationMessage
  | SDKSessionStateChangedMessage
  | SDKSessionTitleChangedMessage
  | SDKConversationCutMessage
  | SDKElicitationCompleteMessage
  | SDKPermissionDeniedMessage
  | SDKMirrorErrorMessage
  | SDKOtherSystemMessage;
