/**
 * OAuth for MCP servers, both ways: what the runtime asks the host for, and what the host drives itself. The server and
 * its authorization server are made with the official package.
 */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import {
  ControlRequestError,
  type McpOAuthRequest,
  type McpOAuthResolution,
  type McpServerStatus,
  type Options,
} from '@qoder-ai/qoder-agent-sdk';

import { Guarded, NO_KEYCHAIN } from '../support/guarded.js';
import { calling, type Given, type Live, rowOf, statuses, using } from '../support/live.js';
import { everything } from '../support/servers.js';

const guarded = await Guarded.start();
const WHOAMI = 'mcp__guarded__whoami';
const BACK = 'http://localhost:4999/back';

function project(context: TestContext) {
  const made = calling(context, [WHOAMI, {}]);
  const options = (more: Options = {}) =>
    made.options({ mcpServers: { guarded: guarded.config }, env: NO_KEYCHAIN, ...more });
  return { ...made, options };
}

/** The row of the server, and what its tool said, when the callback answers like this. */
async function inbound(
  context: TestContext,
  answer: (request: McpOAuthRequest) => Promise<McpOAuthResolution>,
  more: Options = {},
): Promise<[McpServerStatus, Given | undefined]> {
  const options = project(context).options({ onMcpOAuthRequired: answer, ...more });
  return using(options, async (live) => {
    const rows = await live.until((all) => ['connected', 'failed'].includes(rowOf(all, 'guarded').status));
    return [rowOf(rows, 'guarded'), (await live.results())[WHOAMI]];
  });
}

const consent = async (request: McpOAuthRequest) => ({ callbackUrl: await guarded.consent(request.authUrl) });

test('inbound: the request has what a host needs', async (context) => {
  const requests: McpOAuthRequest[] = [];
  await inbound(context, async (request) => {
    requests.push(request);
    return consent(request);
  });
  assert.equal(requests.length, 1);
  const [request] = requests as [McpOAuthRequest];
  assert.deepEqual([request.serverName, request.serverUrl, request.scopes], ['guarded', guarded.url, ['notes']]);
  assert.match(request.resourceMetadataUrl ?? '', /oauth-protected-resource\/mcp$/);
  const parameters = new URL(request.authUrl).searchParams;
  assert.equal(parameters.get('state'), request.state);
  assert.equal(parameters.get('code_challenge_method'), 'S256');
  assert.equal(parameters.get('resource'), guarded.url);
  const registered = (await guarded.seen('registration')).at(-1);
  assert.deepEqual(registered?.['redirect_uris'], [parameters.get('redirect_uri')]);
});

test('inbound: a token of the host is injected, bare or wrapped', async (context) => {
  await guarded.accept('token-of-the-host');
  const token = { access_token: 'token-of-the-host', token_type: 'Bearer', expires_in: 3600 };
  for (const answer of [token, { token }]) {
    const [row, given] = await inbound(context, async () => answer);
    assert.deepEqual([row.status, given?.text], ['connected', 'the host']);
  }
});

test('inbound: a callback URL is exchanged', async (context) => {
  const [row, given] = await inbound(context, consent);
  assert.deepEqual([row.status, row.tools?.map((each) => each.name), given?.text], ['connected', ['whoami'], 'a client']);
});

test('inbound: code and state are exchanged', async (context) => {
  const [row, given] = await inbound(context, async (request) => {
    const { searchParams } = new URL(await guarded.consent(request.authUrl));
    return { code: searchParams.get('code') ?? '', state: searchParams.get('state') ?? '' };
  });
  assert.deepEqual([row.status, given?.text], ['connected', 'a client']);
});

test('inbound: null makes the server fail, and harms no other', async (context) => {
  const mcpServers = { guarded: guarded.config, every: everything() };
  const options = project(context).options({ mcpServers, onMcpOAuthRequired: () => null });
  await using(options, async (live) => {
    const rows = await live.until((all) => Object.values(all).every((row) => ['connected', 'failed'].includes(row.status)));
    assert.deepEqual(statuses(rows), { every: 'connected', guarded: 'failed' });
    assert.ok(rowOf(rows, 'guarded').error);
  });
});

test('inbound: a state of another flow is refused', async (context) => {
  const [row, given] = await inbound(context, async () => ({ code: 'stolen', state: 'not-ours' }));
  assert.deepEqual([row.status, given?.isError], ['failed', true]);
});

