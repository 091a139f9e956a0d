/**
 * Knows whether the runtime still owes anything for the messages it was sent, so that its input can be closed
 * at the right moment: not before, because callbacks could no longer be answered, and not never.
 */
import { isRecord } from '../options/kinds.js';
import type { SDKUserMessage } from '../types/messages.js';
import type { WireObject } from './control.js';

/** Whether the work is over; `perhaps` when the runtime is at rest but may not have read the last message yet. */
export type RunVerdict = 'open' | 'perhaps' | 'over';

/** Tasks of these kinds wake the model again when they end. */
const DELEGATED_TASKS = new Set(['local_agent', 'local_workflow']);
const FINAL_STATUSES = new Set(['completed', 'failed', 'stopped', 'killed']);

/** What is owed in one session. */
export class RunTracker {
  readonly #tasks = new Set<string>();
  #owed = 0;
  #awaiting = false;
  #state: string | undefined;

  /** Whether the runtime is working on something, as far as is known. */
  get busy(): boolean {
    return this.#awaiting || (this.#state !== undefined && this.#state !== 'idle');
  }

  /** Whether a message has had no result at all yet. */
  get awaitingResult(): boolean {
    return this.#awaiting;
  }

  /** A message goes to the runtime. */
  sent(message: SDKUserMessage): void {
    if (message.shouldQuery === false) return;
    this.#owed += 1;
    this.#awaiting = true;
  }

  /** A message came from the runtime. */
  received(message: WireObject): void {
    if (message['type'] === 'result') {
      this.#owed = Math.max(0, this.#owed - 1);
      this.#awaiting = false;
      return;
    }
    if (message['type'] !== 'system') return;
    const task = String(message['task_id']);
    switch (message['subtype']) {
      case 'session_state_changed':
        this.#state = String(message['state']);
        break;
      case 'task_started':
        if (DELEGATED_TASKS.has(String(message['task_type']))) this.#tasks.add(task);
        break;
      case 'task_notification':
        this.#tasks.delete(task);
        break;
      case 'task_updated': {
        const status = isRecord(message['patch']) ? message['patch']['status'] : undefined;
        if (FINAL_STATUSES.has(String(status))) this.#tasks.delete(task);
        break;
      }
    }
  }

  /** Whether the input may be closed. */
  verdict(): RunVerdict {
    if (this.#awaiting) return 'open';
    if (this.#state === undefined) return this.#owed === 0 && this.#tasks.size === 0 ? 'over' : 'open';
    if (this.#state !== 'idle') return 'open';
    return this.#owed === 0 ? 'over' : 'perhaps';
  }
}
