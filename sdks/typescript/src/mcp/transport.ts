/**
 * JSON-RPC messages and the pipe that an MCP server of this process is connected by. The shape of the pipe is
 * the one that servers of `@modelcontextprotocol/sdk` expect.
 */

/** The id of a request. */
export type RpcId = string | number;

/** A JSON-RPC message of any kind. */
export interface RpcMessage {
  jsonrpc: '2.0';
  id?: RpcId | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** Codes of JSON-RPC errors. */
export const RpcCode = {
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  requestCancelled: -32800,
} as const;

/** A pipe between a server and its client. */
export interface McpTransport {
  start(): Promise<void>;
  send(message: RpcMessage): Promise<void>;
  close(): Promise<void>;
  onmessage?: (message: RpcMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
}

/** An error as an answer. */
export function rpcError(id: RpcId | null, code: number, message: string): RpcMessage {
  return { jsonrpc: '2.0', id, error: { code, message } };
}
