/**
 * A stream of prompts that a test feeds while the session runs.
 */
import type { SDKUserMessage } from '@qoder-ai/qoder-agent-sdk';

/** Prompts, one after another. */
export class Prompts implements AsyncIterable<SDKUserMessage> {
  readonly #waiting: Array<(step: IteratorResult<SDKUserMessage>) => void> = [];
  readonly #queued: Array<IteratorResult<SDKUserMessage>> = [];

  /** Sends a prompt. */
  say(content: string, more: Partial<SDKUserMessage> = {}): void {
    this.#push({ value: { type: 'user', message: { role: 'user', content }, ...more }, done: false });
  }

  /** Ends the stream. */
  end(): void {
    this.#push({ value: undefined, done: true });
  }

  #push(step: IteratorResult<SDKUserMessage>): void {
    const taker = this.#waiting.shift();
    if (taker) taker(step);
    else this.#queued.push(step);
  }

  [Symbol.asyncIterator](): AsyncIterator<SDKUserMessage> {
    return {
      next: () =>
        new Promise((resolve) => {
          const step = this.#queued.shift();
          if (step) resolve(step);
          else this.#waiting.push(resolve);
        }),
    };
  }
}
