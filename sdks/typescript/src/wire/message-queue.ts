/**
 * Messages between the reader of the pipe and the consumer of a stream. It has no limit: control messages come
 * through the same pipe, so the reader must never wait for a slow consumer.
 */

/** A queue with one end and at most one error. */
export class MessageQueue<Message> {
  readonly #messages: Message[] = [];
  readonly #takers: Array<{
    resolve(result: IteratorResult<Message, void>): void;
    reject(error: Error): void;
  }> = [];
  #end: { error?: Error } | undefined;

  /** Adds a message; nothing is added after the end. */
  push(message: Message): void {
    if (this.#end) return;
    const taker = this.#takers.shift();
    if (taker) taker.resolve({ value: message, done: false });
    else this.#messages.push(message);
  }

  /** Ends the queue; readers get the error after the last message. The first end counts. */
  finish(error?: Error): void {
    if (this.#end) return;
    this.#end = { error };
    for (const taker of this.#takers.splice(0)) this.#takeEnd(taker);
  }

  /** Ends the queue and drops what is in it. */
  discard(): void {
    this.#messages.length = 0;
    this.finish();
  }

  /** The next message, the end, or the error; the error is given once. */
  next(): Promise<IteratorResult<Message, void>> {
    return new Promise((resolve, reject) => {
      const message = this.#messages.shift();
      if (message !== undefined) resolve({ value: message, done: false });
      else if (this.#end) this.#takeEnd({ resolve, reject });
      else this.#takers.push({ resolve, reject });
    });
  }

  #takeEnd(taker: { resolve(result: IteratorResult<Message, void>): void; reject(error: Error): void }): void {
    const error = this.#end?.error;
    if (error) {
      this.#end = {};
      taker.reject(error);
    } else {
      taker.resolve({ value: undefined, done: true });
    }
  }
}
