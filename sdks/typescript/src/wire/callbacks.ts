/**
 * Answers what the runtime asks of the host: permissions, hooks, MCP traffic, models, OAuth and user input.
 * Whatever goes wrong in a callback ends in the careful answer: deny, cancel, or an error that the runtime
 * treats as one.
 */
import { callbackFailure, ModelPolicyTimeoutError } from '../errors.js';
import type { McpBridge } from '../mcp/bridge.js';
import type { RpcMessage } from '../mcp/transport.js';
import { describeValue, isRecord } from '../options/kinds.js';
import type { CheckedOptions } from '../options/validate.js';
import type { ElicitationRequest, McpOAuthRequest } from '../types/mcp.js';
import type { ModelPolicyContext } from '../types/models.js';
import type { CanUseToolOptions, PermissionUpdate } from '../types/permissions.js';
import type { WireObject } from './control.js';
import type { HookRegistry } from './hooks.js';

const MODEL_TIMEOUT_MS = 500;

/** Fields of a permission question, as they travel and as the callback sees them. */
const PERMISSION_FIELDS = [
  ['permission_suggestions', 'suggestions'],
  ['blocked_path', 'blockedPath'],
  ['decision_reason', 'decisionReason'],
  ['decision_reason_type', 'decisionReasonType'],
  ['classifier_approvable', 'classifierApprovable'],
  ['title', 'title'],
  ['display_name', 'displayName'],
  ['description', 'description'],
  ['agent_id', 'agentID'],
  ['exit_plan_mode', 'exitPlanMode'],
] as const;

/** The callbacks of one session. */
export class HostCallbacks {
  readonly #options: CheckedOptions;
  readonly #hooks: HookRegistry;
  readonly #bridge: McpBridge;
  readonly #fail: (error: Error) => void;
  #expiryReported = false;

  /** `fail` ends the stream with an error. */
  constructor(options: CheckedOptions, hooks: HookRegistry, bridge: McpBridge, fail: (error: Error) => void) {
    this.#options = options;
    this.#hooks = hooks;
    this.#bridge = bridge;
    this.#fail = fail;
  }

  /** Answers one request of the runtime. */
  async answer(request: WireObject, signal: AbortSignal): Promise<WireObject | null> {
    switch (request['subtype']) {
      case 'can_use_tool':
        return this.#permission(request, signal);
      case 'hook_callback':
        return this.#hooks.call(request, signal);
      case 'mcp_message':
        return this.#mcp(request, signal);
      case 'get_model_policy':
        return this.#model(request, signal);
      case 'mcp_oauth_required':
        return this.#oauth(request, signal);
      case 'elicitation':
        return this.#elicitation(request, signal);
      case 'auth_expired':
        return this.#authExpired(request);
      default:
        throw new Error(`Unsupported control request subtype: ${String(request['subtype'])}`);
    }
  }

