/**
 * A client for servers of this process: sends JSON-RPC through a pipe and waits for the answers.
 */
import type { ConnectableMcpServer } from '@qoder-ai/qoder-agent-sdk';

/** A JSON-RPC message. */
export interface Rpc {
  jsonrpc: '2.0';
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: any;
  error?: { code: number; message: string };
}

/** A connected server. */
export interface RpcClient {
  ask(method: string, params?: Record<string, unknown>): Promise<Rpc>;
  call(name: string, args: unknown): Promise<any>;
  notify(method: string, params?: Record<string, unknown>): void;
  close(): void;
}

/** Connects to a server. */
export async function connect(server: ConnectableMcpServer): Promise<RpcClient> {
  const waiting = new Map<number, (answer: Rpc) => void>();
  let count = 0;
  const pipe: {
    start(): Promise<void>;
    send(message: Rpc): Promise<void>;
    close(): Promise<void>;
    onmessage?: (message: Rpc) => void;
    onclose?: () => void;
  } = {
    start: async () => undefined,
    send: async (message) => {
      waiting.get(message.id ?? -1)?.(message);
    },
    close: async () => undefined,
  };
  await server.connect(pipe);
  const ask = (method: string, params?: Record<string, unknown>): Promise<Rpc> => {
    count += 1;
    const id = count;
    const answer = new Promise<Rpc>((resolve) => waiting.set(id, resolve));
    pipe.onmessage?.({ jsonrpc: '2.0', id, method, ...(params ? { params } : {}) });
    return answer;
  };
  return {
    ask,
    call: async (name, args) => (await ask('tools/call', { name, arguments: args })).result,
    notify: (method, params) => pipe.onmessage?.({ jsonrpc: '2.0', method, ...(params ? { params } : {}) }),
    close: () => pipe.onclose?.(),
  };
}
