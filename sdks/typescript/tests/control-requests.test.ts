/**
 * Every method of a query: what it asks of the runtime, and what it makes of the answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  ControlRequestError,
  ControlRequestTimeoutError,
  createSdkMcpServer,
  type Options,
  type Query,
  query,
  type SDKUserMessage,
  tool,
} from '@qoder-ai/qoder-agent-sdk';

import { type Peer, type Wire, withPeer } from './support/peer.js';

async function* forever(): AsyncGenerator<SDKUserMessage> {
  await new Promise(() => undefined);
}

/** Runs a session at rest with this script after the handshake. */
async function withSession(
  script: (peer: Peer) => Promise<void>,
  use: (session: Query) => Promise<void>,
  given: Options = {},
  handshake: Wire = {},
): Promise<void> {
  const { options, scriptDone } = withPeer(async (peer) => {
    await peer.handshake(handshake);
    await script(peer);
    await peer.untilClosed();
    peer.exit(0);
  }, given);
  const session = query({ prompt: forever(), options });
  try {
    await use(session);
  } finally {
    await session.close();
  }
  await scriptDone;
}

type Case = [name: string, call: (session: Query) => Promise<unknown>, request: Wire, answer: unknown, expected: unknown];

const token = { access_token: 't' };
const model = { value: 'm', displayName: 'M' };

