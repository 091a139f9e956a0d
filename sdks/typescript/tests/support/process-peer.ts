/**
 * A peer behind a process that is one: a small program that passes its pipes on to the test. For what a session
 * refuses together with `spawnQoderCLIProcess`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

import type { Options, SpawnOptions } from '@qoder-ai/qoder-agent-sdk';

import { Peer } from './peer.js';

const RELAY = `
import { connect } from 'node:net';
const socket = connect({ path: process.env.QODER_TEST_SOCKET, allowHalfOpen: true });
socket.write(JSON.stringify({ command: '', args: process.argv.slice(2), env: process.env }) + '\\n');
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('end', () => process.exit(0));
`;

/** Options that start a process with this script behind it, and the end of the script. */
export function withPeerProcess(
  test: TestContext,
  script: (peer: Peer) => Promise<void>,
  options: Options = {},
): { options: Options; peer: () => Peer; scriptDone: Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'qoder-peer-'));
  const program = join(folder, 'relay.mjs');
  const path = join(folder, 'socket');
  writeFileSync(program, RELAY);
  let started: Peer | undefined;
  let markDone: (outcome: Promise<void>) => void = () => undefined;
  const scriptDone = new Promise<void>((resolve) => {
    markDone = resolve;
  });
  scriptDone.catch(() => undefined);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const run = accept(socket).then((peer) => {
      started = peer;
      return script(peer);
    });
    markDone(run);
    run.catch(() => socket.destroy());
  });
  server.listen(path);
  test.after(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    options: { ...options, pathToQoderCLIExecutable: program, env: { ...options.env, QODER_TEST_SOCKET: path } },
    peer: () => {
      assert.ok(started, 'the process was not started');
      return started;
    },
    scriptDone,
  };
}

/** The first line says what the process was started with; the others are its input. */
async function accept(socket: Socket): Promise<Peer> {
  let text = '';
  while (!text.includes('\n')) {
    text += await new Promise<string>((resolve) => {
      socket.once('data', (chunk: Buffer) => {
        // Later chunks are for a later listener.
        socket.pause();
        resolve(chunk.toString('utf8'));
      });
      socket.resume();
    });
  }
  const end = text.indexOf('\n');
  const peer = new Peer(JSON.parse(text.slice(0, end)) as SpawnOptions);
  if (text.length > end + 1) peer.stdin.write(text.slice(end + 1));
  socket.pipe(peer.stdin);
  peer.stdout.pipe(socket);
  return peer;
}
