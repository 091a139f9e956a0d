/**
 * Hooks: callbacks at fixed points of a session. Inputs are as the runtime sends them (snake_case), outputs as
 * it reads them (camelCase).
 */
import type { PermissionUpdate } from './permissions.js';

/** The events that callbacks can be registered for. */
export const HOOK_EVENTS = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'UserPromptSubmit',
  'SessionStart',
  'SessionEnd',
  'Stop',
  'SubagentStart',
  'SubagentStop',
  'PreCompact',
  'PostCompact',
  'CwdChanged',
  'InstructionsLoaded',
  'FileChanged',
  'PermissionRequest',
  'PermissionDenied',
  'Notification',
  'ConfigChange',
  'StopFailure',
  'WorktreeCreate',
  'WorktreeRemove',
  'Elicitation',
  'ElicitationResult',
  'TaskCreated',
  'TaskCompleted',
  'TeammateIdle',
  'Setup',
] as const;

/** The name of an event. */
export type HookEvent = (typeof HOOK_EVENTS)[number];

/** What every hook gets. */
export interface BaseHookInput {
  hook_event_name: string;
  session_id: string;
  /** The session file, one JSON object a line. */
  transcript_path: string;
  cwd: string;
  permission_mode?: string;
  agent_id?: string;
  agent_type?: string;
}

/** Before a tool runs. */
export interface PreToolUseHookInput extends BaseHookInput {
  hook_event_name: 'PreToolUse';
  tool_name: string;
  tool_input: unknown;
  tool_use_id: string;
}

/** After a tool succeeded. */
export interface PostToolUseHookInput extends BaseHookInput {
  hook_event_name: 'PostToolUse';
  tool_name: string;
  tool_input: unknown;
  tool_response: unknown;
  tool_use_id: string;
  duration_ms?: number;
}

/** After a tool failed. */
export interface PostToolUseFailureHookInput extends BaseHookInput {
  hook_event_name: 'PostToolUseFailure';
  tool_name: string;
  tool_input: unknown;
  tool_use_id: string;
  error: string;
  is_interrupt?: boolean;
  duration_ms?: number;
}

/** Before a prompt is sent. */
export interface UserPromptSubmitHookInput extends BaseHookInput {
  hook_event_name: 'UserPromptSubmit';
  prompt: string;
}

/** When a session starts. */
export interface SessionStartHookInput extends BaseHookInput {
  hook_event_name: 'SessionStart';
  source: 'startup' | 'resume' | 'clear' | 'compact' | 'new';
  model?: string;
}

/** When a session ends. */
export interface SessionEndHookInput extends BaseHookInput {
  hook_event_name: 'SessionEnd';
  reason: 'clear' | 'resume' | 'logout' | 'prompt_input_exit' | 'other' | 'bypass_permissions_disabled';
}

/** When the model stops. */
export interface StopHookInput extends BaseHookInput {
  hook_event_name: 'Stop';
  /** Whether the turn continues only because a hook of this event blocked its end before. */
  stop_hook_active: boolean;
  last_assistant_message?: string;
}

/** When a subagent starts. */
export interface SubagentStartHookInput extends BaseHookInput {
  hook_event_name: 'SubagentStart';
  agent_id: string;
  agent_type: string;
}

/** When a subagent stops. */
export interface SubagentStopHookInput extends BaseHookInput {
  hook_event_name: 'SubagentStop';
  stop_hook_active: boolean;
  agent_id: string;
  agent_type: string;
  agent_transcript_path?: string;
  last_assistant_message?: string;
}

/** Before the conversation is summarised. */
export interface PreCompactHookInput extends BaseHookInput {
  hook_event_name: 'PreCompact';
  trigger: 'manual' | 'auto';
  custom_instructions: string | null;
}

/** After the conversation was summarised. */
export interface PostCompactHookInput extends BaseHookInput {
  hook_event_name: 'PostCompact';
  trigger: 'manual' | 'auto';
  compact_summary: string;
}

/** When the working directory changes. */
export interface CwdChangedHookInput extends BaseHookInput {
  hook_event_name: 'CwdChanged';
  old_cwd: string;
  new_cwd: string;
}

/** When a file with instructions is loaded. */
export interface InstructionsLoadedHookInput extends BaseHookInput {
  hook_event_name: 'InstructionsLoaded';
  load_reason: string;
  file_path?: string;
  memory_type?: string;
  globs?: string[];
}

/** When a watched file changes. */
export interface FileChangedHookInput extends BaseHookInput {
  hook_event_name: 'FileChanged';
  file_path: string;
  event: 'change' | 'add' | 'unlink';
}

/** Before a person is asked about a call. */
export interface PermissionRequestHookInput extends BaseHookInput {
  hook_event_name: 'PermissionRequest';
  tool_name: string;
  tool_input: unknown;
  permission_suggestions?: PermissionUpdate[];
}

/** A notice for the user. */
export interface NotificationHookInput extends BaseHookInput {
  hook_event_name: 'Notification';
  message: string;
  title?: string;
  notification_type: string;
}

/** An MCP server asks the user for input. Decisions are made by `onElicitation`. */
export interface ElicitationHookInput extends BaseHookInput {
  hook_event_name: 'Elicitation';
  mcp_server_name: string;
  message: string;
  mode: 'form' | 'url';
  elicitation_id?: string;
  requested_schema?: Record<string, unknown>;
  url?: string;
  title?: string;
}

