/**
 * An `McpServer` of `@modelcontextprotocol/sdk` as a server of this process.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { query } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { withPeer } from './support/peer.js';
import { collect, resultOf, sandbox } from './support/runtime.js';

function timeServer(): McpServer {
  const server = new McpServer({ name: 'clock', version: '2.0.0' });
  server.registerTool('time', { description: 'Returns the time.', inputSchema: { zone: z.string() } }, async ({ zone }) => ({
    content: [{ type: 'text', text: `noon in ${zone}` }],
  }));
  server.registerTool('forever', { description: 'Never ends.' }, () => new Promise(() => undefined));
  return server;
}

test('a foreign server is driven through the bridge, also when a call is cancelled', async () => {
  const { options, scriptDone } = withPeer(
    async (peer) => {
      await peer.handshake();
      const send = async (message: object): Promise<any> =>
        (await peer.askWell({ subtype: 'mcp_message', server_name: 'clock', message })).mcp_response;
      const introduced = await send({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'peer', version: '1' } },
      });
      assert.equal(introduced.result.serverInfo.name, 'clock');
      await send({ jsonrpc: '2.0', method: 'notifications/initialized' });
      const listed = await send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      assert.deepEqual(
        listed.result.tools.map((entry: { name: string }) => entry.name),
        ['time', 'forever'],
      );
      const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'time', arguments: { zone: 'Oslo' } } };
      assert.equal((await send(call)).result.content[0].text, 'noon in Oslo');
      const stuck = send({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'forever', arguments: {} } });
      await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } });
      assert.equal((await stuck).error.code, -32800);
      await peer.turn();
      await peer.untilClosed();
      peer.exit(0);
    },
    { mcpServers: { clock: { type: 'sdk', name: 'clock', instance: timeServer() } } },
  );
  await collect(query({ prompt: 'hello', options }));
  await scriptDone;
});

test('a foreign server works with the real runtime', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__clock__time', input: { zone: 'Oslo' } }] },
    { when: { lastToolResultContains: 'noon in Oslo' }, text: 'It is noon.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'What time is it?',
      options: {
        ...project.options(),
        mcpServers: { clock: { type: 'sdk', name: 'clock', instance: timeServer() } },
        allowedTools: ['mcp__clock__time'],
      },
    }),
  );
  assert.equal(resultOf(messages).result, 'It is noon.');
});

test('a foreign server can be used again when its session is over', async () => {
  const instance = timeServer();
  for (let round = 0; round < 2; round += 1) {
    const { options, scriptDone } = withPeer(
      async (peer) => {
        await peer.handshake();
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
        const answer = await peer.askWell({ subtype: 'mcp_message', server_name: 'clock', message });
        assert.equal(answer.mcp_response.result.tools.length, 2);
        await peer.turn();
        await peer.untilClosed();
        peer.exit(0);
      },
      { mcpServers: { clock: { type: 'sdk', name: 'clock', instance } } },
    );
    await collect(query({ prompt: 'hello', options }));
    await scriptDone;
  }
});
