/**
 * One process of the runtime: its pipes, the last of its diagnostics, and its end. Nothing here knows what the
 * lines mean. When this program exits, it ends a process that is still alive.
 */
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

import { errorText, MessageDecodeError, type ProcessEnd, QoderCliProcessError } from './errors.js';

/** How long a process has at each step of its end: after its input closed, and after SIGTERM. */
const GRACE_MS = 5000;
/** How long output may come after the process has ended, from children that hold the pipe. */
const TRAILING_OUTPUT_MS = 1000;
/** How much of the diagnostics is kept for errors. */
const STDERR_KEPT = 64 * 1024;
/** The longest line that is read; a guard, the runtime keeps lines far shorter. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** What is to be started. */
export interface SpawnOptions {
  command: string;
  args: string[];
  cwd?: string;
  env: Record<string, string>;
  /** Aborted when the process has to end at once. */
  signal: AbortSignal;
}

/** A started process. A `ChildProcess` of Node is one. */
export interface SpawnedProcess {
  stdin: Writable;
  stdout: Readable;
  stderr?: Readable | null;
  readonly exitCode: number | null;
  kill(signal: NodeJS.Signals): boolean;
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
}

/** Starts the runtime in a way of your own. */
export type SpawnQoderCLIProcess = (options: SpawnOptions) => SpawnedProcess;

/** What a {@link RuntimeProcess} reports. */
export interface ProcessListener {
  /** One line of output. */
  line(text: string): void;
  /** One line of diagnostics. */
  diagnostics(text: string): void;
  /** The output cannot be read any further. */
  broken(error: Error): void;
}

const alive = new Set<SpawnedProcess>();

function endAll(): void {
  for (const child of alive) child.kill('SIGTERM');
}

/** Starts a process of this machine. */
function spawnHere(options: SpawnOptions): SpawnedProcess {
  return spawn(options.command, options.args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    windowsHide: true,
  });
}

/** A process of the runtime. */
export class RuntimeProcess {
  /** Resolves when the process is gone and its output read. Never rejects. */
  readonly ended: Promise<ProcessEnd>;

  readonly #child: SpawnedProcess;
  readonly #listener: ProcessListener;
  readonly #stopped = new AbortController();
  #stderr = '';
  #startError: Error | undefined;
  #inputOpen = true;
  #timers: NodeJS.Timeout[] = [];
  #gone = false;

