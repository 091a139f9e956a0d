/**
 * Managing MCP servers while a session runs: status and its changes, replacing, reconnecting, switching off. With real
 * servers.
 */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  ControlRequestError,
  ControlRequestTimeoutError,
  createSdkMcpServer,
  type McpServerConfig,
  tool,
} from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { calling, resultsByTool, rowOf, statuses, using } from '../support/live.js';
import { sandbox } from '../support/runtime.js';
import { asking, everything, timeServer } from '../support/servers.js';

const ECHO = 'mcp__every__echo';
const inside = () =>
  createSdkMcpServer({
    name: 'inside',
    tools: [
      tool('greet', 'Greets.', { name: z.string() }, async ({ name }) => ({
        content: [{ type: 'text', text: `Hello, ${name}` }],
      })),
    ],
  });

test('the status has a row for every server', async (context) => {
  const mcpServers: Record<string, McpServerConfig> = {
    inside: inside(),
    every: everything(),
    broken: { command: '/nonexistent/server' },
  };
  await using(calling(context).options({ mcpServers }), async (live) => {
    assert.deepEqual(Object.keys(await live.rows()).sort(), ['broken', 'every', 'inside']);
    const rows = await live.settled();
    assert.deepEqual(statuses(rows), { broken: 'failed', every: 'connected', inside: 'connected' });
    assert.match(rowOf(rows, 'broken').error ?? '', /nonexistent/);
    assert.equal(rowOf(rows, 'every').error, undefined);
    const echo = rowOf(rows, 'every').tools?.find((each) => each.name === 'echo');
    assert.deepEqual(echo?.annotations, { readOnly: true, destructive: false, openWorld: false });
    assert.ok(echo?.description);
  });
});

test('a session does not wait for servers to begin', async (context) => {
  const silent = { command: '/bin/sleep', args: ['1000'] };
  await using(calling(context).options({ mcpServers: { silent } }), async (live) => {
    await live.query.initializationResult();
    assert.ok(['pending', 'connecting'].includes(rowOf(await live.rows(), 'silent').status));
  });
});

test('every change is reported to the callback and on the stream', async (context) => {
  const told: string[] = [];
  const project = calling(context, [ECHO, { message: 'x' }]);
  const options = project.options({
    mcpServers: { every: everything(), broken: { command: '/nonexistent/server' } },
    onMcpStatusChange: (servers) => {
      told.push(...servers.map((row) => `${row.name} ${row.status}`));
    },
  });
  const streamed = await using(options, async (live) => {
    await live.settled();
    await live.query.toggleMcpServer('every', false);
    await live.query.toggleMcpServer('every', true);
    const messages = await live.go();
    return messages.flatMap((message) =>
      message.type === 'system' && message.subtype === 'mcp_status_change'
        ? message.servers.map((row) => `${row.name} ${row.status}`)
        : [],
    );
  });
  const of = (name: string) => streamed.filter((each) => each.startsWith(name)).map((each) => each.split(' ')[1]);
  assert.deepEqual(of('every'), ['connecting', 'connected', 'disabled', 'connecting', 'connected']);
  assert.deepEqual(of('broken'), ['connecting', 'failed']);
  assert.deepEqual(told, streamed);
});

test('all servers are replaced by those that are wanted', async (context) => {
  const kept = timeServer();
  const project = calling(context, [ECHO, { message: 'gone?' }], ['mcp__new__greet', { name: 'Ada' }]);
  await using(project.options({ mcpServers: { every: everything(), kept } }), async (live) => {
    await live.settled();
    const wanted: Record<string, McpServerConfig> = { kept, new: inside(), broken: { command: '/nonexistent/server' } };
    const changed = await live.query.setMcpServers(wanted);
    assert.deepEqual([changed.added.sort(), changed.removed], [['broken', 'new'], ['every']]);
    assert.deepEqual(Object.keys(changed.errors), ['broken']);
    assert.deepEqual(statuses(await live.settled()), { broken: 'failed', kept: 'connected', new: 'connected' });
    const given = await live.results();
    assert.equal(given[ECHO]?.isError, true);
    assert.equal(given['mcp__new__greet']?.text, 'Hello, Ada');
    assert.deepEqual(await live.query.setMcpServers({}), { added: [], removed: ['broken', 'kept', 'new'], errors: {} });
    assert.deepEqual(await live.rows(), {});
  });
});

