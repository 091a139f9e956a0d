/**
 * Starts the runtime ahead of the first prompt, so that the prompt does not wait for it.
 */
import { OptionsError, QoderAgentError } from './errors.js';
import { checkOptions } from './options/validate.js';
import { checkPrompt, queryOf } from './query.js';
import { type Prompt, Session } from './session.js';
import type { Options } from './types/options.js';
import type { InitializationResult, Query } from './types/query.js';

const INITIALIZE_TIMEOUT_MS = 60_000;

/** A runtime that is ready for one query. */
export interface WarmQuery {
  /** What the runtime said at the start. */
  readonly initialization: InitializationResult;
  /** Sends the prompt. This works once. */
  query(prompt: Prompt): Query;
  /** Ends the runtime if it is not wanted after all. */
  close(): Promise<void>;
}

/** Starts the runtime and waits until it is ready. */
export async function startup(parameters?: {
  options?: Options;
  initializeTimeoutMs?: number;
}): Promise<WarmQuery> {
  const session = new Session(checkOptions(parameters?.options));
  const limit = parameters?.initializeTimeoutMs ?? INITIALIZE_TIMEOUT_MS;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new QoderAgentError('STARTUP_TIMEOUT', `The runtime was not ready within ${limit} ms.`));
    }, limit);
  });
  try {
    const initialization = await Promise.race([session.initialized, timeout]);
    return new ReadyQuery(session, initialization);
  } catch (thrown) {
    await session.close();
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}

class ReadyQuery implements WarmQuery {
  readonly initialization: InitializationResult;
  readonly #session: Session;
  #used = false;

  constructor(session: Session, initialization: InitializationResult) {
    this.#session = session;
    this.initialization = initialization;
  }

  query(prompt: Prompt): Query {
    checkPrompt(prompt);
    if (this.#used) throw new OptionsError('A warm query can be used once. Call startup() again for another one.');
    this.#used = true;
    this.#session.begin(prompt);
    return queryOf(this.#session);
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}
