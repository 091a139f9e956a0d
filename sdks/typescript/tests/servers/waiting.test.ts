/**
 * Servers and hosts that take their time: interrupting, leaving, and what the first model call waits for. A question that
 * waits must hold up nothing that does not need its answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { query } from '@qoder-ai/qoder-agent-sdk';

import { Guarded, NO_KEYCHAIN } from '../support/guarded.js';
import { calling, resultsByTool, rowOf, using } from '../support/live.js';
import { collect } from '../support/runtime.js';
import { asking, everything } from '../support/servers.js';

const guarded = await Guarded.start();
const BOOK = 'mcp__asking__book';
const ECHO = 'mcp__every__echo';
const WHOAMI = 'mcp__guarded__whoami';

/** A moment that a test waits for. */
function moment(): { reached: Promise<void>; reach: () => void } {
  let reach: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return { reached, reach };
}

test('interrupting takes a question back', { timeout: 60_000 }, async (context) => {
  const [asked, told] = [moment(), moment()];
  const options = calling(context, [BOOK, { place: 'Chez Nous' }]).options({
    mcpServers: { asking: asking() },
    onElicitation: (_, { signal }) => {
      signal.addEventListener('abort', told.reach);
      asked.reach();
      return told.reached.then(() => ({ action: 'accept', content: { guests: 1 } }));
    },
  });
  await using(options, async (live) => {
    await live.settled();
    const going = live.go();
    await asked.reached;
    await live.query.interrupt();
    await told.reached;
    const end = (await going).at(-1);
    assert.equal(end?.type === 'result' && end.subtype, 'error_during_execution');
    assert.equal(rowOf(await live.rows(), 'asking').status, 'connected');
  });
});

test('a session ends although a question waits', { timeout: 60_000 }, async (context) => {
  const asked = moment();
  const options = calling(context, [BOOK, { place: 'Chez Nous' }]).options({
    mcpServers: { asking: asking() },
    onElicitation: () => {
      asked.reach();
      return new Promise(() => undefined);
    },
  });
  await using(options, async (live) => {
    await live.settled();
    const ended = assert.rejects(live.go());
    await asked.reached;
    await live.query.close();
    await ended;
  });
});

test('a person who does not sign in holds up nothing else', { timeout: 60_000 }, async (context) => {
  const options = calling(context, [ECHO, { message: 'meanwhile' }]).options({
    mcpServers: { guarded: guarded.config, every: everything() },
    env: NO_KEYCHAIN,
    onMcpOAuthRequired: () => new Promise(() => undefined),
  });
  await using(options, async (live) => {
    await live.statusIs('guarded', 'needs-auth');
    await live.statusIs('every', 'connected');
    assert.equal((await live.results())[ECHO]?.text, 'Echo: meanwhile');
  });
});

test('a token that the host has at hand serves the first model call', async (context) => {
  await guarded.accept('at-hand');
  const options = calling(context, [WHOAMI, {}]).options({
    mcpServers: { guarded: guarded.config },
    env: NO_KEYCHAIN,
    onMcpOAuthRequired: () => ({ access_token: 'at-hand' }),
  });
  const messages = await collect(query({ prompt: 'go', options }));
  assert.equal(resultsByTool(messages)[WHOAMI]?.text, 'the host');
});

test('a silent server delays the first model call only for a while', { timeout: 60_000 }, async (context) => {
  const options = calling(context).options({
    mcpServers: { silent: { command: '/bin/sleep', args: ['1000'] } },
    env: { QODER_MCP_START_WAIT_MS: '100' },
  });
  await using(options, async (live) => {
    const end = (await live.go()).at(-1);
    assert.equal(end?.type === 'result' && end.subtype, 'success');
    assert.equal(rowOf(await live.rows(), 'silent').status, 'connecting');
  });
});
