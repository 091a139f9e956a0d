/**
 * Sessions with the real runtime: turns, pieces of replies, methods during a session, and errors.
 */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  ControlRequestError,
  createSdkMcpServer,
  QoderCliProcessError,
  query,
  resolveSettings,
  startup,
  tool,
} from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

import { Prompts } from './support/prompts.js';
import { collect, resultOf, sandbox, toolResults } from './support/runtime.js';

test('one task: init, reply and result carry one session', async (context) => {
  const project = sandbox(context, [{ text: 'Hello, “world” 🦀\n\u2028 end' }]);
  const messages = await collect(query({ prompt: 'hi', options: project.options() }));
  assert.deepEqual(
    messages.map((message) => message.type),
    ['system', 'assistant', 'result'],
  );
  assert.equal(new Set(messages.map((message) => message['session_id' as never])).size, 1);
  const result = resultOf(messages);
  assert.equal(result.subtype, 'success');
  assert.equal(result.result, 'Hello, “world” 🦀\n\u2028 end');
  assert.equal(result.num_turns, 1);
});

test('long texts survive both ways', async (context) => {
  const text = 'Zeile “ä” 🦀\n'.repeat(20_000);
  const project = sandbox(context, [{ when: { contains: text.slice(-2000) }, text }]);
  const result = resultOf(await collect(query({ prompt: text, options: project.options() })));
  assert.equal(result.result, text);
});

test('a conversation: each prompt is answered, the state is kept, and the end of the prompts ends it', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'one' }, text: 'First.' },
    { when: { contains: 'two' }, text: 'Second.' },
  ]);
  const prompts = new Prompts();
  prompts.say('one');
  const results: Array<string | undefined> = [];
  const sessions = new Set<string>();
  for await (const message of query({ prompt: prompts, options: project.options() })) {
    if (message.type !== 'result') continue;
    results.push(message.result);
    sessions.add(message.session_id);
    if (results.length === 1) prompts.say('two');
    else prompts.end();
  }
  assert.deepEqual(results, ['First.', 'Second.']);
  assert.equal(sessions.size, 1);
});

test('pieces of a reply come before the whole, and add up to it', async (context) => {
  const project = sandbox(context, [{ text: 'The quick brown fox jumps.', thinking: 'Hm.', chunks: 5 }]);
  const messages = await collect(query({ prompt: 'hi', options: project.options({ includePartialMessages: true }) }));
  let text = '';
  const kinds = new Set<string>();
  let whole = false;
  for (const message of messages) {
    if (message.type === 'stream_event') {
      assert.equal(whole, false);
      kinds.add(message.event.type);
      if (message.event.type === 'content_block_delta' && message.event.delta.type === 'text_delta') {
        text += message.event.delta.text;
      }
    } else if (message.type === 'assistant') {
      whole = true;
    }
  }
  assert.equal(text, 'The quick brown fox jumps.');
  for (const kind of ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_stop']) {
    assert.ok(kinds.has(kind), kind);
  }
});

test('interrupt ends the turn, and the session continues', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'fast' }, text: 'In time.' },
    { when: { contains: 'slow' }, text: 'Too late.', delayMs: 20_000 },
  ]);
  const prompts = new Prompts();
  prompts.say('slow');
  const session = query({ prompt: prompts, options: project.options() });
  context.after(() => session.close());
  const results: unknown[] = [];
  for await (const message of session) {
    if (message.type === 'system' && message.subtype === 'init' && results.length === 0) {
      const receipt = await session.interrupt();
      assert.deepEqual(receipt.still_queued, []);
    }
    if (message.type !== 'result') continue;
    results.push(message.result);
    if (results.length === 1) prompts.say('fast');
    else prompts.end();
  }
  assert.equal(results.length, 2);
  assert.equal(results[1], 'In time.');
});

test('setPermissionMode counts from the next call on', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'before' }, toolCalls: [{ name: 'Write', input: { file_path: 'a.txt', content: 'a' } }] },
    { when: { contains: 'after' }, toolCalls: [{ name: 'Write', input: { file_path: 'b.txt', content: 'b' } }] },
    { text: 'ok', repeat: true },
  ]);
  const prompts = new Prompts();
  prompts.say('before');
  const session = query({ prompt: prompts, options: project.options() });
  context.after(() => session.close());
  let turns = 0;
  for await (const message of session) {
    if (message.type !== 'result') continue;
    turns += 1;
    if (turns === 1) {
      assert.deepEqual(
        message.permission_denials.map((denial) => denial.tool_name),
        ['Write'],
      );
      await session.setPermissionMode('acceptEdits');
      prompts.say('after');
    } else {
      prompts.end();
    }
  }
  assert.equal(existsSync(join(project.directory, 'a.txt')), false);
  assert.equal(existsSync(join(project.directory, 'b.txt')), true);
});

