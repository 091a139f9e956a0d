/**
 * Tools of this process: their definition with `tool()`, and what their handlers return.
 */
import { OptionsError } from '../errors.js';
import { type AnyZodRawShape, type InferShape, shapeProblem } from './shapes.js';

/** Facts about a tool. They are hints; what may run is decided by permissions. */
export interface ToolAnnotations {
  /** Title for people. */
  title?: string;
  /** Does not change anything; such tools may run at the same time. */
  readOnlyHint?: boolean;
  /** May change or delete data. */
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  /** Reaches systems outside. */
  openWorldHint?: boolean;
  /** Longest result in characters that is passed on; 50000 when left out. */
  maxResultSizeChars?: number;
}

/** What a tool has besides its function. */
export interface ToolExtras {
  annotations?: ToolAnnotations;
}

/** One piece of a tool's result. */
export type McpToolResultContent =
  | { type: 'text'; text: string }
  /** `data` is base64. */
  | { type: 'image'; data: string; mimeType: string }
  /** `data` is base64. */
  | { type: 'audio'; data: string; mimeType: string }
  | { type: 'resource_link'; uri: string; name?: string; description?: string; mimeType?: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string; text: string } | { uri: string; mimeType?: string; blob: string } };

/** The result of a tool. */
export interface CallToolResult {
  content: McpToolResultContent[];
  /** True for a failure that the model should know of and can react to. */
  isError?: boolean;
  structuredContent?: Record<string, unknown>;
  _meta?: Record<string, unknown>;
}

/** What a handler gets besides its arguments. */
export interface ToolInvocationContext {
  /** Aborted when the call is cancelled. */
  signal: AbortSignal;
}

/** A tool of this process. */
export interface SdkMcpToolDefinition<Shape extends AnyZodRawShape = AnyZodRawShape> {
  name: string;
  description: string;
  inputSchema: Shape;
  handler: (args: InferShape<Shape>, extra: ToolInvocationContext) => Promise<CallToolResult> | CallToolResult;
  annotations?: ToolAnnotations;
}

/**
 * Defines a tool. The arguments of the handler are inferred from the shape and parsed before it is called; an
 * error that it throws becomes a failed result.
 */
export function tool<Shape extends AnyZodRawShape>(
  name: string,
  description: string,
  inputSchema: Shape,
  handler: (args: InferShape<Shape>, extra: ToolInvocationContext) => Promise<CallToolResult> | CallToolResult,
  extras?: ToolExtras,
): SdkMcpToolDefinition<Shape> {
  const problem = shapeProblem(inputSchema);
  if (problem !== undefined) throw new OptionsError(`tool(${JSON.stringify(name)}): ${problem}.`);
  if (typeof handler !== 'function') {
    throw new OptionsError(`tool(${JSON.stringify(name)}): the handler must be a function.`);
  }
  return {
    name,
    description,
    inputSchema,
    handler,
    ...(extras?.annotations ? { annotations: extras.annotations } : {}),
  };
}
