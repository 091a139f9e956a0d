/**
 * The other end of the pipes, played by the test: a stand-in for the process, whose lines a script writes and
 * reads. It makes situations that a real runtime gets into seldom, such as late answers, cancellations and
 * crashes.
 */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';

import type { Options, SpawnedProcess, SpawnOptions } from '@qoder-ai/qoder-agent-sdk';

/** A JSON object on the wire. */
export type Wire = Record<string, any>;

/** Session id that the peer uses. */
export const SESSION = '11111111-2222-4333-8444-555555555555';

/** A process played by a script. */
export class Peer extends EventEmitter implements SpawnedProcess {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly signals: string[] = [];
  /** What the process was started with. */
  readonly spawned: SpawnOptions;
  exitCode: number | null = null;

  readonly #lines: Array<Wire | null> = [];
  readonly #takers: Array<(line: Wire | null) => void> = [];
  readonly #asked = new Map<string, (response: Wire) => void>();
  #count = 0;

  constructor(options: SpawnOptions) {
    super();
    this.spawned = options;
    let rest = '';
    this.stdin.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString('utf8')).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) this.#take(JSON.parse(part) as Wire);
    });
    this.stdin.on('end', () => this.#take(null));
  }

  #take(line: Wire | null): void {
    if (line?.['type'] === 'control_response') {
      const { request_id: id } = line['response'] as { request_id: string };
      const resolve = this.#asked.get(id);
      this.#asked.delete(id);
      if (resolve) return resolve(line['response'] as Wire);
    }
    const taker = this.#takers.shift();
    if (taker) taker(line);
    else this.#lines.push(line);
  }

  /** The next line that is no answer; null when the input is closed. */
  next(): Promise<Wire | null> {
    if (this.#lines.length > 0) return Promise.resolve(this.#lines.shift() as Wire | null);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** The next line, which must be there. */
  async read(): Promise<Wire> {
    const line = await this.next();
    assert.ok(line, 'the input was closed');
    return line;
  }

  /** The next line, which must be a control request of this kind. */
  async expect(subtype: string): Promise<Wire> {
    const line = await this.read();
    assert.equal(line['type'], 'control_request');
    assert.equal(line['request'].subtype, subtype);
    return line;
  }

  /** Reads until the input is closed. */
  async untilClosed(): Promise<void> {
    while ((await this.next()) !== null);
  }

  /** Writes a line. */
  send(message: Wire): void {
    this.stdout.write(`${JSON.stringify(message)}\n`);
  }

  /** Answers a request of the package. */
  answer(line: Wire, response: unknown = {}): void {
    this.send({
      type: 'control_response',
      response: { subtype: 'success', request_id: line['request_id'], response },
    });
  }

  /** Refuses a request of the package. */
  refuse(line: Wire, error: string): void {
    this.send({ type: 'control_response', response: { subtype: 'error', request_id: line['request_id'], error } });
  }

  /** Asks the package; gives back the whole response. */
  ask(request: Wire, id = `peer_${(this.#count += 1)}`): Promise<Wire> {
    const answer = new Promise<Wire>((resolve) => this.#asked.set(id, resolve));
    this.send({ type: 'control_request', request_id: id, request });
    return answer;
  }

  /** Asks the package and gives back what it answered, which must be a success. */
  async askWell(request: Wire): Promise<any> {
    const response = await this.ask(request);
    assert.equal(response['subtype'], 'success', String(response['error']));
    return response['response'];
  }

  /** Answers `initialize` as a runtime that fits; gives back the request. */
  async handshake(more: Wire = {}): Promise<Wire> {
    const line = await this.expect('initialize');
    this.answer(line, {
      commands: [],
      agents: [],
      models: [],
      account: {},
      output_style: 'default',
      protocol_version: 1,
      qodercli_version: '0.1.0',
      capabilities: [],
      session_id: SESSION,
      hook_on_failure_supported: true,
      hooks_applied: true,
      ...more,
    });
    return line['request'] as Wire;
  }

  /** Reports a state, hidden from the user. */
  state(state: 'running' | 'idle' | 'requires_action'): void {
    this.send({
      type: 'system',
      subtype: 'session_state_changed',
      state,
      sdk_host_only: true,
      uuid: 's',
      session_id: SESSION,
    });
  }

  /** Sends a reply. */
  say(text: string): void {
    this.send({
      type: 'assistant',
      uuid: 'a',
      session_id: SESSION,
      parent_tool_use_id: null,
      message: { role: 'assistant', model: 'm', content: [{ type: 'text', text }] },
    });
  }

  /** Ends a turn. */
  result(text = 'done', more: Wire = {}): void {
    this.send({
      type: 'result',
      subtype: 'success',
      is_error: false,
      duration_ms: 1,
      duration_api_ms: 1,
      num_turns: 1,
      session_id: SESSION,
      uuid: 'r',
      result: text,
      permission_denials: [],
      ...more,
    });
  }

  /** One whole turn with this answer. */
  async turn(text = 'done'): Promise<Wire> {
    const line = await this.read();
    assert.equal(line['type'], 'user');
    this.state('running');
    this.say(text);
    this.result(text);
    this.state('idle');
    return line;
  }

  kill(signal: NodeJS.Signals): boolean {
    this.signals.push(signal);
    this.emit('signal', signal);
    return true;
  }

  /** Ends the process. */
  exit(code: number | null = 0, signal: string | null = null): void {
    this.exitCode = code;
    this.stdout.end();
    this.stderr.end();
    this.emit('exit', code, signal);
  }
}

/** Options that start a peer with this script, and the peer. A script that fails ends the process with 70. */
export function withPeer(
  script: (peer: Peer) => Promise<void>,
  options: Options = {},
): { options: Options; peer: () => Peer; scriptDone: Promise<void> } {
  let started: Peer | undefined;
  let markDone: (outcome: Promise<void>) => void = () => undefined;
  const scriptDone = new Promise<void>((resolve) => {
    markDone = resolve;
  });
  scriptDone.catch(() => undefined);
  return {
    options: {
      ...options,
      spawnQoderCLIProcess: (spawned) => {
        const peer = new Peer(spawned);
        started = peer;
        const run = script(peer);
        markDone(run);
        run.catch((error: Error) => {
          peer.stderr.write(`${error.stack}\n`);
          peer.exit(70);
        });
        return peer;
      },
    },
    peer: () => {
      assert.ok(started, 'the peer was not started');
      return started;
    },
    scriptDone,
  };
}

/** A script for one turn that ends well. */
export async function oneTurn(peer: Peer): Promise<void> {
  await peer.handshake();
  await peer.turn();
  await peer.untilClosed();
  peer.exit(0);
}
