/**
 * Servers of this process: what they accept, tell and answer, and how calls are cancelled.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type CallToolResult, createSdkMcpServer, type Options, OptionsError, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { type Peer, withPeer } from './support/peer.js';
import { connect } from './support/rpc.js';
import { collect } from './support/runtime.js';

const echo = tool('echo', 'Returns its text.', { text: z.string() }, async ({ text }) => ({
  content: [{ type: 'text', text }],
}));

test('what is wrong with a server is said when it is made', () => {
  assert.throws(() => createSdkMcpServer({ name: '' }), /name must be a non-empty string/);
  assert.throws(() => createSdkMcpServer(undefined as never), OptionsError);
  const nameless = { ...echo, name: '' };
  assert.throws(() => createSdkMcpServer({ name: 's', tools: [nameless] }), /name of a tool must be/);
  const silent = { ...echo, description: ' ' };
  assert.throws(() => createSdkMcpServer({ name: 's', tools: [silent] }), /"echo" needs a description/);
  assert.throws(() => createSdkMcpServer({ name: 's', tools: [echo, echo] }), /two tools "echo"/);
});

test('initialize answers a known version, else the newest, and introduces the server', async () => {
  const client = await connect(createSdkMcpServer({ name: 'kb' }).instance);
  const known = await client.ask('initialize', { protocolVersion: '2024-11-05' });
  assert.deepEqual(known.result, {
    protocolVersion: '2024-11-05',
    capabilities: { tools: { listChanged: false } },
    serverInfo: { name: 'kb', version: '1.0.0' },
  });
  const unknown = await client.ask('initialize', { protocolVersion: '1999-01-01' });
  assert.equal(unknown.result.protocolVersion, '2025-11-25');
  assert.deepEqual((await client.ask('ping')).result, {});
  assert.deepEqual((await client.ask('tools/list')).result, { tools: [] });
  assert.equal((await client.ask('resources/list')).error?.code, -32601);
});

test('annotations and the size limit are told', async () => {
  const large = tool('large', 'Returns much.', {}, async () => ({ content: [] }), {
    annotations: { title: 'Large', readOnlyHint: true, idempotentHint: true, maxResultSizeChars: 500_000 },
  });
  const client = await connect(createSdkMcpServer({ name: 'kb', tools: [large] }).instance);
  const [told] = (await client.ask('tools/list')).result.tools;
  assert.deepEqual(told.annotations, { title: 'Large', readOnlyHint: true, idempotentHint: true });
  assert.deepEqual(told._meta, { 'anthropic/maxResultSizeChars': 500_000 });
});

test('failures are results: unknown tools, wrong arguments, errors, and results that are none', async () => {
  const returning = (name: string, result: unknown): ReturnType<typeof tool> =>
    tool(name, 'Returns something.', {}, async () => result as CallToolResult) as ReturnType<typeof tool>;
  const client = await connect(
    createSdkMcpServer({
      name: 'kb',
      tools: [
        echo,
        tool('throws', 'Fails.', {}, async () => {
          throw new Error('the service is down');
        }),
        returning('nothing', undefined),
        returning('number', 7),
        returning('keys', { text: 'x', other: 1 }),
      ],
    }).instance,
  );
  const cases: Array<[tool: string, args: unknown, expected: RegExp]> = [
    ['missing', {}, /has no tool missing/],
    ['echo', { text: 7 }, /Invalid arguments for echo: text: /],
    ['echo', 'text', /must be an object/],
    ['throws', {}, /^the service is down$/],
    ['nothing', {}, /must return an object with "content", but returned nothing/],
    ['number', {}, /returned 7/],
    ['keys', {}, /the fields are: text, other/],
  ];
  for (const [name, args, expected] of cases) {
    const result = await client.call(name, args);
    assert.equal(result.isError, true, name);
    assert.match(result.content[0].text, expected);
  }
  assert.deepEqual(await client.call('echo', { text: 'grün' }), { content: [{ type: 'text', text: 'grün' }] });
});

test('all kinds of content pass, and a link gets the name that MCP demands', async () => {
  const content: CallToolResult['content'] = [
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
    { type: 'audio', data: 'AA==', mimeType: 'audio/wav' },
    { type: 'resource', resource: { uri: 'a:1', text: 't' } },
    { type: 'resource', resource: { uri: 'a:2', blob: 'AA==' } },
    { type: 'resource_link', uri: 'a:3', name: 'three' },
    { type: 'resource_link', uri: 'a:4' },
  ];
  const all = tool('all', 'Returns all.', {}, async () => ({ content, _meta: { a: 1 } }));
  const client = await connect(createSdkMcpServer({ name: 'kb', tools: [all] }).instance);
  const result = await client.call('all', {});
  assert.deepEqual(result.content.slice(0, 5), content.slice(0, 5));
  assert.deepEqual(result.content[5], { type: 'resource_link', uri: 'a:4', name: 'a:4' });
  assert.deepEqual(result._meta, { a: 1 });
});

/** Runs a session whose runtime does this with the server `kb`. */
async function runtimeDoes(
  script: (peer: Peer, send: (message: object) => Promise<any>) => Promise<void>,
  tools: Array<ReturnType<typeof tool<any>>>,
): Promise<void> {
  const given: Options = { mcpServers: { kb: createSdkMcpServer({ name: 'kb', tools }) } };
  const { options, scriptDone } = withPeer(async (peer) => {
    await peer.handshake();
    const send = async (message: object): Promise<any> =>
      (await peer.askWell({ subtype: 'mcp_message', server_name: 'kb', message })).mcp_response;
    await script(peer, send);
    await peer.turn();
    await peer.untilClosed();
    peer.exit(0);
  }, given);
  await collect(query({ prompt: 'hello', options }));
  await scriptDone;
}