test('inbound: no hooks for elicitation are fired', async (context) => {
  const fired: string[] = [];
  const note = async (input: { hook_event_name: string }) => {
    fired.push(input.hook_event_name);
    return {};
  };
  const hooks = Object.fromEntries(['Elicitation', 'ElicitationResult', 'PreToolUse'].map((event) => [event, [{ hooks: [note] }]]));
  await inbound(context, consent, { hooks });
  assert.deepEqual(fired, ['PreToolUse']);
});

test('inbound: a refused access token is renewed without asking', async (context) => {
  let asked = 0;
  const options = project(context).options({
    onMcpOAuthRequired: (request) => {
      asked += 1;
      return consent(request);
    },
  });
  const before = (await guarded.seen('renewal')).length;
  await using(options, async (live) => {
    await live.statusIs('guarded', 'connected');
    await guarded.forget();
    assert.equal((await live.results())[WHOAMI]?.text, 'a client');
  });
  assert.deepEqual([asked, (await guarded.seen('renewal')).length - before], [1, 1]);
});

async function signIn(live: Live, redirectUri?: string): Promise<string> {
  const begun = await live.query.mcpAuthenticate('guarded', redirectUri);
  assert.equal(begun.requiresUserAction, true);
  await live.query.mcpSubmitOAuthCallbackUrl('guarded', await guarded.consent(begun.authUrl));
  return begun.authUrl ?? '';
}

test('outbound: signing in before the first message, and renewing in silence', async (context) => {
  await using(project(context).options(), async (live) => {
    assert.deepEqual(statuses(await live.settled()), { guarded: 'needs-auth' });
    await signIn(live);
    assert.deepEqual(rowOf(await live.rows(), 'guarded').tools?.map((each) => each.name), ['whoami']);
    assert.deepEqual(await live.query.mcpAuthenticate('guarded'), { requiresUserAction: false });
    assert.equal((await live.results())[WHOAMI]?.text, 'a client');
  });
});

for (const uri of [BACK, 'my-application://signed-in']) {
  test(`outbound: the redirect URI can be ${uri}`, async (context) => {
    await using(project(context).options(), async (live) => {
      await live.settled();
      assert.equal(new URL(await signIn(live, uri)).searchParams.get('redirect_uri'), uri);
      assert.equal(rowOf(await live.rows(), 'guarded').status, 'connected');
    });
    assert.equal((await guarded.seen('authorization')).at(-1)?.['redirect_uri'], uri);
  });
}

test('outbound: a browser that comes back by itself signs in', async (context) => {
  await using(project(context).options(), async (live) => {
    await live.settled();
    const { authUrl } = await live.query.mcpAuthenticate('guarded');
    assert.ok(authUrl);
    assert.equal((await fetch(authUrl)).status, 200);
    await live.statusIs('guarded', 'connected');
  });
});

test('outbound: a callback that belongs to nothing is refused', async (context) => {
  await using(project(context).options(), async (live) => {
    await live.settled();
    await live.query.mcpAuthenticate('guarded', BACK);
    const stolen = live.query.mcpSubmitOAuthCallbackUrl('guarded', `${BACK}?code=stolen&state=not-ours`);
    await assert.rejects(stolen, ControlRequestError);
    assert.notEqual(rowOf(await live.rows(), 'guarded').status, 'connected');
  });
});

test('outbound: a token of the host is injected', async (context) => {
  await guarded.accept('another-of-the-host');
  await using(project(context).options(), async (live) => {
    await live.settled();
    await assert.rejects(live.query.injectMcpToken('guarded', { access_token: 'made-up' }), ControlRequestError);
    await live.query.injectMcpToken('guarded', { access_token: 'another-of-the-host', token_type: 'Bearer' });
    assert.equal((await live.results())[WHOAMI]?.text, 'the host');
  });
});

test('outbound: signing out deletes what was kept for its owner only, and the next call needs a sign-in', async (context) => {
  const made = project(context);
  const file = join(made.configuration, 'mcp-oauth-tokens.json');
  await using(made.options(), async (live) => {
    await live.settled();
    await signIn(live);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(readFileSync(file, 'utf8').includes(guarded.url));
    await live.query.mcpClearAuth('guarded');
    assert.ok(!readFileSync(file, 'utf8').includes(guarded.url));
    assert.equal((await live.results())[WHOAMI]?.isError, true);
    assert.equal(rowOf(await live.rows(), 'guarded').status, 'needs-auth');
  });
});

test('outbound: the next session is signed in', async (context) => {
  const made = project(context);
  await using(made.options(), async (live) => {
    await live.settled();
    await signIn(live);
  });
  const again = await using(made.options(), async (live) => statuses(await live.settled()));
  assert.deepEqual(again, { guarded: 'connected' });
});