test('setModel counts from the next request on', async (context) => {
  const project = sandbox(context, [{ text: 'From the first book.' }]);
  const other = join(project.configuration, '..', 'other.json');
  writeFileSync(other, JSON.stringify({ replies: [{ text: 'From the other book.', repeat: true }] }));
  const prompts = new Prompts();
  prompts.say('one');
  const session = query({ prompt: prompts, options: project.options() });
  context.after(() => session.close());
  const results: unknown[] = [];
  for await (const message of session) {
    if (message.type !== 'result') continue;
    results.push(message.result);
    if (results.length === 1) {
      await session.setModel(`scripted:${other}`);
      prompts.say('two');
    } else {
      prompts.end();
    }
  }
  assert.deepEqual(results, ['From the first book.', 'From the other book.']);
});

test('servers of this process: state, tools and annotations', async (context) => {
  const project = sandbox(context, [{ text: 'ok' }]);
  const look = tool('look', 'Looks something up and returns it.', { id: z.string() }, async () => ({ content: [] }), {
    annotations: { readOnlyHint: true },
  });
  const session = query({
    prompt: new Prompts(),
    options: project.options({ mcpServers: { kb: createSdkMcpServer({ name: 'kb', tools: [look] }) } }),
  });
  context.after(() => session.close());
  let rows = await session.mcpServerStatus();
  while (rows.some((row) => row.status === 'pending' || row.status === 'connecting')) rows = await session.mcpServerStatus();
  assert.equal(rows[0]?.name, 'kb');
  assert.equal(rows[0]?.status, 'connected');
  assert.equal(rows[0]?.tools?.[0]?.name, 'look');
});

test('setMcpServers replaces the servers of a running session', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'mcp__late__now', input: {} }] },
    { when: { lastToolResultContains: 'noon' }, text: 'Noon.' },
  ]);
  const prompts = new Prompts();
  const now = tool('now', 'Returns the time.', {}, async () => ({ content: [{ type: 'text', text: 'noon' }] }));
  const session = query({ prompt: prompts, options: project.options({ allowedTools: ['mcp__late__now'] }) });
  context.after(() => session.close());
  const changed = await session.setMcpServers({ late: createSdkMcpServer({ name: 'late', tools: [now] }) });
  assert.deepEqual(changed, { added: ['late'], removed: [], errors: {} });
  prompts.say('When?');
  prompts.end();
  assert.equal(resultOf(await collect(session)).result, 'Noon.');
});

test('read-only tools of one batch run together, and results stay with their calls', async (context) => {
  const project = sandbox(context, [
    {
      toolCalls: [
        { name: 'mcp__kb__meet', input: { who: 'a' }, id: 'call_a' },
        { name: 'mcp__kb__meet', input: { who: 'b' }, id: 'call_b' },
      ],
    },
    { text: 'Met.' },
  ]);
  let here = 0;
  let release: () => void = () => undefined;
  const both = new Promise<void>((resolve) => {
    release = resolve;
  });
  const meet = tool(
    'meet',
    'Waits for the other one.',
    { who: z.string() },
    async ({ who }) => {
      here += 1;
      if (here === 2) release();
      await both;
      return { content: [{ type: 'text', text: who }] };
    },
    { annotations: { readOnlyHint: true } },
  );
  const messages = await collect(
    query({
      prompt: 'Meet.',
      options: project.options({
        mcpServers: { kb: createSdkMcpServer({ name: 'kb', tools: [meet] }) },
        allowedTools: ['mcp__kb__meet'],
      }),
    }),
  );
  const results = messages.flatMap((message) =>
    message.type === 'user' && typeof message.message.content !== 'string'
      ? message.message.content.map((block) => (block.type === 'tool_result' ? [block.tool_use_id, toolText(block.content)] : []))
      : [],
  );
  assert.deepEqual(results.sort(), [
    ['call_a', 'a'],
    ['call_b', 'b'],
  ]);
});

function toolText(content: unknown): unknown {
  return Array.isArray(content) ? (content[0] as { text: string }).text : content;
}

test('an error in canUseTool denies the call, and the model sees the text', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'touch made' } }] },
    { when: { lastToolResultContains: 'the approval service is down' }, text: 'I could not ask.' },
  ]);
  const messages = await collect(
    query({
      prompt: 'go',
      options: project.options({
        canUseTool: async () => {
          throw new Error('the approval service is down');
        },
      }),
    }),
  );
  assert.equal(resultOf(messages).result, 'I could not ask.');
  assert.equal(toolResults(messages)[0]?.isError, true);
  assert.equal(existsSync(join(project.directory, 'made')), false);
});

