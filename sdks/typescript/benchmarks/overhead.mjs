/**
 * What this package adds to a session, printed as one JSON object:
 *
 *   importMs                  loading the package in a new process
 *   queryToInitMs             from query() to the answer of the runtime's handshake
 *   toolRoundTripMs           one call of a tool of this process, from the runtime and back
 *   partialMessagesPerSecond  pieces of replies that reach the consumer
 *
 * Each number is the median of several runs. The model is a playbook, so no network is used. Build the package first
 * (`npm run build`), and set QODERCLI_PATH if the runtime is not on the PATH.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import { z } from 'zod';

const entry = new URL('../dist/index.js', import.meta.url);
const { createSdkMcpServer, query, tool } = await import(entry.href);

const RUNS = 7;
const CALLS = 50;
const PIECES = 5000;

const folder = mkdtempSync(join(tmpdir(), 'qoder-sdk-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function median(values) {
  const sorted = [...values].sort((first, second) => first - second);
  return Number(sorted[Math.floor(sorted.length / 2)].toFixed(2));
}

async function repeat(times, measure) {
  const values = [];
  for (let run = 0; run < times; run += 1) values.push(await measure());
  return median(values);
}

/** Options for a run with these replies of the model. */
function options(name, replies, more = {}) {
  const playbook = join(folder, `${name}.json`);
  writeFileSync(playbook, JSON.stringify({ replies }));
  const env = { QODER_CONFIG_DIR: join(folder, 'configuration') };
  return { cwd: folder, model: `scripted:${playbook}`, env, ...more };
}

function importTime() {
  const program = `const start = performance.now(); await import(${JSON.stringify(entry.href)}); console.log(performance.now() - start);`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
  return Number(stdout.toString());
}

async function initTime() {
  const start = performance.now();
  const session = query({ prompt: 'hello', options: options('init', [{ text: 'hello' }]) });
  await session.initializationResult();
  const passed = performance.now() - start;
  await session.close();
  return passed;
}

async function roundTripTime() {
  const echo = tool('echo', 'Returns its text.', { text: z.string() }, async ({ text }) => ({
    content: [{ type: 'text', text }],
  }));
  const toolCalls = Array.from({ length: CALLS }, () => ({ name: 'mcp__bench__echo', input: { text: 'x' } }));
  const session = query({
    prompt: 'go',
    options: options('tools', [{ toolCalls }, { text: 'done' }], {
      mcpServers: { bench: createSdkMcpServer({ name: 'bench', tools: [echo] }) },
      allowedTools: ['mcp__bench__echo'],
    }),
  });
  let start = 0;
  let passed = 0;
  for await (const message of session) {
    if (message.type === 'assistant' && start === 0) start = performance.now();
    else if (message.type === 'user') passed = performance.now() - start;
  }
  return passed / CALLS;
}

async function pieceRate() {
  const replies = [{ text: 'word '.repeat(PIECES), chunks: PIECES }];
  const session = query({ prompt: 'go', options: options('pieces', replies, { includePartialMessages: true }) });
  let start = 0;
  let count = 0;
  let passed = 0;
  for await (const message of session) {
    if (message.type !== 'stream_event') continue;
    if (start === 0) start = performance.now();
    count += 1;
    passed = performance.now() - start;
  }
  return count / (passed / 1000);
}

const results = {
  importMs: await repeat(RUNS, importTime),
  queryToInitMs: await repeat(RUNS, initTime),
  toolRoundTripMs: await repeat(RUNS, roundTripTime),
  partialMessagesPerSecond: Math.round(await repeat(3, pieceRate)),
};
console.log(JSON.stringify(results, null, 2));