const cases: Case[] = [
  ['interrupt', (q) => q.interrupt(), { subtype: 'interrupt' }, { still_queued: ['a'] }, { still_queued: ['a'], cancelled: [] }],
  ['interrupt, old answer', (q) => q.interrupt(), { subtype: 'interrupt' }, null, { still_queued: [], cancelled: [] }],
  ['cancelAsyncMessage', (q) => q.cancelAsyncMessage('u'), { subtype: 'cancel_async_message', uuid: 'u' }, { cancelled: true }, true],
  ['setPermissionMode', (q) => q.setPermissionMode('plan'), { subtype: 'set_permission_mode', mode: 'plan' }, {}, undefined],
  ['setPermissionMode yolo', (q) => q.setPermissionMode('yolo'), { subtype: 'set_permission_mode', mode: 'bypassPermissions' }, {}, undefined],
  ['setModel', (q) => q.setModel('lite'), { subtype: 'set_model', model: 'lite' }, {}, undefined],
  ['setModel to the default', (q) => q.setModel(), { subtype: 'set_model', model: null }, {}, undefined],
  ['addDirectories', (q) => q.addDirectories(['/a']), { subtype: 'add_directories', directories: ['/a'] }, { added: ['/a'] }, { added: ['/a'] }],
  ['stopTask', (q) => q.stopTask('t'), { subtype: 'stop_task', task_id: 't' }, {}, undefined],
  ['backgroundTasks', (q) => q.backgroundTasks(), { subtype: 'background_tasks' }, { moved: false }, false],
  ['backgroundTasks of a call', (q) => q.backgroundTasks('c'), { subtype: 'background_tasks', tool_use_id: 'c' }, { moved: true }, true],
  [
    'rewindFiles',
    (q) => q.rewindFiles('u', { dryRun: true }),
    { subtype: 'rewind_files', user_message_id: 'u', dry_run: true },
    { canRewind: true, filesChanged: ['a'] },
    { canRewind: true, filesChanged: ['a'] },
  ],
  ['rewindFiles, bare answer', (q) => q.rewindFiles('u'), { subtype: 'rewind_files', user_message_id: 'u' }, {}, { canRewind: true }],
  [
    'rewind',
    (q) => q.rewind('u', { scope: 'conversation' }),
    { subtype: 'rewind', user_message_id: 'u', scope: 'conversation' },
    { canRewind: true },
    { canRewind: true },
  ],
  ['mcpServerStatus', (q) => q.mcpServerStatus(), { subtype: 'mcp_status' }, { mcpServers: [{ name: 'a', status: 'connected' }] }, [{ name: 'a', status: 'connected' }]],
  [
    'setMcpServers',
    (q) => q.setMcpServers({ kb: createSdkMcpServer({ name: 'kb' }), x: { command: 'c' } }),
    { subtype: 'mcp_set_servers', servers: { kb: { type: 'sdk', name: 'kb' }, x: { command: 'c' } } },
    { added: ['kb', 'x'], removed: [], errors: {} },
    { added: ['kb', 'x'], removed: [], errors: {} },
  ],
  ['reconnectMcpServer', (q) => q.reconnectMcpServer('a'), { subtype: 'mcp_reconnect', serverName: 'a' }, {}, undefined],
  ['toggleMcpServer', (q) => q.toggleMcpServer('a', false), { subtype: 'mcp_toggle', serverName: 'a', enabled: false }, {}, undefined],
  [
    'mcpAuthenticate',
    (q) => q.mcpAuthenticate('a', 'app://back'),
    { subtype: 'mcp_authenticate', serverName: 'a', redirectUri: 'app://back' },
    { authUrl: 'https://x', requiresUserAction: true },
    { authUrl: 'https://x', requiresUserAction: true },
  ],
  ['mcpAuthenticate, silent', (q) => q.mcpAuthenticate('a'), { subtype: 'mcp_authenticate', serverName: 'a' }, { requiresUserAction: false }, { requiresUserAction: false }],
  [
    'mcpSubmitOAuthCallbackUrl',
    (q) => q.mcpSubmitOAuthCallbackUrl('a', 'u'),
    { subtype: 'mcp_submit_oauth_callback_url', serverName: 'a', callbackUrl: 'u' },
    {},
    undefined,
  ],
  ['injectMcpToken', (q) => q.injectMcpToken('a', token), { subtype: 'inject_mcp_token', serverName: 'a', token }, {}, undefined],
  ['mcpClearAuth', (q) => q.mcpClearAuth('a'), { subtype: 'mcp_clear_auth', serverName: 'a' }, {}, undefined],
  ['getAvailableModels', (q) => q.getAvailableModels(), { subtype: 'get_available_models' }, { models: [model] }, [model]],
  [
    'getAvailableModels, live',
    (q) => q.getAvailableModels({ fetchStrategy: 'live' }),
    { subtype: 'get_available_models', fetchStrategy: 'live' },
    { models: [] },
    [],
  ],
  ['listByokProviders', (q) => q.listByokProviders(), { subtype: 'get_byok_config' }, { providers: [{ key: 'p' }] }, [{ key: 'p' }]],
  ['getUsageInfo', (q) => q.getUsageInfo(), { subtype: 'get_usage_info' }, { usageInfo: null }, null],
  ['getContextUsage', (q) => q.getContextUsage(), { subtype: 'get_context_usage' }, { totalTokens: 5 }, { totalTokens: 5 }],
  ['accountInfo', (q) => q.accountInfo(), { subtype: 'account_info' }, { account: { email: 'e' } }, { email: 'e' }],
  ['supportedCommands', (q) => q.supportedCommands(), { subtype: 'supported_commands' }, { commands: [{ name: 'c' }] }, [{ name: 'c' }]],
  ['supportedAgents', (q) => q.supportedAgents(), { subtype: 'supported_agents' }, { agents: [{ name: 'a' }] }, [{ name: 'a' }]],
  ['supportedModels', (q) => q.supportedModels(), { subtype: 'get_available_models' }, { models: [model] }, [model]],
  ['listAgents', (q) => q.listAgents(), { subtype: 'list_agents' }, { agents: [{ name: 'a' }] }, [{ name: 'a' }]],
  ['listHooks', (q) => q.listHooks(), { subtype: 'list_hooks' }, { hooks: [{ event: 'Stop' }] }, [{ event: 'Stop' }]],
  ['listSkills', (q) => q.listSkills(), { subtype: 'list_skills' }, { skills: [{ name: 's' }] }, [{ name: 's' }]],
  ['listMemory', (q) => q.listMemory(), { subtype: 'list_memory' }, { files: [{ path: '/m' }] }, [{ path: '/m' }]],
  ['listTools', (q) => q.listTools(), { subtype: 'list_tools' }, { tools: [{ name: 'Read' }] }, [{ name: 'Read' }]],
  [
    'listPermissionRules',
    (q) => q.listPermissionRules(),
    { subtype: 'list_permission_rules' },
    { mode: 'plan', trusted: true, rules: [{ rule: 'Read' }] },
    { mode: 'plan', trusted: true, rules: [{ rule: 'Read' }] },
  ],
  [
    'updatePermissions',
    (q) => q.updatePermissions([{ type: 'setMode', mode: 'plan', destination: 'session' }]),
    { subtype: 'update_permissions', updates: [{ type: 'setMode', mode: 'plan', destination: 'session' }] },
    {},
    undefined,
  ],
  ['setEffort', (q) => q.setEffort('high'), { subtype: 'set_effort', effort: 'high' }, {}, undefined],
  ['setEffort, default', (q) => q.setEffort(null), { subtype: 'set_effort', effort: null }, {}, undefined],
  ['setSessionTitle', (q) => q.setSessionTitle('T'), { subtype: 'set_session_title', title: 'T' }, {}, undefined],
  ['runCommand', (q) => q.runCommand('ls'), { subtype: 'run_command', command: 'ls' }, {}, undefined],
  ['taskOutput', (q) => q.taskOutput('b1'), { subtype: 'task_output', task_id: 'b1' }, { output: 'done' }, 'done'],
  ['reloadMcpServers', (q) => q.reloadMcpServers(), { subtype: 'mcp_reload' }, { added: ['a'] }, { added: ['a'] }],
  ['listPlugins', (q) => q.listPlugins(), { subtype: 'list_plugins' }, { plugins: [{ name: 'p' }] }, [{ name: 'p' }]],
  [
    'reloadPlugins',
    (q) => q.reloadPlugins(),
    { subtype: 'reload_plugins' },
    { error_count: 2 },
    { commands: [], agents: [], plugins: [], mcpServers: [], error_count: 2 },
  ],
  [
    'generateSessionTitle',
    (q) => q.generateSessionTitle('d', { persist: true }),
    { subtype: 'generate_session_title', description: 'd', persist: true },
    { title: 'T' },
    'T',
  ],
  ['setGoalMaxTurns', (q) => q.setGoalMaxTurns(null), { subtype: 'set_goal_max_turns', maxTurns: null }, {}, undefined],
  ['applyFlagSettings', (q) => q.applyFlagSettings({ a: 1 }), { subtype: 'apply_flag_settings', settings: { a: 1 } }, {}, undefined],
];

