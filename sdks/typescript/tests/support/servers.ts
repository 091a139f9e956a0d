/**
 * Real MCP servers for tests. Those of others are in the folder that `QODER_TEST_MCP` names: `node_modules` and `venv`.
 * Those of `sdks/scenarios/servers` are run by the interpreter of that `venv`.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import type { McpHttpServerConfig, McpSSEServerConfig, McpStdioServerConfig } from '@qoder-ai/qoder-agent-sdk';

/** Where servers of a test are reached. */
export type Way = 'stdio' | 'sse' | 'http';
/** Configurations of one server by transport. */
export interface Ways {
  stdio: McpStdioServerConfig;
  sse: McpSSEServerConfig;
  http: McpHttpServerConfig;
}

/** How long a server may take before a test counts as hanging. */
export const PATIENCE_MS = 60_000;

/** A program of the folder with the servers of others. */
export function installed(path: string): string {
  const folder = process.env['QODER_TEST_MCP'];
  assert.ok(
    folder,
    'QODER_TEST_MCP is not set: it must name a folder with node_modules and venv that hold MCP servers; ' +
      '"cargo xtask test" makes one and sets it',
  );
  const program = join(folder, path);
  assert.ok(existsSync(program), `${program} does not exist; is QODER_TEST_MCP right?`);
  return program;
}

/** A server of this repository. */
export function own(name: string): string {
  const repository = process.env['QODER_SDK_REPOSITORY'];
  assert.ok(repository, 'QODER_SDK_REPOSITORY names the repository');
  return join(repository, 'sdks/scenarios/servers', name);
}

/** The server with a bit of everything, as a child process. */
export function everything(): McpStdioServerConfig {
  return { command: installed('node_modules/.bin/mcp-server-everything'), args: ['stdio'] };
}

/** Our server that asks its user, as a child process. */
export function asking(): McpStdioServerConfig {
  return { command: installed('venv/bin/python'), args: [own('asking.py'), 'stdio'] };
}

/** The server that returns the time, as a child process. */
export function timeServer(zone = 'UTC'): McpStdioServerConfig {
  return { command: installed('venv/bin/mcp-server-time'), args: ['--local-timezone', zone] };
}

/** Starts one of our servers for the tests of a file; gives its address. */
export async function running(name: string, ...args: string[]): Promise<string> {
  const child = spawn(installed('venv/bin/python'), [own(name), ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  endAfterwards(child);
  for await (const line of createInterface({ input: child.stdout })) return (JSON.parse(line) as { url: string }).url;
  throw new Error(`${name} ended before it was ready`);
}

/** Starts the server with a bit of everything on ports of this machine. */
export async function everythingOver(): Promise<Ways> {
  const [sse, http] = await Promise.all([onPort('sse'), onPort('streamableHttp')]);
  return {
    stdio: everything(),
    sse: { type: 'sse', url: `${sse}/sse` },
    http: { type: 'http', url: `${http}/mcp` },
  };
}

/** Starts our server that asks its user on ports of this machine. */
export async function askingOver(): Promise<Ways> {
  const [sse, http] = await Promise.all([running('asking.py', 'sse'), running('asking.py', 'http')]);
  return { stdio: asking(), sse: { type: 'sse', url: sse }, http: { type: 'http', url: http } };
}

async function onPort(transport: string): Promise<string> {
  const port = await freePort();
  const child = spawn(installed('node_modules/.bin/mcp-server-everything'), [transport], {
    stdio: 'ignore',
    env: { ...process.env, PORT: String(port) },
  });
  endAfterwards(child);
  const end = Date.now() + PATIENCE_MS;
  while (!(await accepts(port))) {
    assert.ok(child.exitCode === null && Date.now() < end, `server-everything ${transport} did not start`);
    await pause(50);
  }
  return `http://localhost:${port}`;
}

function endAfterwards(child: ChildProcess): void {
  after(() => {
    child.stdout?.destroy();
    child.kill('SIGKILL');
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      assert.ok(address !== null && typeof address === 'object');
      probe.close(() => resolve(address.port));
    });
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: 'localhost' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