  constructor(options: Omit<SpawnOptions, 'signal'>, listener: ProcessListener, start?: SpawnQoderCLIProcess) {
    this.#listener = listener;
    this.#child = startChild({ ...options, signal: this.#stopped.signal }, start);
    if (alive.size === 0) process.on('exit', endAll);
    alive.add(this.#child);
    // A process that has gone breaks the pipe; its end is what counts and is reported.
    this.#child.stdin.on('error', () => {
      this.#inputOpen = false;
    });
    this.#readDiagnostics();
    this.ended = this.#watch(this.#readOutput());
  }

  /** Whether lines can still be written. */
  get inputOpen(): boolean {
    return this.#inputOpen;
  }

  /** The error that kept the process from starting. */
  get startError(): Error | undefined {
    return this.#startError;
  }

  /** Writes one line; resolves when the pipe takes more. False when the input is closed. */
  async write(line: string): Promise<boolean> {
    if (!this.#inputOpen) return false;
    const stdin = this.#child.stdin;
    if (stdin.write(`${line}\n`)) return true;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        stdin.off('drain', done).off('close', done).off('error', done);
        resolve();
      };
      stdin.on('drain', done).on('close', done).on('error', done);
    });
    return this.#inputOpen;
  }

  /** Closes the input, which ends the runtime once its work is done. */
  endInput(): void {
    if (!this.#inputOpen) return;
    this.#inputOpen = false;
    this.#child.stdin.end();
  }

  /** Closes the input, and makes sure of the end: SIGTERM after a while, SIGKILL after another. */
  stop(): void {
    this.endInput();
    if (this.#gone || this.#timers.length > 0) return;
    this.#timers.push(setTimeout(() => this.#child.kill('SIGTERM'), GRACE_MS));
    this.#timers.push(setTimeout(() => this.#child.kill('SIGKILL'), 2 * GRACE_MS));
  }

  /** Ends the process without waiting for its work. */
  terminate(): void {
    this.endInput();
    this.#stopped.abort();
    if (this.#gone) return;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#child.kill('SIGTERM');
    this.#timers = [setTimeout(() => this.#child.kill('SIGKILL'), GRACE_MS)];
  }

  async #watch(outputRead: Promise<void>): Promise<ProcessEnd> {
    const end = await new Promise<{ exitCode: number | null; signal: string | null }>((resolve) => {
      this.#child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
      this.#child.once('error', (error) => {
        this.#startError = error;
        resolve({ exitCode: null, signal: null });
      });
    });
    this.#gone = true;
    this.#inputOpen = false;
    for (const timer of this.#timers) clearTimeout(timer);
    alive.delete(this.#child);
    if (alive.size === 0) process.off('exit', endAll);
    let timer: NodeJS.Timeout | undefined;
    const impatience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, TRAILING_OUTPUT_MS);
    });
    await Promise.race([outputRead, impatience]);
    clearTimeout(timer);
    this.#child.stdout.destroy();
    this.#child.stderr?.destroy();
    return { ...end, stderr: this.#stderr };
  }

  /** Hands out complete lines; resolves when there will be no more. */
  #readOutput(): Promise<void> {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    const take = (chunk: string): void => {
      const parts = chunk.split('\n');
      if (parts.length > 1) {
        this.#line(rest + (parts[0] ?? ''));
        for (const part of parts.slice(1, -1)) this.#line(part);
        rest = parts[parts.length - 1] ?? '';
      } else {
        rest += chunk;
      }
      if (rest.length > LONGEST_LINE) {
        rest = '';
        this.#listener.broken(
          new MessageDecodeError(`The runtime wrote a line of more than ${LONGEST_LINE} characters.`),
        );
        this.terminate();
      }
    };
    this.#child.stdout.on('data', (chunk: Buffer | string) => {
      take(typeof chunk === 'string' ? chunk : decoder.write(chunk));
    });
    return new Promise((resolve) => {
      const done = (): void => {
        if (rest.trim() !== '') this.#line(rest);
        rest = '';
        resolve();
      };
      this.#child.stdout.once('end', done).once('close', done).on('error', done);
    });
  }

  #line(line: string): void {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (text !== '') this.#listener.line(text);
  }

  #readDiagnostics(): void {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    this.#child.stderr?.on('data', (chunk: Buffer | string) => {
      const text = typeof chunk === 'string' ? chunk : decoder.write(chunk);
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#listener.diagnostics(line);
    });
    // Diagnostics are a convenience: when they cannot be read, the session continues without them.
    this.#child.stderr?.on('error', () => undefined);
    this.#child.stderr?.once('close', () => {
      if (rest !== '') this.#listener.diagnostics(rest);
      rest = '';
    });
  }
}

function startChild(options: SpawnOptions, start: SpawnQoderCLIProcess | undefined): SpawnedProcess {
  if (start === undefined && options.cwd !== undefined) {
    // Node reports a missing directory as a missing executable, which would send the reader the wrong way.
    if (!statSync(options.cwd, { throwIfNoEntry: false })?.isDirectory()) {
      throw new QoderCliProcessError(`options.cwd is ${options.cwd}, which is no directory. Create it or correct it.`);
    }
  }
  try {
    return (start ?? spawnHere)(options);
  } catch (thrown) {
    throw new QoderCliProcessError(`The runtime ${options.command} could not be started: ${errorText(thrown)}`, {}, {
      cause: thrown,
    });
  }
}