  async #permission(request: WireObject, signal: AbortSignal): Promise<WireObject> {
    const decide = this.#options.canUseTool;
    if (decide === undefined) throw new Error('There is no canUseTool callback.');
    const input = isRecord(request['input']) ? request['input'] : {};
    const context: CanUseToolOptions = { signal, toolUseID: String(request['tool_use_id'] ?? '') };
    for (const [wireName, name] of PERMISSION_FIELDS) {
      const value = request[wireName];
      if (value !== undefined && value !== null) Object.assign(context, { [name]: value });
    }
    try {
      return permissionAnswer(await decide(String(request['tool_name']), input, context), input);
    } catch (thrown) {
      return { behavior: 'deny', message: callbackFailure('canUseTool', thrown) };
    }
  }

  async #mcp(request: WireObject, signal: AbortSignal): Promise<WireObject> {
    const message = request['message'];
    if (!isRecord(message)) throw new Error('mcp_message needs a message.');
    const answer = await this.#bridge.exchange(
      String(request['server_name']),
      message as unknown as RpcMessage,
      signal,
    );
    return { mcp_response: answer };
  }

  async #model(request: WireObject, signal: AbortSignal): Promise<WireObject> {
    const resolveModel = this.#options.resolveModel;
    if (resolveModel === undefined) throw new Error('There is no resolveModel callback.');
    const { subtype: _subtype, ...context } = request;
    const limit = this.#options.resolveModelTimeoutMs ?? MODEL_TIMEOUT_MS;
    const begun = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new ModelPolicyTimeoutError(limit, String(context['purpose']))), limit);
    });
    try {
      const policy = context as unknown as ModelPolicyContext;
      const answer: unknown = await Promise.race([Promise.resolve().then(() => resolveModel(policy)), timeout]);
      // A function that blocks cannot be interrupted, but its answer comes too late.
      if (performance.now() - begun > limit) throw new ModelPolicyTimeoutError(limit, String(context['purpose']));
      return modelAnswer(answer);
    } catch (thrown) {
      if (thrown instanceof ModelPolicyTimeoutError && !signal.aborted) {
        // The runtime gets its answer first; the end of the session would cut it off.
        setImmediate(() => this.#fail(thrown));
      }
      throw thrown;
    } finally {
      clearTimeout(timer);
    }
  }

  async #oauth(request: WireObject, signal: AbortSignal): Promise<WireObject | null> {
    const authorise = this.#options.onMcpOAuthRequired;
    if (authorise === undefined) throw new Error('There is no onMcpOAuthRequired callback.');
    const wanted = camelCaseFields(request) as unknown as McpOAuthRequest;
    const resolution = await authorise(wanted, { signal });
    if (resolution === null || resolution === undefined) return null;
    return 'access_token' in resolution ? { token: resolution } : { ...resolution };
  }

  async #elicitation(request: WireObject, signal: AbortSignal): Promise<WireObject> {
    const ask = this.#options.onElicitation;
    if (ask === undefined) return { action: 'cancel' };
    try {
      const result = await ask(camelCaseFields(request) as unknown as ElicitationRequest, { signal });
      if (!isRecord(result) || !['accept', 'decline', 'cancel'].includes(result.action)) return { action: 'cancel' };
      return { ...result };
    } catch (thrown) {
      callbackFailure('onElicitation', thrown);
      // The server must not take a failure of the host for consent.
      return { action: 'cancel' };
    }
  }

  async #authExpired(request: WireObject): Promise<WireObject> {
    if (this.#expiryReported) return {};
    this.#expiryReported = true;
    const answer = await this.#options.onAuthExpired?.({ reason: String(request['reason'] ?? '') });
    return isRecord(answer) && typeof answer.accessToken === 'string' ? { access_token: answer.accessToken } : {};
  }
}

/** Fields of a request in camelCase, without its subtype. */
function camelCaseFields(request: WireObject): WireObject {
  return Object.fromEntries(
    Object.entries(request)
      .filter(([name, value]) => name !== 'subtype' && value !== null)
      .map(([name, value]) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value]),
  );
}

function permissionAnswer(result: unknown, input: WireObject): WireObject {
  const answer = isRecord(result) ? result : {};
  const common = {
    ...(answer['toolUseID'] === undefined ? {} : { toolUseID: answer['toolUseID'] }),
    ...(answer['decisionClassification'] === undefined
      ? {}
      : { decisionClassification: answer['decisionClassification'] }),
  };
  if (answer['behavior'] === 'allow') {
    const updates = answer['updatedPermissions'] as PermissionUpdate[] | undefined;
    return {
      behavior: 'allow',
      updatedInput: answer['updatedInput'] ?? input,
      ...(updates === undefined ? {} : { updatedPermissions: updates }),
      ...common,
    };
  }
  if (answer['behavior'] === 'deny') {
    const message = typeof answer['message'] === 'string' ? answer['message'] : '';
    return { behavior: 'deny', message, ...(answer['interrupt'] ? { interrupt: true } : {}), ...common };
  }
  throw new TypeError(
    `canUseTool must return { behavior: "allow" } or { behavior: "deny", message }, not ${describeValue(result)}.`,
  );
}

function modelAnswer(answer: unknown): WireObject {
  if (!isRecord(answer)) throw new TypeError(`resolveModel must return { model }, not ${describeValue(answer)}.`);
  const parameters = answer['parameters'] === undefined ? {} : { parameters: answer['parameters'] };
  const chosen = answer['model'];
  if (isRecord(chosen)) {
    const { model, ...credentials } = chosen;
    if (typeof model !== 'string' || model === '') throw new TypeError('resolveModel returned a model without a name.');
    return { model, ...parameters, credentials };
  }
  if (typeof chosen !== 'string' || chosen === '') {
    throw new TypeError('resolveModel returned an empty model. Return the id of a model.');
  }
  return { model: chosen, ...parameters };
}