test('too many turns: an error result without an exception', async (context) => {
  const project = sandbox(context, [{ toolCalls: [{ name: 'Glob', input: { pattern: '*' } }], repeat: true }]);
  const result = resultOf(await collect(query({ prompt: 'go', options: project.options({ maxTurns: 2 }) })));
  assert.equal(result.subtype, 'error_max_turns');
  assert.match(JSON.stringify(result.errors), /Raise `maxTurns` or/);
  assert.equal(result.is_error, true);
  assert.equal(result.result, undefined);
});

test('a session that does not exist cannot be resumed', async (context) => {
  const project = sandbox(context, [{ text: 'never' }]);
  const session = query({
    prompt: 'go',
    options: project.options({ resume: '99999999-9999-4999-8999-999999999999' }),
  });
  const outcome = await collect(session).then(
    (messages) => resultOf(messages).errors?.join(' '),
    (error: unknown) => (error instanceof QoderCliProcessError ? error.message : undefined),
  );
  assert.match(outcome ?? '', /99999999-9999-4999-8999-999999999999/);
});

test('resume, continue and fork', async (context) => {
  const project = sandbox(context, [
    { when: { contains: 'first' }, text: '1' },
    { when: { contains: 'second' }, text: '2' },
    { when: { contains: 'third' }, text: '3' },
    { when: { contains: 'fourth' }, text: '4' },
  ]);
  const ask = async (prompt: string, more: Parameters<typeof project.options>[0]) =>
    resultOf(await collect(query({ prompt, options: project.options(more) })));
  const first = await ask('first', {});
  const second = await ask('second', { resume: first.session_id });
  assert.equal(second.session_id, first.session_id);
  const third = await ask('third', { continue: true });
  assert.equal(third.session_id, first.session_id);
  const fourth = await ask('fourth', { resume: first.session_id, forkSession: true });
  assert.notEqual(fourth.session_id, first.session_id);
  assert.deepEqual([first.result, second.result, third.result, fourth.result], ['1', '2', '3', '4']);
});

test('sessions run side by side', async (context) => {
  const project = sandbox(context, [{ text: 'ok' }]);
  const runs = await Promise.all([1, 2, 3].map(() => collect(query({ prompt: 'go', options: project.options() }))));
  assert.equal(new Set(runs.map((messages) => resultOf(messages).session_id)).size, 3);
});

test('a warm start', async (context) => {
  const project = sandbox(context, [{ text: 'warm' }]);
  const warm = await startup({ options: project.options() });
  assert.equal(warm.initialization.qodercli_version, '0.1.0');
  assert.equal(resultOf(await collect(warm.query('go'))).result, 'warm');
});

test('what the runtime refuses is raised with its words', async (context) => {
  const project = sandbox(context, [{ text: 'ok' }]);
  const session = query({ prompt: new Prompts(), options: project.options() });
  context.after(() => session.close());
  await assert.rejects(session.stopTask('no-such-task'), (error: unknown) => {
    assert.ok(error instanceof ControlRequestError);
    assert.notEqual(error.message, '');
    return true;
  });
});

test('the effective settings of a directory', async (context) => {
  const project = sandbox(context, []);
  const { cwd, env } = project.options();
  const { settings, entries } = await resolveSettings({ cwd, env, settings: { model: { name: 'lite' } } });
  assert.equal((settings['model'] as { name: string }).name, 'lite');
  assert.ok(entries.some((entry) => entry.key === 'model.name' && entry.origin !== 'default'));
});

test('forwardSubagentText brings what subagents say', async (context) => {
  for (const forward of [undefined, true]) {
    const project = sandbox(context, [
      {
        when: { turn: 1, purpose: 'main' },
        toolCalls: [{ name: 'Agent', input: { prompt: 'Look.', description: 'look' } }],
      },
      {
        when: { purpose: 'subagent', turn: 1 },
        text: 'Let me see.',
        toolCalls: [{ name: 'Glob', input: { pattern: '*' } }],
      },
      { when: { purpose: 'subagent', turn: 2 }, text: 'I looked.' },
      { text: 'Done.', repeat: true },
    ]);
    const options = project.options({ allowedTools: ['Agent'], ...(forward && { forwardSubagentText: forward }) });
    const messages = await collect(query({ prompt: 'go', options }));
    const kinds = messages.flatMap((message) =>
      message.type === 'assistant' && message.parent_tool_use_id
        ? message.message.content.map((block) => block.type)
        : [],
    );
    assert.deepEqual(kinds, forward ? ['text', 'tool_use', 'text'] : ['tool_use']);
    assert.equal(resultOf(messages).result, 'Done.');
  }
});
