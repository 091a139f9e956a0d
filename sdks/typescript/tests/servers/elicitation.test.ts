/**
 * MCP servers that ask the user: what the callback gets and may answer, and hooks that watch. A server made with the
 * official package asks in the middle of a tool call; what it was answered is the tool's result.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';

import { type ElicitationRequest, type HookInput, type Options, query } from '@qoder-ai/qoder-agent-sdk';

import { calledOnce, calling, resultsByTool, rowOf, using } from '../support/live.js';
import { collect } from '../support/runtime.js';
import { asking, askingOver } from '../support/servers.js';

const BOOK = 'mcp__asking__book';
const VISIT = 'mcp__asking__visit';
const MESSAGE = 'A table at Chez Nous: how many are you?';
const remote = await askingOver();

interface Booked {
  action: string;
  data: { guests: number; vegetarian: boolean } | null;
}

/** What the server was told. */
async function booked(context: TestContext, more: Options): Promise<Booked> {
  const options = { mcpServers: { asking: asking() }, ...more };
  return JSON.parse((await calledOnce(context, [BOOK, { place: 'Chez Nous' }], options)).text) as Booked;
}

test('accepting with content', async (context) => {
  const content = { guests: 4, vegetarian: true };
  const given = await booked(context, { onElicitation: async () => ({ action: 'accept', content }) });
  assert.deepEqual(given, { action: 'accept', data: content });
});

for (const action of ['decline', 'cancel'] as const) {
  test(`answering ${action}`, async (context) => {
    assert.deepEqual(await booked(context, { onElicitation: () => ({ action }) }), { action, data: null });
  });
}

for (const nothing of [null, undefined]) {
  test(`${nothing} cancels`, async (context) => {
    assert.equal((await booked(context, { onElicitation: async () => nothing })).action, 'cancel');
  });
}

test('without a callback, and with one that fails, the answer is cancel', async (context) => {
  assert.equal((await booked(context, {})).action, 'cancel');
  const onElicitation = async () => {
    throw new Error('the window is closed');
  };
  assert.equal((await booked(context, { onElicitation })).action, 'cancel');
});

test('content that does not fit the form is not passed on', async (context) => {
  const given = await booked(context, { onElicitation: () => ({ action: 'accept', content: { guests: 'many' } }) });
  assert.equal(given.action, 'cancel');
});

test('the request is a form with camelCase keys, and a signal comes with it', async (context) => {
  const asked: Array<[ElicitationRequest, AbortSignal]> = [];
  await booked(context, {
    onElicitation: (request, { signal }) => {
      asked.push([request, signal]);
      return { action: 'decline' };
    },
  });
  assert.equal(asked.length, 1);
  const [request, signal] = asked[0] as [ElicitationRequest, AbortSignal];
  assert.deepEqual([request.serverName, request.mode, request.message], ['asking', 'form', MESSAGE]);
  assert.equal(request.displayName, 'The asking server');
  const schema = request.requestedSchema as { properties: object; required: string[] };
  assert.deepEqual([Object.keys(schema.properties), schema.required], [['guests', 'vegetarian'], ['guests']]);
  assert.deepEqual(Object.keys(request).filter((key) => key.includes('_') || key === 'subtype'), []);
  assert.equal(signal.aborted, false);
});

test('a server asks during a single query', async (context) => {
  const options = calling(context, [BOOK, { place: 'Chez Nous' }]).options({
    mcpServers: { asking: asking() },
    env: { QODER_MCP_START_WAIT_MS: '60000' },
    onElicitation: () => ({ action: 'accept', content: { guests: 6 } }),
  });
  const given = resultsByTool(await collect(query({ prompt: 'go', options })))[BOOK];
  assert.equal((JSON.parse(given?.text ?? '') as Booked).data?.guests, 6);
});

for (const way of ['sse', 'http'] as const) {
  test(`a server over ${way} asks too`, async (context) => {
    const given = await booked(context, {
      mcpServers: { asking: remote[way] },
      onElicitation: () => ({ action: 'accept', content: { guests: 3 } }),
    });
    assert.equal(given.data?.guests, 3);
  });
}

test('asking to visit an address is refused before it reaches the host', async (context) => {
  let asked = 0;
  const options = calling(context, [VISIT, {}]).options({
    mcpServers: { asking: asking() },
    onElicitation: () => {
      asked += 1;
      return { action: 'accept' };
    },
  });
  const messages = await using(options, async (live) => {
    await live.settled();
    return live.go();
  });
  const given = resultsByTool(messages)[VISIT];
  assert.ok(given?.isError && given.text.includes('Client does not support URL-mode elicitation requests'), given?.text);
  assert.equal(asked, 0);
  const completed = messages.filter((message) => 'subtype' in message && String(message.subtype) === 'elicitation_complete');
  assert.deepEqual(completed, []);
});

/** Hooks that note what they see, and try to decide although they may not. */
function watching(seen: HookInput[]): NonNullable<Options['hooks']> {
  const note = async (input: HookInput) => {
    seen.push(input);
    return {
      hookSpecificOutput: { hookEventName: input.hook_event_name, action: 'accept', content: { guests: 99 } },
    } as never;
  };
  return { Elicitation: [{ hooks: [note] }], ElicitationResult: [{ hooks: [note] }] };
}

test('hooks see the question and the answer, and do not decide', async (context) => {
  const seen: HookInput[] = [];
  const given = await booked(context, {
    hooks: watching(seen),
    onElicitation: () => ({ action: 'accept', content: { guests: 5 } }),
  });
  assert.equal(given.data?.guests, 5);
  const [question, answer] = seen;
  assert.ok(seen.length === 2 && question?.hook_event_name === 'Elicitation' && answer?.hook_event_name === 'ElicitationResult');
  assert.deepEqual([question.mcp_server_name, question.message, question.mode], ['asking', MESSAGE, 'form']);
  assert.ok(question.requested_schema);
  assert.deepEqual([answer.mcp_server_name, answer.action, answer.mode], ['asking', 'accept', 'form']);
  assert.deepEqual(answer.content, { guests: 5 });
});

test('hooks see questions when no one is attached to answer', async (context) => {
  const seen: HookInput[] = [];
  assert.equal((await booked(context, { hooks: watching(seen) })).action, 'cancel');
  assert.deepEqual(seen.map((input) => input.hook_event_name), ['Elicitation', 'ElicitationResult']);
});

test('a server that asks needs no authorization', async (context) => {
  const statuses: string[] = [];
  let look = async (): Promise<void> => undefined;
  const options = calling(context, [BOOK, { place: 'Chez Nous' }]).options({
    mcpServers: { asking: asking() },
    onElicitation: async () => {
      await look();
      return { action: 'decline' };
    },
  });
  await using(options, async (live) => {
    look = async () => void statuses.push(rowOf(await live.rows(), 'asking').status);
    await live.settled();
    await live.go();
    await look();
  });
  assert.deepEqual(statuses, ['connected', 'connected']);
});