test('a changed configuration is removed and added, and its tools are those of the next turn', async (context) => {
  const project = calling(context, ['mcp__time__get_current_time', { timezone: 'UTC' }]);
  await using(project.options({ mcpServers: {} }), async (live) => {
    assert.deepEqual(await live.query.setMcpServers({ time: timeServer() }), { added: ['time'], removed: [], errors: {} });
    const other = { time: timeServer('Asia/Tokyo') };
    assert.deepEqual(await live.query.setMcpServers(other), { added: ['time'], removed: ['time'], errors: {} });
    assert.deepEqual(await live.query.setMcpServers(other), { added: [], removed: [], errors: {} });
    await live.statusIs('time', 'connected');
    const messages = await live.go();
    assert.equal(resultsByTool(messages)['mcp__time__get_current_time']?.isError, false);
    const init = messages.find((message) => message.type === 'system' && message.subtype === 'init');
    assert.ok(init && 'tools' in init && (init.tools as string[]).includes('mcp__time__get_current_time'));
  });
});

test('a server that failed is reconnected', async (context) => {
  const project = calling(context, [ECHO, { message: 'late' }]);
  const command = join(project.directory, 'late-server');
  await using(project.options({ mcpServers: { every: { command, args: ['stdio'] } } }), async (live) => {
    await live.statusIs('every', 'failed');
    await assert.rejects(live.query.reconnectMcpServer('every'), ControlRequestError);
    symlinkSync(everything().command, command);
    await live.query.reconnectMcpServer('every');
    assert.equal(rowOf(await live.rows(), 'every').status, 'connected');
    assert.equal((await live.results())[ECHO]?.text, 'Echo: late');
    await assert.rejects(live.query.reconnectMcpServer('absent'), /absent/);
  });
});

test('a server that is switched off has no tools until it is switched on', async (context) => {
  const replies = [1, 3].map((turn) => ({ when: { turn }, toolCalls: [{ name: ECHO, input: { message: 'on' } }] }));
  const project = sandbox(context, [...replies, { text: 'Done.', repeat: true }]);
  const options = project.options({ mcpServers: { every: everything() }, allowedTools: [ECHO] });
  await using(options, async (live) => {
    await live.statusIs('every', 'connected');
    await live.query.toggleMcpServer('every', false);
    const row = rowOf(await live.rows(), 'every');
    assert.deepEqual([row.status, row.tools], ['disabled', undefined]);
    assert.equal((await live.results())[ECHO]?.isError, true);
    await live.query.toggleMcpServer('every', true);
    assert.equal(rowOf(await live.rows(), 'every').status, 'connected');
    assert.equal((await live.results())[ECHO]?.text, 'Echo: on');
    await assert.rejects(live.query.toggleMcpServer('absent', true), /absent/);
  });
});

test('a request about a silent server runs into its timeout', async (context) => {
  const silent = { command: '/bin/sleep', args: ['1000'] };
  const options = calling(context).options({ mcpServers: { silent }, controlRequestTimeoutMs: 5_000 });
  await using(options, async (live) => {
    await live.query.initializationResult();
    await assert.rejects(live.query.reconnectMcpServer('silent'), ControlRequestTimeoutError);
  });
});

test('a row says what a server calls itself', async (context) => {
  await using(calling(context).options({ mcpServers: { asking: asking() } }), async (live) => {
    const row = await live.statusIs('asking', 'connected');
    assert.deepEqual(row.serverInfo, { name: 'asking', title: 'The asking server', version: '1.2.3' });
  });
});