for (const [name, call, request, answer, expected] of cases) {
  test(`${name}`, () =>
    withSession(
      async (peer) => {
        const line = await peer.read();
        assert.deepEqual(line['request'], request);
        peer.answer(line, answer);
      },
      async (session) => assert.deepEqual(await call(session), expected),
    ));
}

test('what the runtime said at the start needs no further question', () =>
  withSession(
    async () => undefined,
    async (session) => {
      const { qodercli_version, agents } = await session.initializationResult();
      assert.deepEqual([qodercli_version, agents], ['0.1.0', [{ name: 'a', description: 'd' }]]);
    },
    {},
    { agents: [{ name: 'a', description: 'd' }] },
  ));

test('models that cannot be fetched are those of the start', () =>
  withSession(
    async (peer) => peer.answer(await peer.read(), { models: [] }),
    async (session) => assert.deepEqual(await session.supportedModels(), [model]),
    {},
    { models: [model] },
  ));

test('a refusal is raised with the text of the runtime', () =>
  withSession(
    async (peer) => peer.refuse(await peer.read(), 'rewinding is not built yet'),
    async (session) => {
      await assert.rejects(
        session.rewind('u'),
        (error: unknown) =>
          error instanceof ControlRequestError &&
          error.request === 'rewind' &&
          error.message === 'rewinding is not built yet',
      );
    },
  ));

