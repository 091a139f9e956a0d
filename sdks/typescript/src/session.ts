/**
 * One session with the runtime: it starts the process, shakes hands, carries prompts in and messages out, and
 * brings everything to an end. What the messages of the user ask for is in `query.ts`.
 */
import {
  AbortError,
  errorText,
  MessageDecodeError,
  OptionsError,
  type ProcessEnd,
  QoderCliProcessError,
} from './errors.js';
import { findExecutable, proposeExecutable } from './executable.js';
import { McpBridge } from './mcp/bridge.js';
import { commandLine, describeServers } from './options/arguments.js';
import { runtimeEnvironment } from './options/environment.js';
import { isRecord } from './options/kinds.js';
import { removePrivateFile, writePrivateFile } from './options/private-file.js';
import type { CheckedOptions } from './options/validate.js';
import { RuntimeProcess } from './process.js';
import { StoreSession } from './sessions/store-session.js';
import type { SDKMessage, SDKUserMessage } from './types/messages.js';
import type { McpServerConfig, McpServerStatus } from './types/mcp.js';
import type { InitializationResult } from './types/query.js';
import { HostCallbacks } from './wire/callbacks.js';
import { ControlChannel, type WireObject } from './wire/control.js';
import { checkInitialization, initializeRequest } from './wire/handshake.js';
import { HookRegistry } from './wire/hooks.js';
import { MessageQueue } from './wire/message-queue.js';
import { RunTracker } from './wire/run-tracker.js';

const CONTROL_TIMEOUT_MS = 60_000;
/** How long the runtime may take to say that it works on a message it has only just read. */
const PERHAPS_MS = 500;

/** What a query is made from: a text, or a stream of messages. */
export type Prompt = string | AsyncIterable<SDKUserMessage>;

/** A session with the runtime. */
export class Session {
  /** What the runtime said at the start. */
  readonly initialized: Promise<InitializationResult>;