/** What the user answered to an MCP server. */
export interface ElicitationResultHookInput extends BaseHookInput {
  hook_event_name: 'ElicitationResult';
  mcp_server_name: string;
  action: 'accept' | 'decline' | 'cancel';
  mode: 'form' | 'url';
  elicitation_id?: string;
  content?: Record<string, unknown>;
}

/** Input of an event whose fields this version does not list. */
export interface OtherHookInput extends BaseHookInput {
  [key: string]: unknown;
}

/** The inputs with listed fields, by event. */
export interface HookInputMap {
  PreToolUse: PreToolUseHookInput;
  PostToolUse: PostToolUseHookInput;
  PostToolUseFailure: PostToolUseFailureHookInput;
  UserPromptSubmit: UserPromptSubmitHookInput;
  SessionStart: SessionStartHookInput;
  SessionEnd: SessionEndHookInput;
  Stop: StopHookInput;
  SubagentStart: SubagentStartHookInput;
  SubagentStop: SubagentStopHookInput;
  PreCompact: PreCompactHookInput;
  PostCompact: PostCompactHookInput;
  CwdChanged: CwdChangedHookInput;
  InstructionsLoaded: InstructionsLoadedHookInput;
  FileChanged: FileChangedHookInput;
  PermissionRequest: PermissionRequestHookInput;
  Notification: NotificationHookInput;
  Elicitation: ElicitationHookInput;
  ElicitationResult: ElicitationResultHookInput;
}

/** The input of one event. */
export type HookInputOf<Event extends HookEvent> = Event extends keyof HookInputMap
  ? HookInputMap[Event]
  : OtherHookInput;

/** Any input of a hook with listed fields. */
export type HookInput = HookInputMap[keyof HookInputMap];

/** What belongs to one event in the output of a hook. */
export type HookSpecificOutput =
  | {
      hookEventName: 'PreToolUse';
      permissionDecision?: 'allow' | 'deny' | 'ask' | 'defer';
      permissionDecisionReason?: string;
      /** Replaces the arguments of the call. */
      updatedInput?: Record<string, unknown>;
      additionalContext?: string;
    }
  | {
      hookEventName: 'PostToolUse';
      /** Replaces what the model sees of the result. */
      updatedToolOutput?: unknown;
      updatedMCPToolOutput?: unknown;
      additionalContext?: string;
    }
  | { hookEventName: 'UserPromptSubmit'; additionalContext?: string; sessionTitle?: string }
  | { hookEventName: 'SessionStart'; additionalContext?: string; watchPaths?: string[] }
  | {
      hookEventName: 'PermissionRequest';
      decision:
        | { behavior: 'allow'; updatedInput?: Record<string, unknown>; updatedPermissions?: PermissionUpdate[] }
        | { behavior: 'deny'; message?: string; interrupt?: boolean };
    }
  | {
      hookEventName: 'Elicitation' | 'ElicitationResult';
      action?: 'accept' | 'decline' | 'cancel';
      content?: Record<string, unknown>;
    }
  | { hookEventName: 'CwdChanged' | 'FileChanged'; additionalContext?: string; watchPaths?: string[] }
  | {
      hookEventName: Exclude<
        HookEvent,
        | 'PreToolUse'
        | 'PostToolUse'
        | 'UserPromptSubmit'
        | 'SessionStart'
        | 'PermissionRequest'
        | 'Elicitation'
        | 'ElicitationResult'
        | 'CwdChanged'
        | 'FileChanged'
      >;
      additionalContext?: string;
      [key: string]: unknown;
    };

/** The answer of a hook; an empty object means "no opinion". */
export interface HookJSONOutput {
  /** False ends the run. */
  continue?: boolean;
  /** Why, for people. */
  stopReason?: string;
  suppressOutput?: boolean;
  systemMessage?: string;
  decision?: 'approve' | 'block' | 'allow' | 'deny';
  reason?: string;
  /** True lets the run continue without waiting for the hook's effect. */
  async?: boolean;
  asyncTimeout?: number;
  hookSpecificOutput?: HookSpecificOutput;
}

/** What a hook gets besides its input. */
export interface HookCallbackOptions {
  /** Aborted when the hook's answer is no longer wanted, for example after its timeout. */
  signal: AbortSignal;
}

/** A hook. */
export type HookCallback<Input = HookInput> = (
  input: Input,
  toolUseID: string | undefined,
  options: HookCallbackOptions,
) => Promise<HookJSONOutput | void> | HookJSONOutput | void;

/** Hooks with the condition under which they are called. */
export interface HookCallbackMatcher<Input = HookInput> {
  /** Regular expression for the tool's name, or for what the event is matched by. Left out: always. */
  matcher?: string;
  hooks: Array<HookCallback<Input>>;
  /** Seconds; 60 when left out. */
  timeout?: number;
  /** What a hook counts as that fails or takes too long; `continue` means "no opinion". */
  onFailure?: 'continue' | 'block' | 'allow' | 'ask' | 'deny';
}

/** The option `hooks`. */
export type HooksOption = { [Event in HookEvent]?: Array<HookCallbackMatcher<HookInputOf<Event>>> };
