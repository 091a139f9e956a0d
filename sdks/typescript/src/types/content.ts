/**
 * Content blocks of the conversation, as they travel between the runtime and this package. Blocks of kinds
 * that are not listed here may appear; they keep their own `type`.
 */

/** Text. */
export interface TextBlock {
  type: 'text';
  text: string;
}

/** Reasoning of the model. */
export interface ThinkingBlock {
  type: 'thinking';
  thinking: string;
  signature?: string;
}

/** A call of a tool. */
export interface ToolUseBlock {
  type: 'tool_use';
  id: string;
  name: string;
  input: Record<string, unknown>;
}

/** An image in base64. */
export interface ImageBlock {
  type: 'image';
  source: { type: 'base64'; media_type: string; data: string };
}

/** A document in base64. */
export interface DocumentBlock {
  type: 'document';
  source: { type: 'base64'; media_type: string; data: string };
  title?: string;
}

/** What a tool answered. */
export interface ToolResultBlock {
  type: 'tool_result';
  tool_use_id: string;
  content?: string | Array<TextBlock | ImageBlock | DocumentBlock>;
  is_error?: boolean;
}

/** What an assistant message holds. */
export type AssistantContentBlock = TextBlock | ThinkingBlock | ToolUseBlock;

/** What a user message holds. */
export type UserContentBlock = TextBlock | ImageBlock | DocumentBlock | ToolResultBlock;

/** Any block. */
export type ContentBlock = AssistantContentBlock | UserContentBlock;

/** Tokens of one model request. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_creation_input_tokens?: number;
  cache_read_input_tokens?: number;
  [key: string]: unknown;
}

/** Tokens and cost of one model over a session. */
export interface ModelUsage {
  inputTokens: number;
  outputTokens: number;
  cacheReadInputTokens: number;
  cacheCreationInputTokens: number;
  webSearchRequests?: number;
  costUSD?: number;
  contextWindow?: number;
  maxOutputTokens?: number;
}