  readonly #options: CheckedOptions;
  readonly #queue = new MessageQueue<SDKMessage>();
  readonly #tracker = new RunTracker();
  readonly #bridge: McpBridge;
  readonly #hooks: HookRegistry;
  readonly #channel: ControlChannel;
  readonly #over: Promise<void>;
  readonly #privateFiles: string[] = [];
  #store: StoreSession | undefined;
  #process: RuntimeProcess | undefined;
  #ready = false;
  #closing = false;
  #finishing = false;
  #failure: Error | undefined;
  #sources = 0;
  #begun = false;
  #lastResultFailed: string | undefined;
  #perhapsTimer: NodeJS.Timeout | undefined;
  #delivered: Promise<void> = Promise.resolve();
  #markOver!: () => void;

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.#bridge = new McpBridge(options.mcpServers);
    this.#hooks = new HookRegistry(options.hooks);
    const callbacks = new HostCallbacks(options, this.#hooks, this.#bridge, (error) => this.#fail(error));
    this.#channel = new ControlChannel(
      (message) => this.#write(message),
      (request, signal) => callbacks.answer(request, signal),
      options.controlRequestTimeoutMs ?? CONTROL_TIMEOUT_MS,
    );
    this.#over = new Promise((resolve) => {
      this.#markOver = resolve;
    });
    this.initialized = this.#start();
    // The consumer of the stream learns of a failed start from the stream.
    this.initialized.catch(() => undefined);
    this.#watchAbort();
  }

  /** The next message of the stream. */
  next(): Promise<IteratorResult<SDKMessage, void>> {
    return this.#queue.next();
  }

  /** Asks something of the runtime, once it is ready. */
  async request(request: WireObject & { subtype: string }): Promise<WireObject> {
    await this.initialized;
    return this.#channel.request(request);
  }

  /** Asks the runtime to use other MCP servers. */
  async setServers(servers: Record<string, McpServerConfig>): Promise<WireObject> {
    await this.initialized;
    const offer = this.#bridge.offer(servers);
    try {
      const answer = await this.#channel.request({ subtype: 'mcp_set_servers', servers: describeServers(servers) });
      offer.commit();
      return answer;
    } catch (thrown) {
      offer.takeBack();
      throw thrown;
    }
  }

  /** Sends the prompt. */
  begin(prompt: Prompt): void {
    this.#begun = true;
    const stream = typeof prompt === 'string' ? single(prompt) : prompt;
    this.send(stream).catch((thrown: unknown) => {
      this.#fail(thrown instanceof Error ? thrown : new Error(errorText(thrown)));
    });
  }

  /** Sends messages until the stream ends; false when the session ended before. */
  async send(stream: AsyncIterable<SDKUserMessage>): Promise<boolean> {
    this.#sources += 1;
    const iterator = stream[Symbol.asyncIterator]();
    let complete = false;
    try {
      await this.initialized.catch(() => undefined);
      while (!this.#closing) {
        const step = await Promise.race([iterator.next(), this.#over]);
        if (step === undefined || this.#closing) break;
        if (step.done) {
          complete = true;
          break;
        }
        if (!(await this.#sendMessage(step.value))) break;
      }
    } finally {
      // Not waited for: a stream may be in the middle of something that never ends.
      if (!complete) void Promise.resolve(iterator.return?.()).catch(() => undefined);
      this.#sources -= 1;
      this.#considerEnd();
    }
    return complete;
  }

  /** Ends the session; resolves when its process is gone. Messages that were not taken yet are dropped. */
  async close(): Promise<void> {
    this.#queue.discard();
    if (!this.#closing) {
      this.#closing = true;
      if (this.#tracker.busy && this.#process?.inputOpen) {
        // Closing the input alone would let the runtime finish its turn, whose messages no one reads.
        this.#channel.request({ subtype: 'interrupt' }, 0).catch(() => undefined);
      }
      this.#process?.stop();
    }
    await this.#over;
  }

  async #start(): Promise<InitializationResult> {
    try {
      return await this.#shakeHands();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(errorText(thrown));
      this.#fail(error);
      if (this.#process === undefined) this.#finish();
      throw error;
    }
  }

  async #shakeHands(): Promise<InitializationResult> {
    let options = this.#options;
    if (options.sessionStore) {
      this.#store = await StoreSession.open(options, options.sessionStore, (message) => this.#queue.push(message));
      options = this.#store.options;
    }
    if (options.abortController?.signal.aborted) throw new AbortError();
    if (this.#closing) throw new AbortError('The query was closed before it started.');
    const process = this.#launch(options);
    this.#process = process;
    const ended = process.ended.then((end) => this.#ended(process, end));
    const answer = await this.#channel
      .request(initializeRequest(options, this.#hooks))
      .catch(async (thrown: unknown) => {
        // That nothing can be written is known; why the process ended is what counts.
        if (!process.inputOpen) {
          process.stop();
          await ended;
        }
        throw this.#failure ?? thrown;
      })
      .finally(() => this.#removePrivateFiles());
    const initialization = checkInitialization(answer, this.#hooks);
    this.#ready = true;
    return initialization;
  }

  #launch(options: CheckedOptions): RuntimeProcess {
    const { command, leadingArguments } = options.spawnQoderCLIProcess
      ? proposeExecutable(options)
      : findExecutable(options);
    // A runtime that is started elsewhere could not read a file of this machine.
    const hide = options.spawnQoderCLIProcess ? undefined : (content: string) => this.#hide(content);
    return new RuntimeProcess(
      {
        command,
        args: [...leadingArguments, ...commandLine(options, hide)],
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        env: runtimeEnvironment(options),
      },
      {
        line: (text) => this.#receive(text),
        diagnostics: (text) => this.#tellDiagnostics(text),
        broken: (error) => this.#fail(error),
      },
      options.spawnQoderCLIProcess,
    );
  }

  #hide(content: string): string {
    const path = writePrivateFile(content);
    this.#privateFiles.push(path);
    return path;
  }

  #removePrivateFiles(): void {
    for (const path of this.#privateFiles.splice(0)) removePrivateFile(path);
  }

  #receive(line: string): void {
    // Anything but an object is chatter of a wrapper around the runtime.
    if (!line.startsWith('{')) return;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch (thrown) {
      const start = line.slice(0, 200);
      this.#fail(new MessageDecodeError(`The runtime wrote a line that is no JSON: ${start}`, { cause: thrown }));
      return;
    }
    if (!isRecord(message) || this.#channel.receive(message)) return;
    if (message['type'] === 'keep_alive') return;
    if (message['type'] === 'transcript_mirror') {
      this.#store?.mirror.take(message);
      return;
    }
    this.#tracker.received(message);
    if (message['sdk_host_only'] !== true) this.#deliver(message);
    this.#considerEnd();
  }

  #deliver(message: WireObject): void {
    if (message['type'] === 'result') {
      const errors = Array.isArray(message['errors']) ? message['errors'].join('; ') : '';
      this.#lastResultFailed = message['is_error'] === true ? errors || String(message['subtype']) : undefined;
    } else {
      this.#lastResultFailed = undefined;
    }
    if (message['type'] === 'system' && message['subtype'] === 'mcp_status_change') {
      this.#tellStatus(message['servers']);
    }
    // By default too: a program that reads only results would never learn of a misspelt rule.
    if (message['type'] === 'system' && message['subtype'] === 'notice') console.warn(`qodercli: ${message['message']}`);
    const push = (): void => this.#queue.push(message as unknown as SDKMessage);
    const store = this.#store;
    if (store === undefined) {
      push();
      return;
    }
    // A caller that sees a result can rely on the store having everything before it.
    const flushed = message['type'] === 'result' ? () => store.mirror.flush() : () => undefined;
    this.#delivered = this.#delivered.then(flushed).then(push);
  }

  #tellDiagnostics(text: string): void {
    try {
      this.#options.stderr?.(text);
    } catch {
      // An observer that fails must not harm the session it observes.
    }
  }

  #tellStatus(servers: unknown): void {
    const listener = this.#options.onMcpStatusChange;
    if (!listener || !Array.isArray(servers)) return;
    // As for diagnostics: failures of observers are their own.
    void Promise.resolve()
      .then(() => listener(servers as McpServerStatus[]))
      .catch(() => undefined);
  }

  async #sendMessage(message: SDKUserMessage): Promise<boolean> {
    if (!isRecord(message) || message['type'] !== 'user' || !isRecord(message['message'])) {
      throw new OptionsError(
        'A stream of prompts must yield messages such as { type: "user", message: { role: "user", content: "…" } }.',
      );
    }
    this.#tracker.sent(message);
    return this.#write({ parent_tool_use_id: null, session_id: '', ...message });
  }

  async #write(message: WireObject): Promise<boolean> {
    return (await this.#process?.write(JSON.stringify(message))) ?? false;
  }

  /** Closes the input when nothing more will be sent and nothing is owed. */
  #considerEnd(): void {
    clearTimeout(this.#perhapsTimer);
    if (!this.#begun || this.#sources > 0 || this.#closing) return;
    const verdict = this.#tracker.verdict();
    if (verdict === 'over') this.#endInput();
    else if (verdict === 'perhaps') this.#perhapsTimer = setTimeout(() => this.#endInput(), PERHAPS_MS);
  }

  #endInput(): void {
    this.#finishing = true;
    this.#process?.stop();
  }

  /** Ends the stream with an error, and the process with it. */
  #fail(error: Error): void {
    this.#closing = true;
    this.#failure ??= error;
    void this.#delivered.then(() => {
      // The runtime explains some failed starts in a result; that is the error, told once.
      const told = this.#lastResultFailed !== undefined && error instanceof QoderCliProcessError;
      this.#queue.finish(told ? undefined : error);
    });
    this.#channel.close(error);
    this.#process?.stop();
  }

  /** The process has gone, which may be an error. */
  async #ended(process: RuntimeProcess, end: ProcessEnd): Promise<void> {
    const orderly = this.#ready && end.exitCode === 0 && !this.#tracker.awaitingResult;
    const expected = this.#closing || orderly || (this.#finishing && end.signal !== null);
    const error = expected ? undefined : this.#endError(process, end);
    this.#failure ??= error;
    if (this.#store) await (this.#closing ? this.#store.mirror.close() : this.#store.mirror.flush());
    await this.#delivered;
    this.#queue.finish(this.#lastResultFailed === undefined ? error : undefined);
    this.#channel.close(new Error('The session has ended.'));
    this.#finish();
  }

  #endError(process: RuntimeProcess, end: ProcessEnd): Error {
    const cause = process.startError;
    if (cause) return new QoderCliProcessError(`The runtime could not be started: ${cause.message}`, end, { cause });
    const how = end.signal === null ? `with code ${end.exitCode}` : `by the signal ${end.signal}`;
    const said = this.#lastResultFailed ?? lastLines(end.stderr);
    return new QoderCliProcessError(`The runtime ended ${how}${said === '' ? '.' : `: ${said}`}`, end);
  }

  #finish(): void {
    clearTimeout(this.#perhapsTimer);
    this.#removePrivateFiles();
    this.#bridge.close();
    this.#markOver();
    // What cannot be removed is left to the system, which clears its temporary files.
    this.#store?.dispose().catch(() => undefined);
  }

  #watchAbort(): void {
    const signal = this.#options.abortController?.signal;
    if (!signal) return;
    const abort = (): void => {
      if (this.#closing) return;
      this.#fail(new AbortError());
      this.#process?.terminate();
    };
    signal.addEventListener('abort', abort, { once: true });
    void this.#over.then(() => signal.removeEventListener('abort', abort));
  }
}

async function* single(text: string): AsyncGenerator<SDKUserMessage> {
  yield { type: 'user', message: { role: 'user', content: text } };
}

function lastLines(diagnostics: string): string {
  return diagnostics.trim().split('\n').slice(-10).join('\n');
}
