/**
 * What MCP servers want of the host: user input and OAuth; and news of their state.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, SESSION, type Wire, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

async function runtimeDoes(given: Options, script: (peer: Peer, request: Wire) => Promise<void>): Promise<unknown[]> {
  const { options, scriptDone } = withPeer(async (peer) => {
    await script(peer, await peer.handshake());
    await peer.turn();
    await peer.untilClosed();
    peer.exit(0);
  }, given);
  const messages = await collect(query({ prompt: 'hello', options }));
  await scriptDone;
  return messages;
}

const form = {
  subtype: 'elicitation',
  server_name: 'crm',
  message: 'Which customer?',
  mode: 'form',
  elicitation_id: 'e1',
  requested_schema: { type: 'object', properties: { name: { type: 'string' } } },
  display_name: 'CRM',
};

test('a form: the request is in camelCase, and the answer is passed on', async () => {
  const seen: unknown[] = [];
  await runtimeDoes(
    {
      onElicitation: async (request, { signal }) => {
        assert.ok(signal instanceof AbortSignal);
        seen.push(request);
        return { action: 'accept', content: { name: 'Ada' } };
      },
    },
    async (peer, request) => {
      assert.equal(request['elicitation'], true);
      assert.deepEqual(await peer.askWell(form), { action: 'accept', content: { name: 'Ada' } });
    },
  );
  assert.deepEqual(seen, [
    {
      serverName: 'crm',
      message: 'Which customer?',
      mode: 'form',
      elicitationId: 'e1',
      requestedSchema: form.requested_schema,
      displayName: 'CRM',
    },
  ]);
});

test('nothing, an error, nonsense and a missing callback all cancel', async () => {
  const callbacks: Array<Options['onElicitation']> = [
    () => null,
    () => undefined,
    () => Promise.reject(new Error('closed')),
    () => ({ action: 'maybe' }) as never,
    undefined,
  ];
  for (const onElicitation of callbacks) {
    await runtimeDoes({ onElicitation }, async (peer) => {
      assert.deepEqual(await peer.askWell(form), { action: 'cancel' });
    });
  }
});

const oauth = {
  subtype: 'mcp_oauth_required',
  server_name: 'crm',
  server_url: 'https://crm',
  auth_url: 'https://crm/authorize',
  state: 's',
  scopes: ['read'],
  resource_metadata_url: 'https://crm/meta',
};

test('OAuth: every form of an answer', async () => {
  const token = { access_token: 't', token_type: 'Bearer' };
  const cases: Array<[answer: unknown, expected: unknown]> = [
    [token, { token }],
    [{ token }, { token }],
    [{ callbackUrl: 'app://back?code=1' }, { callbackUrl: 'app://back?code=1' }],
    [{ code: 'c', state: 's' }, { code: 'c', state: 's' }],
    [null, null],
    [undefined, null],
  ];
  for (const [answer, expected] of cases) {
    await runtimeDoes(
      {
        onMcpOAuthRequired: async (request) => {
          assert.deepEqual(request, {
            serverName: 'crm',
            serverUrl: 'https://crm',
            authUrl: 'https://crm/authorize',
            state: 's',
            scopes: ['read'],
            resourceMetadataUrl: 'https://crm/meta',
          });
          return answer as null;
        },
      },
      async (peer, request) => {
        assert.equal(request['mcpOAuth'], true);
        assert.deepEqual(await peer.askWell(oauth), expected);
      },
    );
  }
});

test('changes of state reach the callback and the stream, and a failing callback harms nothing', async () => {
  const seen: string[] = [];
  const servers = [{ name: 'crm', status: 'connected' }];
  const messages = await runtimeDoes(
    {
      onMcpStatusChange: (changed) => {
        seen.push(...changed.map((server) => `${server.name} ${server.status}`));
        throw new Error('an observer that fails');
      },
    },
    async (peer) => {
      peer.send({ type: 'system', subtype: 'mcp_status_change', servers, uuid: 'u', session_id: SESSION });
    },
  );
  assert.deepEqual(seen, ['crm connected']);
  assert.deepEqual(messages[0], { type: 'system', subtype: 'mcp_status_change', servers, uuid: 'u', session_id: SESSION });
});
