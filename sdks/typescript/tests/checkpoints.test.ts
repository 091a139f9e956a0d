/**
 * File checkpoints with the real runtime: previewing, going back, and what is refused.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { type Query, query } from '@qoder-ai/qoder-agent-sdk';

import { Prompts } from './support/prompts.js';
import { type Reply, sandbox } from './support/runtime.js';

const first = 'c0ffee00-0000-4000-8000-000000000001';
const second = 'c0ffee00-0000-4000-8000-000000000002';
/** The second message creates a file. */
const replies: Reply[] = [
  { text: 'hello' },
  { toolCalls: [{ name: 'Write', input: { file_path: 'new.txt', content: 'one\ntwo\n' }, id: 'call_1' }] },
  { text: 'done', repeat: true },
];

async function untilResult(session: Query): Promise<void> {
  for (;;) {
    const step = await session.next();
    assert.ok(!step.done, 'the session ended');
    if (step.value.type === 'result') return;
  }
}

test('enableFileCheckpointing and rewindFiles', async (context) => {
  const project = sandbox(context, replies);
  const file = join(project.directory, 'new.txt');
  const prompts = new Prompts();
  const options = project.options({ allowedTools: ['Write'], enableFileCheckpointing: true });
  const session = query({ prompt: prompts, options });
  prompts.say('hi', { uuid: first });
  await untilResult(session);
  prompts.say('write', { uuid: second });
  await untilResult(session);
  assert.ok(existsSync(file));
  const preview = await session.rewindFiles(second, { dryRun: true });
  assert.deepEqual(preview, { canRewind: true, filesChanged: [file], insertions: 0, deletions: 2 });
  assert.ok(existsSync(file));
  assert.equal((await session.rewindFiles('absent', { dryRun: true })).canRewind, false);
  await assert.rejects(session.rewindFiles('absent'), /no file checkpoint found/);
  assert.equal((await session.rewind(second)).messagesRemoved, 4);
  assert.ok(!existsSync(file));
  prompts.end();
  session.close();
});
