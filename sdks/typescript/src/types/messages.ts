/**
 * The messages of a stream: plain objects as they come from the runtime, told apart by `type` and then by
 * `subtype`. The union has an open end, {@link SDKOtherMessage}: a newer runtime may send kinds that are not
 * listed, and a `switch` should keep a default branch for them. System messages are in `system-messages.ts`.
 */
import type { AssistantContentBlock, ModelUsage, Usage, UserContentBlock } from './content.js';
import type { SDKSystemMessageUnion } from './system-messages.js';

/** A complete reply of the model. */
export interface SDKAssistantMessage {
  type: 'assistant';
  uuid: string;
  session_id: string;
  /** Inside a subagent: the id of the `Agent` call that started it. */
  parent_tool_use_id: string | null;
  parent_agent_id?: string | null;
  timestamp?: string;
  request_id?: string;
  error?: string | null;
  message: {
    id?: string;
    type?: 'message';
    role: 'assistant';
    model: string;
    content: AssistantContentBlock[];
    stop_reason?: string | null;
    usage?: Usage;
  };
}

/** When a message that arrives during a turn is taken up. */
export type MessagePriority = 'now' | 'next' | 'later';

/** A message from the user, or the results of tools. This is also what an input stream yields. */
export interface SDKUserMessage {
  type: 'user';
  message: { role: 'user'; content: string | UserContentBlock[] };
  parent_tool_use_id?: string | null;
  /** Your own id, needed to cancel the message, for receipts of interrupts and to rewind to it. */
  uuid?: string;
  session_id?: string;
  isSynthetic?: boolean;
  /** The typed output of the tool whose result this message holds. */
  tool_use_result?: unknown;
  priority?: MessagePriority;
  /** False adds the message to the conversation without starting a turn. */
  shouldQuery?: boolean;
  timestamp?: string;
  custom_context?: Record<string, string>;
  /** For a prompt that is shown again: what was typed, when the message is the expansion of a command. */
  typed?: string;
  /** For the result of a tool: how long it ran. */
  duration_ms?: number;
  origin?: { kind: string; [key: string]: unknown };
}

/** A user message that is shown again, from history or on request. */
export interface SDKUserMessageReplay extends SDKUserMessage {
  uuid: string;
  session_id: string;
  isReplay: true;
}

/** A call that was not allowed to run. */
export interface SDKPermissionDenial {
  tool_name: string;
  tool_use_id: string;
  tool_input: Record<string, unknown>;
}

/** What a subagent used. Its figures hold those of the subagents that it started itself. */
export interface SDKSubagentAccount {
  agent_id: string;
  agent_type: string;
  tool_use_id: string;
  status: 'completed' | 'failed' | 'stopped' | 'unknown';
  num_turns: number;
  tool_uses: number;
  duration_ms: number;
  duration_api_ms: number;
  usage: Usage;
  total_cost_usd: number;
  model_usage: Record<string, ModelUsage>;
  subagents?: SDKSubagentAccount[];
}

interface ResultCommon {
  type: 'result';
  uuid: string;
  session_id: string;
  duration_ms: number;
  duration_api_ms: number;
  is_error: boolean;
  num_turns: number;
  permission_denials: SDKPermissionDenial[];
  /** The subagents that ended since the last result. */
  subagents?: SDKSubagentAccount[];
  stop_reason?: string | null;
  terminal_reason?: string;
  usage?: Usage;
  modelUsage?: Record<string, ModelUsage>;
  total_cost_usd?: number;
  total_credits?: number;
  structured_output?: unknown;
  deferred_tool_use?: { id: string; name: string; input: Record<string, unknown> } | null;
  api_error_status?: number | null;
  fast_mode_state?: 'off' | 'cooldown' | 'on';
}

/** The end of a turn that went well. */
export interface SDKResultSuccess extends ResultCommon {
  subtype: 'success';
  /** The final text. */
  result: string;
  errors?: string[];
}

/** The subtypes of a turn that did not. New ones may appear. */
export type ResultErrorSubtype =
  | 'error_max_turns'
  | 'error_during_execution'
  | 'error_max_budget_usd'
  | 'error_max_task_budget'
  | 'error_max_structured_output_retries';

/** The end of a turn that did not go well. */
export interface SDKResultError extends ResultCommon {
  subtype: ResultErrorSubtype;
  result?: undefined;
  errors: string[];
  error_code?: number;
}

/** The end of a turn. */
export type SDKResultMessage = SDKResultSuccess | SDKResultError;

/** One piece of a reply while it is written; see `includePartialMessages`. */
export interface SDKPartialAssistantMessage {
  type: 'stream_event';
  uuid: string;
  session_id: string;
  parent_tool_use_id: string | null;
  event: StreamEvent;
}

/** The body of a {@link SDKPartialAssistantMessage}. */
export type StreamEvent =
  | { type: 'message_start'; message?: Record<string, unknown> }
  | {
      type: 'content_block_start';
      index: number;
      content_block: { type: string; id?: string; name?: string; text?: string; [key: string]: unknown };
    }
  | { type: 'content_block_delta'; index: number; delta: StreamDelta }
  | { type: 'content_block_stop'; index: number }
  | { type: 'message_delta'; delta: { stop_reason?: string | null; [key: string]: unknown }; usage?: Usage }
  | { type: 'message_stop' };

/** What is added to a content block. */
export type StreamDelta =
  | { type: 'text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string }
  | { type: 'input_json_delta'; partial_json: string }
  | { type: 'signature_delta'; signature: string };

/** What the user might ask next; see `promptSuggestions`. */
export interface SDKPromptSuggestionMessage {
  type: 'prompt_suggestion';
  suggestion: string;
  uuid: string;
  session_id: string;
}

/** How close the endpoint's limits are. */
export interface SDKRateLimitEvent {
  type: 'rate_limit_event';
  uuid: string;
  session_id: string;
  rate_limit_info: {
    status: 'allowed' | 'allowed_warning' | 'rejected';
    resetsAt?: number;
    rateLimitType?: string;
    utilization?: number;
    [key: string]: unknown;
  };
}

/** The conversation was cleared and continues under a new id. */
export interface SDKConversationResetMessage {
  type: 'conversation_reset';
  new_conversation_id: string;
  uuid: string;
  session_id: string;
}

/**
 * Stands for the names of kinds that this version does not know. It exists in types only: a single name, unlike
 * `string`, lets TypeScript tell the known kinds apart.
 */
declare enum OtherMessageType {
  Unknown = 'a kind of a newer runtime',
}

/** A message of a kind that this version does not know. */
export interface SDKOtherMessage {
  type: OtherMessageType;
  [key: string]: unknown;
}

/** Every message of a stream. */
export type SDKMessage =
  | SDKAssistantMessage
  | SDKUserMessage
  | SDKUserMessageReplay
  | SDKResultMessage
  | SDKSystemMessageUnion
  | SDKPartialAssistantMessage
  | SDKPromptSuggestionMessage
  | SDKRateLimitEvent
  | SDKConversationResetMessage
  | SDKOtherMessage;