test('lists that may be unavailable: models are empty, providers are null', () =>
  withSession(
    async (peer) => {
      peer.refuse(await peer.expect('get_available_models'), 'no');
      peer.refuse(await peer.expect('get_byok_config'), 'no');
    },
    async (session) => {
      assert.deepEqual(await session.getAvailableModels(), []);
      assert.equal(await session.listByokProviders(), null);
    },
  ));

test('answers may come in any order', () =>
  withSession(
    async (peer) => {
      const first = await peer.expect('set_model');
      const second = await peer.expect('account_info');
      peer.answer(second, { account: { email: 'e' } });
      peer.answer(first);
    },
    async (session) => {
      const [, account] = await Promise.all([session.setModel('m'), session.accountInfo()]);
      assert.equal(account.email, 'e');
    },
  ));

test('no answer in time: the request is cancelled and named', () =>
  withSession(
    async (peer) => {
      const asked = await peer.expect('mcp_reconnect');
      const cancelled = await peer.read();
      assert.deepEqual(cancelled, { type: 'control_cancel_request', request_id: asked['request_id'] });
      peer.answer(asked);
    },
    async (session) => {
      await assert.rejects(
        session.reconnectMcpServer('a'),
        (error: unknown) =>
          error instanceof ControlRequestTimeoutError && error.message.includes('"mcp_reconnect" got no answer within 50 ms'),
      );
    },
    { controlRequestTimeoutMs: 50 },
  ));

test('0 means no limit', () =>
  withSession(
    async (peer) => {
      const line = await peer.expect('set_model');
      await new Promise((resolve) => setTimeout(resolve, 30));
      peer.answer(line);
    },
    (session) => session.setModel('m'),
    { controlRequestTimeoutMs: 0 },
  ));

test('a caller that waits for an answer learns that the session has ended', async () => {
  const { options } = withPeer(async (peer) => {
    await peer.handshake();
    await peer.expect('set_model');
    peer.exit(0);
  });
  const session = query({ prompt: forever(), options });
  await assert.rejects(session.setModel('m'), /The session has ended/);
  assert.deepEqual(await session.next(), { value: undefined, done: true });
});

test('setMcpServers refuses servers of other kinds before it asks', () =>
  withSession(
    async () => undefined,
    async (session) => {
      const servers = { a: { type: 'ws' } } as unknown as Parameters<Query['setMcpServers']>[0];
      await assert.rejects(session.setMcpServers(servers), /setMcpServers\(\)\["a"\]\.type must be/);
    },
  ));

test('servers that the runtime refuses change nothing', () => {
  const named = (text: string): ReturnType<typeof createSdkMcpServer> =>
    createSdkMcpServer({
      name: 'kb',
      tools: [tool('name', 'Returns which server it is.', {}, async () => ({ content: [{ type: 'text', text }] }))],
    });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'name', arguments: {} } };
  const whoAnswers = async (peer: Peer): Promise<string> => {
    const answer = await peer.askWell({ subtype: 'mcp_message', server_name: 'kb', message: call });
    return (answer.mcp_response.result?.content[0].text ?? answer.mcp_response.error.message) as string;
  };
  return withSession(
    async (peer) => {
      const first = await peer.expect('mcp_set_servers');
      assert.equal(await whoAnswers(peer), 'new');
      peer.refuse(first, 'not now');
      const second = await peer.expect('mcp_set_servers');
      assert.equal(await whoAnswers(peer), 'old');
      peer.answer(second, { added: [], removed: ['kb'], errors: {} });
      const last = await peer.expect('account_info');
      assert.match(await whoAnswers(peer), /There is no server kb/);
      peer.answer(last);
    },
    async (session) => {
      await assert.rejects(session.setMcpServers({ kb: named('new') }), /not now/);
      // The old server is still offered while the runtime decides about an empty set.
      await session.setMcpServers({});
      await session.accountInfo();
    },
    { mcpServers: { kb: named('old') } },
  );
});
