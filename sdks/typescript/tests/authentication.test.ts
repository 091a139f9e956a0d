/**
 * Credentials travel in the `initialize` request and nowhere else.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  accessToken,
  accessTokenFromEnv,
  AuthAccessTokenEnvVarError,
  AuthNotConfiguredError,
  type AuthOptions,
  type Options,
  qodercliAuth,
  query,
} from '@qoder-ai/qoder-agent-sdk';

import { Peer, type Wire, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

async function initializeWith(given: Options): Promise<{ request: Wire; peer: Peer }> {
  let request: Wire = {};
  const { options, peer } = withPeer(async (other) => {
    request = await other.handshake();
    await other.turn();
    await other.untilClosed();
    other.exit(0);
  }, given);
  await collect(query({ prompt: 'hello', options }));
  return { request, peer: peer() };
}

test('a token travels in the handshake only', async () => {
  const { request, peer } = await initializeWith({ auth: accessToken('pat-secret') });
  assert.deepEqual(request['auth'], { type: 'accessToken', accessToken: 'pat-secret' });
  assert.equal(JSON.stringify([peer.spawned.args, peer.spawned.env]).includes('pat-secret'), false);
});

test('a token from the environment: options.env first', async () => {
  process.env['QODER_PERSONAL_ACCESS_TOKEN'] = 'from-process';
  const own = await initializeWith({ auth: accessTokenFromEnv() });
  assert.equal(own.request['auth'].accessToken, 'from-process');
  const given = await initializeWith({
    auth: accessTokenFromEnv(),
    env: { QODER_PERSONAL_ACCESS_TOKEN: 'from-options' },
  });
  assert.equal(given.request['auth'].accessToken, 'from-options');
  delete process.env['QODER_PERSONAL_ACCESS_TOKEN'];
});

test('a token from another variable', async () => {
  const { request } = await initializeWith({ auth: accessTokenFromEnv('MY_PAT'), env: { MY_PAT: 'mine' } });
  assert.equal(request['auth'].accessToken, 'mine');
});

test('an unset variable is named at once', () => {
  assert.throws(
    () => query({ prompt: 'x', options: { auth: accessTokenFromEnv('NO_SUCH_PAT') } }),
    (error: unknown) =>
      error instanceof AuthAccessTokenEnvVarError &&
      error.envVar === 'NO_SUCH_PAT' &&
      error.code === 'auth_access_token_env_var' &&
      error.message.includes('NO_SUCH_PAT'),
  );
});

test('an empty token is refused, and so is an unknown type', () => {
  assert.throws(() => query({ prompt: 'x', options: { auth: accessToken('') } }), AuthNotConfiguredError);
  const auth = { type: 'password' } as unknown as AuthOptions;
  assert.throws(() => query({ prompt: 'x', options: { auth } }), /options\.auth\.type must be/);
});

test('the local login, a plain object, and nothing', async () => {
  assert.deepEqual((await initializeWith({ auth: qodercliAuth() })).request['auth'], { type: 'qodercli' });
  const plain = await initializeWith({ auth: { type: 'accessToken', accessToken: 'pat' } });
  assert.deepEqual(plain.request['auth'], { type: 'accessToken', accessToken: 'pat' });
  assert.equal('auth' in (await initializeWith({})).request, false);
});

test('onAuthExpired is called once, and may give a new token', async () => {
  const reasons: string[] = [];
  const { options } = withPeer(
    async (peer) => {
      assert.equal((await peer.handshake())['authExpired'], true);
      await peer.read();
      const first = await peer.askWell({ subtype: 'auth_expired', reason: 'rejected' });
      assert.deepEqual(first, { access_token: 'fresh' });
      assert.deepEqual(await peer.askWell({ subtype: 'auth_expired', reason: 'again' }), {});
      peer.result();
      peer.state('idle');
      await peer.untilClosed();
      peer.exit(0);
    },
    {
      onAuthExpired: ({ reason }) => {
        reasons.push(reason);
        return { accessToken: 'fresh' };
      },
    },
  );
  await collect(query({ prompt: 'hello', options }));
  assert.deepEqual(reasons, ['rejected']);
});
