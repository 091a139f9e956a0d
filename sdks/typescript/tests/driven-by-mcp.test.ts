/**
 * The `instance` of `createSdkMcpServer()` driven by a client of `@modelcontextprotocol/sdk` instead of the runtime,
 * as programs test their tools.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { createSdkMcpServer, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

let stopped: (() => void) | undefined;

function calculator() {
  return createSdkMcpServer({
    name: 'calc',
    version: '2.1.0',
    tools: [
      tool(
        'add',
        'Adds two numbers.',
        { a: z.number(), b: z.number() },
        async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
        { annotations: { readOnlyHint: true } },
      ),
      tool('fail', 'Fails.', {}, async () => (undefined as unknown as { database: never }).database),
      tool('wait', 'Waits.', {}, (_, { signal }) => {
        return new Promise(() => signal.addEventListener('abort', () => stopped?.()));
      }),
    ],
  });
}

async function connected(instance: { connect(transport: InMemoryTransport): Promise<void> }): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await instance.connect(theirs);
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(ours);
  return client;
}

test('a client in memory lists and calls', async () => {
  const client = await connected(calculator().instance);
  assert.deepEqual(client.getServerVersion(), { name: 'calc', version: '2.1.0' });
  await client.ping();
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name), ['add', 'fail', 'wait']);
  assert.equal(tools[0]?.annotations?.readOnlyHint, true);
  const sum = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } });
  assert.deepEqual(sum['content'], [{ type: 'text', text: '5' }]);
  await client.close();
});

test('failures are those that the runtime sees, with their type', async (context) => {
  const logged = context.mock.method(console, 'error', () => undefined);
  const client = await connected(calculator().instance);
  for (const [name, args, text] of [
    ['fail', {}, /^TypeError: /],
    ['add', { a: 'x', b: 1 }, /Invalid arguments for add/],
    ['absent', {}, /has no tool absent/],
  ] as const) {
    const result = await client.callTool({ name, arguments: args });
    assert.equal(result['isError'], true);
    assert.match((result['content'] as Array<{ text: string }>)[0]!.text, text);
  }
  assert.equal(logged.mock.callCount(), 1, 'only the exception is shown on the console');
  const [what, thrown] = logged.mock.calls[0]!.arguments;
  assert.match(String(what), /the tool fail failed/);
  assert.ok(thrown instanceof TypeError && thrown.stack);
  await client.close();
});

test('one instance serves many clients, and a client that leaves stops its calls', async () => {
  const { instance } = calculator();
  const clients = await Promise.all([connected(instance), connected(instance)]);
  const aborted = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const waiting = clients[0]!.callTool({ name: 'wait', arguments: {} });
  await clients[0]!.listTools();
  await clients[0]!.close();
  await assert.rejects(waiting);
  await aborted;
  const sum = await clients[1]!.callTool({ name: 'add', arguments: { a: 1, b: 1 } });
  assert.deepEqual(sum['content'], [{ type: 'text', text: '2' }]);
  await instance.close?.();
  await assert.rejects(clients[1]!.listTools());
});
