/**
 * Hooks on the wire: each callback gets an id that the runtime calls it by.
 */
import { isRecord } from '../options/kinds.js';
import type { HookCallback, HookJSONOutput, HooksOption } from '../types/hooks.js';
import type { WireObject } from './control.js';

/** The hooks of one session. */
export class HookRegistry {
  readonly #callbacks = new Map<string, HookCallback<unknown>>();
  readonly #description: WireObject | null;
  readonly #needsFailurePolicy: boolean;

  constructor(hooks: HooksOption | undefined) {
    const description: WireObject = {};
    let policies = false;
    for (const [event, matchers] of Object.entries(hooks ?? {})) {
      description[event] = (matchers ?? []).map((matcher) => {
        if (matcher.onFailure !== undefined && matcher.onFailure !== 'continue') policies = true;
        return {
          matcher: matcher.matcher ?? null,
          hookCallbackIds: (matcher.hooks as Array<HookCallback<unknown>>).map((hook) => this.#register(hook)),
          ...(matcher.timeout === undefined ? {} : { timeout: matcher.timeout }),
          ...(matcher.onFailure === undefined ? {} : { onFailure: matcher.onFailure }),
        };
      });
    }
    this.#description = this.#callbacks.size > 0 ? description : null;
    this.#needsFailurePolicy = policies;
  }

  /** The hooks as the `initialize` request names them; null when there are none. */
  get description(): WireObject | null {
    return this.#description;
  }

  /** Whether an entry asks for something else than "no opinion" when a hook fails. */
  get needsFailurePolicy(): boolean {
    return this.#needsFailurePolicy;
  }

  /** How many callbacks there are. */
  get size(): number {
    return this.#callbacks.size;
  }

  /** Calls a hook for the runtime. */
  async call(request: WireObject, signal: AbortSignal): Promise<WireObject> {
    const id = String(request['callback_id']);
    const callback = this.#callbacks.get(id);
    if (callback === undefined) throw new Error(`There is no hook ${id}.`);
    const toolUseId = typeof request['tool_use_id'] === 'string' ? request['tool_use_id'] : undefined;
    const output: HookJSONOutput | void = await callback(request['input'], toolUseId, { signal });
    if (output === undefined || output === null) return {};
    if (!isRecord(output)) throw new Error(`The hook ${id} must return an object, not ${typeof output}.`);
    return output;
  }

  #register(hook: HookCallback<unknown>): string {
    const id = `hook_${this.#callbacks.size}`;
    this.#callbacks.set(id, hook);
    return id;
  }
}
