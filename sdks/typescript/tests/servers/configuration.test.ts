/**
 * Where MCP servers come from and which of them count: files, settings, allowlists, policies of tools.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { createSdkMcpServer, type McpServerConfig, type Options, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { calledOnce, calling, called, rowOf, using } from '../support/live.js';
import { everything, timeServer } from '../support/servers.js';

const ECHO = 'mcp__every__echo';
/** Makes the project's own files count. */
const TRUST = { QODER_TRUST: '1' };

function written(path: string, servers: Record<string, McpServerConfig>): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify({ mcpServers: servers }));
  return path;
}

async function names(options: Options): Promise<string[]> {
  return using(options, async (live) => Object.keys(await live.settled()).sort());
}

const inside = () =>
  createSdkMcpServer({
    name: 'inside',
    tools: [
      tool('greet', 'Greets.', { name: z.string() }, async ({ name }) => ({
        content: [{ type: 'text', text: `Hello, ${name}` }],
      })),
    ],
  });

test('servers may be the path of a file', async (context) => {
  const project = calling(context, [ECHO, { message: 'from a file' }]);
  const path = written(join(project.directory, 'servers.json'), { every: everything() });
  assert.equal((await called(project.options({ mcpServers: path })))[ECHO]?.text, 'Echo: from a file');
});

test("servers of the user's settings are loaded", async (context) => {
  const project = calling(context, [ECHO, { message: 'mine' }]);
  written(join(project.configuration, 'settings.json'), { every: everything() });
  await using(project.options({ mcpServers: { time: timeServer() } }), async (live) => {
    const rows = await live.settled();
    assert.deepEqual(Object.keys(rows).sort(), ['every', 'time']);
    assert.equal(rowOf(rows, 'every').scope, 'user');
    assert.equal((await live.results())[ECHO]?.text, 'Echo: mine');
  });
});

test('servers of a project wait for trust and approval', async (context) => {
  const project = calling(context, [ECHO, { message: 'approved' }]);
  written(join(project.directory, '.mcp.json'), { every: everything() });
  assert.deepEqual(await names(project.options()), []);
  const row = await using(project.options({ env: TRUST }), async (live) => rowOf(await live.settled(), 'every'));
  assert.equal(row.status, 'disabled');
  assert.match(row.error ?? '', /approv/);
  mkdirSync(project.configuration, { recursive: true });
  const settings = { mcp: { enabledProjectMcpServers: ['every'] } };
  writeFileSync(join(project.configuration, 'settings.json'), JSON.stringify(settings));
  assert.equal((await called(project.options({ env: TRUST })))[ECHO]?.text, 'Echo: approved');
});

test('strict uses only the configured servers', async (context) => {
  const project = calling(context);
  written(join(project.configuration, 'settings.json'), { mine: everything() });
  written(join(project.directory, '.mcp.json'), { ours: everything() });
  const mcpServers = { time: timeServer() };
  assert.deepEqual(await names(project.options({ mcpServers, env: TRUST })), ['mine', 'ours', 'time']);
  assert.deepEqual(await names(project.options({ mcpServers, env: TRUST, strictMcpConfig: true })), ['time']);
});

test('only allowed servers are connected; those in the program are not filtered', async (context) => {
  const mcpServers = { every: everything(), time: timeServer(), inside: inside() };
  const project = calling(context);
  assert.deepEqual(await names(project.options({ mcpServers, allowedMcpServerNames: ['every'] })), ['every', 'inside']);
  assert.deepEqual(await names(project.options({ mcpServers, allowedMcpServerNames: [] })), ['every', 'inside', 'time']);
});

type Policy = 'always_allow' | 'always_ask' | 'always_deny';
const withPolicy = (permission_policy: Policy) => ({ ...everything(), tools: [{ name: 'echo', permission_policy }] });

test('always_allow needs no permission, and is for one tool', async (context) => {
  const more = { mcpServers: { every: withPolicy('always_allow') }, allowedTools: [] };
  assert.equal((await calledOnce(context, [ECHO, { message: 'allowed' }], more)).text, 'Echo: allowed');
  assert.ok((await calledOnce(context, ['mcp__every__get-sum', { a: 1, b: 1 }], more)).isError);
});

test('always_ask asks although a rule allows', async (context) => {
  const asked: string[] = [];
  const canUseTool: Options['canUseTool'] = async (name, input) => {
    asked.push(name);
    return { behavior: 'allow', updatedInput: input };
  };
  const given = await calledOnce(context, [ECHO, { message: 'asked' }], {
    mcpServers: { every: withPolicy('always_ask') },
    canUseTool,
  });
  assert.deepEqual([asked, given.text], [[ECHO], 'Echo: asked']);
});

test('always_deny denies although a rule allows', async (context) => {
  const given = await calledOnce(context, [ECHO, { message: 'no' }], { mcpServers: { every: withPolicy('always_deny') } });
  assert.ok(given.isError && !given.text.includes('Echo: no'));
});
