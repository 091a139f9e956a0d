/**
 * Carries JSON-RPC between the runtime and the servers of this process. The runtime's messages arrive one by
 * one inside control requests, and each wants its answer there; requests that a server makes itself are not
 * carried, because the runtime has no place for them.
 */
import { errorText } from '../errors.js';
import type { ConnectableMcpServer, McpServerConfig } from '../types/mcp.js';
import { type McpTransport, RpcCode, rpcError, type RpcId, type RpcMessage } from './transport.js';

/** One connected server. */
class Connection implements McpTransport {
  onmessage?: (message: RpcMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;

  /** What answers. */
  readonly server: ConnectableMcpServer;
  readonly #waiting = new Map<RpcId, (answer: RpcMessage) => void>();
  #connected: Promise<void> | undefined;

  constructor(server: ConnectableMcpServer) {
    this.server = server;
  }

  /** Called by the server when it is ready to listen. */
  async start(): Promise<void> {}

  /** Called by the server with what it has to say. */
  async send(message: RpcMessage): Promise<void> {
    if (message.method === undefined && message.id !== undefined && message.id !== null) {
      this.#settle(message.id, message);
    } else if (message.method !== undefined && message.id !== undefined) {
      this.onmessage?.(rpcError(message.id, RpcCode.methodNotFound, 'Requests of servers are not supported.'));
    }
  }

  /** Ends the connection, from either side. */
  async close(): Promise<void> {
    for (const id of [...this.#waiting.keys()]) {
      this.#settle(id, rpcError(id, RpcCode.requestCancelled, 'The connection was closed.'));
    }
    const { onclose } = this;
    this.onclose = undefined;
    onclose?.();
  }

  /** Delivers a message of the runtime and gives back the answer. */
  async exchange(message: RpcMessage, signal: AbortSignal): Promise<RpcMessage> {
    this.#connected ??= this.server.connect(this);
    await this.#connected;
    if (message.method === 'notifications/cancelled') {
      const id = message.params?.['requestId'] as RpcId;
      this.onmessage?.(message);
      // A server need not answer a cancelled request, but the runtime waits for an answer to each.
      this.#settle(id, rpcError(id, RpcCode.requestCancelled, 'The request was cancelled.'));
      return { jsonrpc: '2.0', result: {} };
    }
    if (message.id === undefined || message.id === null) {
      this.onmessage?.(message);
      return { jsonrpc: '2.0', result: {} };
    }
    const id = message.id;
    const answer = new Promise<RpcMessage>((resolve) => this.#waiting.set(id, resolve));
    signal.addEventListener('abort', () => this.#abandon(id), { once: true });
    this.onmessage?.(message);
    return answer;
  }

  #abandon(id: RpcId): void {
    if (!this.#waiting.has(id)) return;
    this.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    this.#settle(id, rpcError(id, RpcCode.requestCancelled, 'The request was cancelled.'));
  }

  #settle(id: RpcId, answer: RpcMessage): void {
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    resolve?.(answer);
  }
}

/** A set of servers that has been offered to the runtime, which may take it or not. */
export interface ServerOffer {
  /** The runtime took it: servers that are not in it are let go. */
  commit(): void;
  /** The runtime did not take it: everything is as before. */
  takeBack(): void;
}

/** The servers of this process that one session uses. */
export class McpBridge {
  #connections = new Map<string, Connection>();

  constructor(servers: Record<string, McpServerConfig> | string | undefined) {
    if (typeof servers === 'object') this.offer(servers).commit();
  }

  /** Adds servers beside those that are there, because the runtime may call them before it answers. */
  offer(servers: Record<string, McpServerConfig>): ServerOffer {
    const before = this.#connections;
    const wanted = new Map<string, Connection>();
    for (const [name, config] of Object.entries(servers)) {
      if (config.type !== 'sdk') continue;
      // A server that stays keeps its connection, and with it the calls that are under way.
      const kept = before.get(name);
      wanted.set(name, kept?.server === config.instance ? kept : new Connection(config.instance));
    }
    this.#connections = new Map([...before, ...wanted]);
    return {
      commit: () => {
        this.#connections = wanted;
        closeOthers(before, wanted);
      },
      takeBack: () => {
        this.#connections = before;
        closeOthers(wanted, before);
      },
    };
  }

  /** Delivers a message to a server. Whatever goes wrong is a JSON-RPC error in the answer. */
  async exchange(serverName: string, message: RpcMessage, signal: AbortSignal): Promise<RpcMessage> {
    const connection = this.#connections.get(serverName);
    const id = message.id ?? null;
    if (connection === undefined) {
      return rpcError(id, RpcCode.methodNotFound, `There is no server ${serverName} in this process.`);
    }
    try {
      return await connection.exchange(message, signal);
    } catch (thrown) {
      return rpcError(id, RpcCode.internalError, errorText(thrown));
    }
  }

  /** Ends all connections. */
  close(): void {
    for (const connection of this.#connections.values()) void connection.close();
  }
}

/** Closes the connections that are in the first set and not in the second. */
function closeOthers(first: Map<string, Connection>, second: Map<string, Connection>): void {
  const kept = new Set(second.values());
  for (const connection of first.values()) if (!kept.has(connection)) void connection.close();
}
