/**
 * MCP servers of this process, made by `createSdkMcpServer()`. A server keeps no state of its own and can be
 * connected many times, so one configuration can be used by several sessions at once.
 */
import { callbackFailure, errorText, OptionsError } from '../errors.js';
import { isRecord } from '../options/kinds.js';
import type { ConnectableMcpServer, McpSdkServerConfigWithInstance } from '../types/mcp.js';
import { shapeSchema } from './schema.js';
import { parseArguments } from './shapes.js';
import type { CallToolResult, SdkMcpToolDefinition, ToolAnnotations } from './tool.js';
import { type McpTransport, RpcCode, rpcError, type RpcId, type RpcMessage } from './transport.js';

const PROTOCOL_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const RESULT_SIZE_KEY = 'anthropic/maxResultSizeChars';

/** What `createSdkMcpServer()` takes. */
export interface CreateSdkMcpServerOptions {
  /** Short and stable: tools are called `mcp__{name}__{tool}`. */
  name: string;
  /** For information; `1.0.0` when left out. */
  version?: string;
  // Handlers take what their own shape says, which no common type can express.
  tools?: Array<SdkMcpToolDefinition<any>>;
}

/** Makes an MCP server of tools of this process, for `options.mcpServers`. */
export function createSdkMcpServer(options: CreateSdkMcpServerOptions): McpSdkServerConfigWithInstance {
  if (!isRecord(options) || typeof options.name !== 'string' || options.name === '') {
    throw new OptionsError('createSdkMcpServer(): name must be a non-empty string.');
  }
  const tools = new Map<string, SdkMcpToolDefinition>();
  for (const definition of options.tools ?? []) {
    const where = `createSdkMcpServer(${JSON.stringify(options.name)})`;
    if (typeof definition.name !== 'string' || definition.name === '') {
      throw new OptionsError(`${where}: the name of a tool must be a non-empty string.`);
    }
    if (typeof definition.description !== 'string' || definition.description.trim() === '') {
      throw new OptionsError(`${where}: the tool "${definition.name}" needs a description for the model.`);
    }
    if (tools.has(definition.name)) {
      throw new OptionsError(`${where}: there are two tools "${definition.name}". Rename one.`);
    }
    tools.set(definition.name, definition);
  }
  const instance = new SdkMcpServer(options.name, options.version ?? '1.0.0', tools);
  return { type: 'sdk', name: options.name, instance };
}

/** A server of tools of this process. */
class SdkMcpServer implements ConnectableMcpServer {
  readonly #name: string;
  readonly #version: string;
  readonly #tools: ReadonlyMap<string, SdkMcpToolDefinition>;
  readonly #transports = new Set<McpTransport>();

  constructor(name: string, version: string, tools: ReadonlyMap<string, SdkMcpToolDefinition>) {
    this.#name = name;
    this.#version = version;
    this.#tools = tools;
  }

  /** Answers what comes through a pipe. */
  async connect(transport: McpTransport): Promise<void> {
    const running = new Map<RpcId, AbortController>();
    transport.onmessage = (message) => {
      if (message.method === 'notifications/cancelled') {
        running.get(message.params?.['requestId'] as RpcId)?.abort();
        return;
      }
      if (message.id === undefined || message.id === null || message.method === undefined) return;
      const controller = new AbortController();
      const id = message.id;
      running.set(id, controller);
      void this.#answer(id, message, controller.signal)
        .finally(() => running.delete(id))
        .then((answer) => transport.send(answer))
        // A client may be gone before it has its answer.
        .catch((thrown: unknown) => transport.onerror?.(thrown instanceof Error ? thrown : new Error(errorText(thrown))));
    };
    const { onclose } = transport;
    transport.onclose = () => {
      this.#transports.delete(transport);
      for (const controller of running.values()) controller.abort();
      onclose?.();
    };
    this.#transports.add(transport);
    await transport.start();
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#transports].map((transport) => transport.close()));
  }

  async #answer(id: RpcId, message: RpcMessage, signal: AbortSignal): Promise<RpcMessage> {
    const success = (result: unknown): RpcMessage => ({ jsonrpc: '2.0', id, result });
    const params = message.params ?? {};
    try {
      switch (message.method) {
        case 'initialize':
          return success(this.#introduce(params['protocolVersion']));
        case 'ping':
          return success({});
        case 'tools/list':
          return success({ tools: await Promise.all([...this.#tools.values()].map(describeTool)) });
        case 'tools/call':
          return success(await this.#call(params, signal));
        default:
          return rpcError(id, RpcCode.methodNotFound, `The server has no method ${message.method}.`);
      }
    } catch (thrown) {
      return rpcError(id, RpcCode.internalError, errorText(thrown));
    }
  }

  #introduce(wanted: unknown): Record<string, unknown> {
    const known = PROTOCOL_VERSIONS.includes(wanted as string);
    return {
      protocolVersion: known ? wanted : PROTOCOL_VERSIONS[0],
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: this.#name, version: this.#version },
    };
  }

  async #call(params: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult> {
    const name = String(params['name']);
    const definition = this.#tools.get(name);
    if (definition === undefined) return failure(`The server ${this.#name} has no tool ${name}.`);
    const given = params['arguments'] ?? {};
    if (!isRecord(given)) return failure(`The arguments of ${name} must be an object.`);
    try {
      const parsed = await parseArguments(definition.inputSchema, given);
      if ('problem' in parsed) return failure(`Invalid arguments for ${name}: ${parsed.problem}`);
      // The shape of this definition is not known here; parsing has just proved the arguments.
      return checkResult(name, await definition.handler(parsed.arguments as never, { signal }));
    } catch (thrown) {
      return failure(callbackFailure(`the handler of the tool ${name}`, thrown));
    }
  }
}

function failure(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** Keeps results that are none from reaching the model as an empty success. */
function checkResult(name: string, result: unknown): CallToolResult {
  if (!isRecord(result)) {
    const got = result === null || result === undefined ? 'nothing' : JSON.stringify(result);
    return failure(`The tool ${name} must return an object with "content", but returned ${got}.`);
  }
  if (!Array.isArray(result['content'])) {
    const keys = Object.keys(result).join(', ') || 'none';
    return failure(`The tool ${name} must return an object with "content", but the fields are: ${keys}.`);
  }
  // MCP demands a name for a link; the address is the best one there is.
  const content = (result['content'] as Array<Record<string, unknown>>).map((block) =>
    isRecord(block) && block['type'] === 'resource_link' && block['name'] === undefined
      ? { ...block, name: block['uri'] }
      : block,
  );
  return { ...(result as unknown as CallToolResult), content: content as unknown as CallToolResult['content'] };
}

async function describeTool(definition: SdkMcpToolDefinition): Promise<Record<string, unknown>> {
  const { maxResultSizeChars, ...annotations }: ToolAnnotations = definition.annotations ?? {};
  return {
    name: definition.name,
    description: definition.description,
    inputSchema: await shapeSchema(definition.inputSchema),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
    ...(maxResultSizeChars === undefined ? {} : { _meta: { [RESULT_SIZE_KEY]: maxResultSizeChars } }),
  };
}