test('messages of the runtime reach the server, and notifications are acknowledged', async () => {
  await runtimeDoes(
    async (peer, send) => {
      const initialized = await send({ jsonrpc: '2.0', id: 'i1', method: 'initialize', params: {} });
      assert.equal(initialized.id, 'i1');
      assert.deepEqual(await send({ jsonrpc: '2.0', method: 'notifications/initialized' }), {
        jsonrpc: '2.0',
        result: {},
      });
      const called = await send({
        jsonrpc: '2.0',
        id: 2,
        method: 'tools/call',
        params: { name: 'echo', arguments: { text: 'hi' } },
      });
      assert.deepEqual(called, { jsonrpc: '2.0', id: 2, result: { content: [{ type: 'text', text: 'hi' }] } });
      const unknown = await peer.askWell({
        subtype: 'mcp_message',
        server_name: 'other',
        message: { jsonrpc: '2.0', id: 3, method: 'ping' },
      });
      assert.equal(unknown.mcp_response.error.code, -32601);
    },
    [echo],
  );
});

/** A tool that waits until it is cancelled, and reports when it starts and when it stops. */
function waitingTool(): { definition: ReturnType<typeof tool<any>>; started: Promise<void>; stopped: Promise<void> } {
  let start: () => void = () => undefined;
  let stop: () => void = () => undefined;
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const definition = tool('wait', 'Waits.', {}, async (_args, { signal }) => {
    start();
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    stop();
    return { content: [{ type: 'text', text: 'too late' }] };
  });
  return { definition, started, stopped };
}

const waitCall = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'wait', arguments: {} } };

test('notifications/cancelled aborts the handler and ends the call with -32800', async () => {
  const { definition, started, stopped } = waitingTool();
  await runtimeDoes(
    async (_peer, send) => {
      const call = send(waitCall);
      await started;
      await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } });
      assert.equal((await call).error.code, -32800);
      await stopped;
    },
    [definition],
  );
});

test('a cancelled control request aborts the handler and gets no answer', async () => {
  const { definition, started, stopped } = waitingTool();
  await runtimeDoes(
    async (peer) => {
      let answered = false;
      void peer
        .ask({ subtype: 'mcp_message', server_name: 'kb', message: waitCall }, 'to-cancel')
        .then(() => (answered = true));
      await started;
      peer.send({ type: 'control_cancel_request', request_id: 'to-cancel' });
      await stopped;
      await peer.askWell({ subtype: 'mcp_message', server_name: 'kb', message: { jsonrpc: '2.0', id: 6, method: 'ping' } });
      assert.equal(answered, false);
    },
    [definition],
  );
});

test('calls run at the same time and answers stay with their calls', async () => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = tool('slow', 'Waits for the other.', { id: z.number() }, async ({ id }) => {
    if (id === 2) release();
    await gate;
    return { content: [{ type: 'text', text: String(id) }] };
  });
  await runtimeDoes(
    async (_peer, send) => {
      const call = (id: number): Promise<any> =>
        send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'slow', arguments: { id } } });
      const [first, second] = await Promise.all([call(1), call(2)]);
      assert.equal(first.result.content[0].text, '1');
      assert.equal(second.result.content[0].text, '2');
    },
    [slow],
  );
});

test('one configuration serves several queries at once', async () => {
  const server = createSdkMcpServer({ name: 'kb', tools: [echo] });
  const run = async (text: string): Promise<void> => {
    const { options, scriptDone } = withPeer(
      async (peer) => {
        await peer.handshake();
        const answer = await peer.askWell({
          subtype: 'mcp_message',
          server_name: 'kb',
          message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text } } },
        });
        assert.equal(answer.mcp_response.result.content[0].text, text);
        await peer.turn();
        await peer.untilClosed();
        peer.exit(0);
      },
      { mcpServers: { kb: server } },
    );
    await collect(query({ prompt: 'hello', options }));
    await scriptDone;
  };
  await Promise.all([run('a'), run('b'), run('c')]);
});
