/**
 * Control requests in both directions: what this package asks of the runtime, with a time limit, and what the
 * runtime asks of this package, each in a task of its own and each cancellable. What is asked is not known here.
 */
import { randomBytes } from 'node:crypto';

import { callbackFailure, ControlRequestError, ControlRequestTimeoutError, errorText } from '../errors.js';
import { isRecord } from '../options/kinds.js';

/** A JSON object on the wire. */
export type WireObject = Record<string, unknown>;

/** Answers a request of the runtime. What it returns is the response; what it throws, the error. */
export type InboundHandler = (request: WireObject, signal: AbortSignal) => Promise<WireObject | null>;

interface Waiting {
  subtype: string;
  resolve(response: WireObject): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout | undefined;
}

/** The control channel of one session. */
export class ControlChannel {
  readonly #send: (message: WireObject) => Promise<boolean>;
  readonly #handle: InboundHandler;
  readonly #timeoutMs: number;
  readonly #waiting = new Map<string, Waiting>();
  readonly #serving = new Map<string, AbortController>();
  #count = 0;
  #closed: Error | undefined;

  constructor(send: (message: WireObject) => Promise<boolean>, handle: InboundHandler, timeoutMs: number) {
    this.#send = send;
    this.#handle = handle;
    this.#timeoutMs = timeoutMs;
  }

  /** Asks the runtime. Rejects with what it answers, after the time limit, or when the session ends. */
  request(request: WireObject & { subtype: string }, timeoutMs = this.#timeoutMs): Promise<WireObject> {
    if (this.#closed) {
      return Promise.reject(new ControlRequestError(request.subtype, this.#closed.message));
    }
    this.#count += 1;
    const id = `req_${this.#count}_${randomBytes(4).toString('hex')}`;
    const answer = new Promise<WireObject>((resolve, reject) => {
      const timer =
        timeoutMs > 0 ? setTimeout(() => this.#timeOut(id, request.subtype, timeoutMs), timeoutMs) : undefined;
      this.#waiting.set(id, { subtype: request.subtype, resolve, reject, timer });
    });
    void this.#send({ type: 'control_request', request_id: id, request }).then((sent) => {
      if (sent) return;
      this.#settle(id)?.reject(
        new ControlRequestError(
          request.subtype,
          `"${request.subtype}" could not be sent: the input of the session is closed. ` +
            'Use a stream of prompts to keep a session open.',
        ),
      );
    });
    return answer;
  }

  /** Takes a control message of the runtime; false when the message is of another kind. */
  receive(message: WireObject): boolean {
    switch (message['type']) {
      case 'control_response':
        this.#answered(message['response']);
        return true;
      case 'control_request':
        void this.#serve(message);
        return true;
      case 'control_cancel_request':
        this.#serving.get(String(message['request_id']))?.abort();
        this.#serving.delete(String(message['request_id']));
        return true;
      default:
        return false;
    }
  }

  /** Ends everything that waits, in both directions. */
  close(reason: Error): void {
    this.#closed ??= reason;
    for (const id of [...this.#waiting.keys()]) {
      const waiting = this.#settle(id);
      waiting?.reject(new ControlRequestError(waiting.subtype, reason.message));
    }
    for (const controller of this.#serving.values()) controller.abort();
    this.#serving.clear();
  }

  #settle(id: string): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    return waiting;
  }

  #timeOut(id: string, subtype: string, timeoutMs: number): void {
    const waiting = this.#settle(id);
    void this.#send({ type: 'control_cancel_request', request_id: id });
    waiting?.reject(new ControlRequestTimeoutError(subtype, timeoutMs));
  }

  #answered(response: unknown): void {
    if (!isRecord(response)) return;
    const waiting = this.#settle(String(response['request_id']));
    if (waiting === undefined) return;
    if (response['subtype'] === 'success') {
      waiting.resolve(isRecord(response['response']) ? response['response'] : {});
    } else {
      const text = typeof response['error'] === 'string' ? response['error'] : 'the runtime gave no reason';
      waiting.reject(new ControlRequestError(waiting.subtype, text));
    }
  }

  async #serve(message: WireObject): Promise<void> {
    const id = message['request_id'];
    if (typeof id !== 'string') return;
    const controller = new AbortController();
    this.#serving.set(id, controller);
    let response: WireObject;
    const request = isRecord(message['request']) ? message['request'] : {};
    try {
      response = { subtype: 'success', request_id: id, response: await this.#handle(request, controller.signal) };
    } catch (thrown) {
      // A cancelled callback may throw; the runtime no longer waits for its answer.
      if (controller.signal.aborted) return;
      response = { subtype: 'error', request_id: id, error: callbackFailure(callbackName(request), thrown) };
    }
    // A cancelled request gets no answer: the runtime has gone on without it.
    if (controller.signal.aborted) return;
    this.#serving.delete(id);
    try {
      await this.#send({ type: 'control_response', response });
    } catch (thrown) {
      const error = `The callback returned something that is not JSON: ${errorText(thrown)}`;
      await this.#send({ type: 'control_response', response: { subtype: 'error', request_id: id, error } });
    }
  }
}

/** The options behind requests. */
const CALLBACKS: Record<string, string> = {
  can_use_tool: 'canUseTool',
  get_model_policy: 'resolveModel',
  mcp_oauth_required: 'onMcpOAuthRequired',
  auth_expired: 'onAuthExpired',
};

/** What a request calls, as its author knows it. */
function callbackName(request: WireObject): string {
  const subtype = String(request['subtype']);
  if (subtype !== 'hook_callback') return CALLBACKS[subtype] ?? `the answer to ${subtype}`;
  const input = isRecord(request['input']) ? request['input'] : {};
  return `a ${String(input['hook_event_name'])} hook`;
}
