/**
 * The session functions on transcript files, written by the test and by the real runtime.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';

import {
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  listSessions,
  listSubagents,
  OptionsError,
  query,
  renameSession,
  SessionNotFoundError,
  tagSession,
} from '@qoder-ai/qoder-agent-sdk';

import { collect, resultOf, sandbox } from './support/runtime.js';

const FIRST = '11111111-1111-4111-8111-111111111111';
const SECOND = '22222222-2222-4222-8222-222222222222';

/** A configuration directory with the transcripts of one project. */
function project(context: TestContext): { dir: string; write(id: string, lines: object[], mtime?: number): string } {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'qoder-sdk-sessions-')));
  const before = process.env['QODER_CONFIG_DIR'];
  process.env['QODER_CONFIG_DIR'] = base;
  context.after(() => {
    if (before === undefined) delete process.env['QODER_CONFIG_DIR'];
    else process.env['QODER_CONFIG_DIR'] = before;
    rmSync(base, { recursive: true });
  });
  const dir = join(base, 'my project.x');
  mkdirSync(dir);
  const transcripts = join(base, 'projects', dir.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(transcripts, { recursive: true });
  return {
    dir,
    write(id, lines, mtime) {
      const path = join(transcripts, `${id}.jsonl`);
      writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      if (mtime !== undefined) utimesSync(path, mtime, mtime);
      return path;
    },
  };
}

function user(uuid: string, parentUuid: string | null, content: unknown, more: object = {}): object {
  return {
    type: 'user',
    uuid,
    parentUuid,
    sessionId: FIRST,
    timestamp: '2026-01-02T03:04:05.678Z',
    cwd: '/work',
    gitBranch: 'main',
    isSidechain: false,
    message: { role: 'user', content },
    ...more,
  };
}

function assistant(uuid: string, parentUuid: string, text: string, more: object = {}): object {
  return {
    type: 'assistant',
    uuid,
    parentUuid,
    sessionId: FIRST,
    timestamp: '2026-01-02T03:04:06.678Z',
    isSidechain: false,
    message: { id: `msg_${uuid}`, role: 'assistant', model: 'm', content: [{ type: 'text', text }] },
    ...more,
  };
}

const conversation = [
  { type: 'session-start', sessionId: FIRST, seq: 1, crc: 'x' },
  user('u1', null, 'Fix the bug'),
  assistant('a1', 'u1', 'Fixed.'),
  user('u2', 'a1', 'Thanks'),
  assistant('a2', 'u2', 'Welcome.'),
];

test('a list shows the newest first, with what is known of each', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, conversation, 1000);
  write(SECOND, [user('u', null, '<command-name>x'), user('v', 'u', 'Second\nprompt'), { type: 'tag', tag: 't', sessionId: SECOND }], 2000);
  write('not-a-session', conversation);
  const sessions = await listSessions({ dir });
  assert.deepEqual(
    sessions.map((session) => session.sessionId),
    [SECOND, FIRST],
  );
  const [second, first] = sessions;
  assert.equal(second?.summary, 'Second prompt');
  assert.equal(second?.tag, 't');
  assert.deepEqual(
    { ...first, fileSize: 0 },
    {
      sessionId: FIRST,
      summary: 'Fix the bug',
      lastModified: 1_000_000,
      fileSize: 0,
      firstPrompt: 'Fix the bug',
      gitBranch: 'main',
      cwd: '/work',
      createdAt: Date.parse('2026-01-02T03:04:05.678Z'),
    },
  );
  assert.equal((await listSessions()).length, 2);
  assert.equal((await listSessions({ dir, limit: 1 })).length, 1);
  assert.equal((await listSessions({ dir, limit: 1, offset: 1 }))[0]?.sessionId, FIRST);
  assert.deepEqual(await listSessions({ dir: '/somewhere/else' }), []);
});

test('includeWorktrees: the sessions of other work trees are listed unless they are not wanted', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, conversation);
  const tree = join(dir, '..', 'tree');
  const who = ['-c', 'user.name=n', '-c', 'user.email=e@example.com'];
  const steps = [
    ['init', '-q'],
    [...who, 'commit', '-q', '--allow-empty', '-m', 'x'],
    ['worktree', 'add', '-q', tree],
  ];
  for (const step of steps) execFileSync('git', ['-C', dir, ...step]);
  const transcripts = join(dir, '..', 'projects', tree.replace(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(transcripts, { recursive: true });
  writeFileSync(join(transcripts, `${SECOND}.jsonl`), conversation.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const listed = (await listSessions({ dir })).map(({ sessionId }) => sessionId);
  assert.deepEqual(listed.sort(), [FIRST, SECOND]);
  const alone = await listSessions({ dir, includeWorktrees: false });
  assert.deepEqual(
    alone.map(({ sessionId }) => sessionId),
    [FIRST],
  );
});

test('a directory is found through a link, too', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, conversation);
  const link = `${dir}-link`;
  symlinkSync(dir, link);
  assert.equal((await listSessions({ dir: link })).length, 1);
});

test('side chains, empty files and sessions without a prompt are not listed', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, [user('u', null, 'inside', { isSidechain: true })]);
  write(SECOND, []);
  write('33333333-3333-4333-8333-333333333333', [{ type: 'session-start' }]);
  assert.deepEqual(await listSessions({ dir }), []);
  assert.equal(await getSessionInfo(FIRST, { dir }), undefined);
  assert.equal(await getSessionInfo(SECOND, { dir }), undefined);
});

test('a session whose first prompt is very long is listed, and the prompt is cut', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, [user('u1', null, 'word '.repeat(50_000)), assistant('a1', 'u1', 'x'.repeat(100_000))]);
  const [session] = await listSessions({ dir });
  assert.match(session?.summary ?? '', /^word word .*…$/);
  assert.ok((session?.summary.length ?? 0) <= 201);
});

test('titles and tags: the last one counts, also far from the first lines', async (context) => {
  const { dir, write } = project(context);
  const filler = Array.from({ length: 40 }, (_, index) => ({ type: 'filler', text: `${index}`.repeat(4000) }));
  const path = write(FIRST, [...conversation, ...filler]);
  await renameSession(FIRST, '  A title  ', { dir });
  await renameSession(FIRST, 'A better title', { dir });
  await tagSession(FIRST, 'exp-1', { dir });
  const info = await getSessionInfo(FIRST, { dir });
  assert.equal(info?.customTitle, 'A better title');
  assert.equal(info?.summary, 'A better title');
  assert.equal(info?.firstPrompt, 'Fix the bug');
  assert.equal(info?.tag, 'exp-1');
  assert.match(readFileSync(path, 'utf8'), /\{"type":"tag","tag":"exp-1","sessionId":"1{8}/);
  await tagSession(FIRST, null, { dir });
  assert.equal((await getSessionInfo(FIRST, { dir }))?.tag, undefined);
  await assert.rejects(renameSession(FIRST, '  ', { dir }), OptionsError);
});

test('what tools are called with does not name a session, nor does a background task', async (context) => {
  const { dir, write } = project(context);
  const input = { customTitle: 'evil', aiTitle: 'evil', gitBranch: 'evil', summary: 'evil' };
  write(FIRST, [
    user('u1', null, 'Hello'),
    assistant('a1', 'u1', '', { message: { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'Make', input }] } }),
    { type: 'task-end', taskId: 'b', summary: 'Background command was stopped' },
  ]);
  const info = await getSessionInfo(FIRST, { dir });
  assert.deepEqual([info?.summary, info?.customTitle, info?.gitBranch], ['Hello', undefined, 'main']);
});

test('titles, tags and parts that cannot be are refused', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, conversation);
  await assert.rejects(renameSession(FIRST, 'x'.repeat(1001), { dir }), /has 1001 characters, and 1000 are accepted/);
  await assert.rejects(tagSession(FIRST, ' ', { dir }), OptionsError);
  await assert.rejects(forkSession(FIRST, { dir, title: '' }), OptionsError);
  await assert.rejects(listSessions({ dir, limit: -1 }), OptionsError);
  await assert.rejects(getSessionMessages(FIRST, { dir, offset: -1 }), OptionsError);
  await renameSession(FIRST, '\u001b'.repeat(1000), { dir });
  assert.equal((await getSessionInfo(FIRST, { dir }))?.customTitle?.length, 1000);
});

test('a title that the runtime found counts until the caller gives one', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, [...conversation, { type: 'ai-title', aiTitle: 'Found', sessionId: FIRST }]);
  assert.equal((await getSessionInfo(FIRST, { dir }))?.customTitle, 'Found');
});

test('a fork leaves out what the conversation went back from', async (context) => {
  const { dir, write } = project(context);
  const path = write(FIRST, [
    user('u1', null, 'before the new beginning'),
    { type: 'cut', at: null, messages: 0 },
    user('u2', null, 'kept'),
    assistant('a2', 'u2', 'yes'),
    user('u3', 'a2', 'taken back'),
    { type: 'cut', at: 'a2', messages: 2 },
    user('u4', 'a2', 'after'),
  ]);
  const kinds = async (upToMessageId?: string): Promise<unknown[]> => {
    const { sessionId } = await forkSession(FIRST, { dir, upToMessageId });
    const lines = readFileSync(path.replace(FIRST, sessionId), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    return lines.filter((line) => line.forkedFrom).map((line) => line.forkedFrom.messageUuid);
  };
  assert.deepEqual(await kinds(), ['u2', 'a2', 'u4']);
  assert.deepEqual(await kinds('u3'), ['u2', 'a2', 'u3']);
});

test('texts in files of their own are put back, and a fork does not depend on them', async (context) => {
  const { dir, write } = project(context);
  const blobs = { '/message/content': 'f00', '/message/absent/0': 'f00' };
  const path = write(FIRST, [user('u1', null, '(too long)', { blobs }), assistant('a1', 'u1', 'Yes')]);
  const folder = join(path.slice(0, -'.jsonl'.length), 'blobs');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'f00'), 'very long');
  const { sessionId } = await forkSession(FIRST, { dir });
  for (const id of [FIRST, sessionId]) {
    const [first] = await getSessionMessages(id, { dir });
    assert.deepEqual(first?.message, { role: 'user', content: 'very long' });
  }
  assert.doesNotMatch(readFileSync(path.replace(FIRST, sessionId), 'utf8'), /blobs/);
});

test('messages are the chain from the last one', async (context) => {
  const { dir, write } = project(context);
  write(FIRST, [
    ...conversation,
    user('dead', 'u1', 'A branch that was left'),
    { type: 'system', uuid: 's1', parentUuid: 'a2', subtype: 'compact_boundary', compact_metadata: { trigger: 'auto' } },
    user('m', 's1', 'hidden', { isMeta: true }),
    user('u3', 'm', 'More'),
  ]);
  const messages = await getSessionMessages(FIRST, { dir });
  assert.deepEqual(
    messages.map((message) => message.uuid),
    ['u1', 'a1', 'u2', 'a2', 'u3'],
  );
  assert.deepEqual(messages[0], {
    type: 'user',
    uuid: 'u1',
    session_id: FIRST,
    message: { role: 'user', content: 'Fix the bug' },
    parent_tool_use_id: null,
    timestamp: '2026-01-02T03:04:05.678Z',
  });
  const withSystem = await getSessionMessages(FIRST, { dir, includeSystemMessages: true });
  assert.ok(withSystem.some((message) => message.subtype === 'compact_boundary'));
  const page = await getSessionMessages(FIRST, { dir, offset: 1, limit: 2 });
  assert.deepEqual(
    page.map((message) => message.uuid),
    ['a1', 'u2'],
  );
});

test('calls that were made together are all there, and a summary replaces what was before', async (context) => {
  const { dir, write } = project(context);
  const result = (id: string): unknown => [{ type: 'tool_result', tool_use_id: id, content: 'ok' }];
  write(FIRST, [
    user('old', null, 'Before'),
    user('u1', null, 'Summary', { isCompactSummary: true }),
    assistant('a1', 'u1', 'one', { message: { id: 'same', role: 'assistant', content: [] } }),
    assistant('a2', 'a1', 'two', { message: { id: 'same', role: 'assistant', content: [] } }),
    user('r1', 'a1', result('c1')),
    user('r2', 'a2', result('c2')),
    assistant('a3', 'r2', 'Done.'),
  ]);
  const messages = await getSessionMessages(FIRST, { dir });
  assert.deepEqual(
    messages.map((message) => message.uuid),
    ['u1', 'a1', 'a2', 'r1', 'r2', 'a3'],
  );
});

test('broken lines are skipped', async (context) => {
  const { dir, write } = project(context);
  const path = write(FIRST, conversation);
  writeFileSync(path, `${readFileSync(path, 'utf8')}{"type":"assis`);
  assert.equal((await getSessionMessages(FIRST, { dir })).length, 4);
});

test('a fork has new ids, says where it comes from, and leaves the original alone', async (context) => {
  const { dir, write } = project(context);
  const path = write(FIRST, [
    ...conversation.slice(0, 3),
    { type: 'progress', uuid: 'p1', parentUuid: 'a1' },
    user('u2', 'p1', 'Thanks'),
    assistant('a2', 'u2', 'Welcome.'),
  ]);
  const before = readFileSync(path, 'utf8');
  const { sessionId } = await forkSession(FIRST, { dir, upToMessageId: 'u2', title: 'Fork' });
  assert.equal(readFileSync(path, 'utf8'), before);
  const messages = await getSessionMessages(sessionId, { dir });
  assert.deepEqual(
    messages.map((message) => (message.message as { content: unknown }).content),
    ['Fix the bug', [{ type: 'text', text: 'Fixed.' }], 'Thanks'],
  );
  assert.ok(messages.every((message) => message.session_id === sessionId && !['u1', 'a1', 'u2'].includes(message.uuid)));
  const lines = readFileSync(path.replace(FIRST, sessionId), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines[0].forkedFrom, { sessionId: FIRST, messageUuid: 'u1' });
  assert.equal(lines.at(-1).customTitle, 'Fork');
  assert.equal(statSync(path.replace(FIRST, sessionId)).mode & 0o777, 0o600);
  await assert.rejects(forkSession(FIRST, { dir, upToMessageId: 'nowhere' }), /has no message nowhere/);
});

test('agents of a session', async (context) => {
  const { dir, write } = project(context);
  const path = write(FIRST, conversation);
  const folder = join(path.replace('.jsonl', ''), 'subagents', 'deeper');
  mkdirSync(folder, { recursive: true });
  const lines = [user('x1', null, 'Task', { isSidechain: true, agentId: 'b7' }), assistant('x2', 'x1', 'Answer', { isSidechain: true })];
  writeFileSync(join(folder, 'agent-b7.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  writeFileSync(join(folder, 'agent-b7.meta.json'), '{}');
  assert.deepEqual(await listSubagents(FIRST, { dir }), ['b7']);
  const messages = await getSubagentMessages(FIRST, 'b7', { dir });
  assert.deepEqual(
    messages.map((message) => message.uuid),
    ['x1', 'x2'],
  );
  await assert.rejects(getSubagentMessages(FIRST, 'c9', { dir }), /has no agent c9/);
});

test('a session is deleted with what belongs to it', async (context) => {
  const { dir, write } = project(context);
  const path = write(FIRST, conversation);
  mkdirSync(path.replace('.jsonl', ''));
  await deleteSession(FIRST, { dir });
  assert.equal(statSync(path, { throwIfNoEntry: false }), undefined);
  assert.equal(statSync(path.replace('.jsonl', ''), { throwIfNoEntry: false }), undefined);
  await assert.rejects(deleteSession(FIRST, { dir }), SessionNotFoundError);
});

test('ids that are none are refused, whatever is asked', async (context) => {
  const { dir } = project(context);
  for (const ask of [getSessionInfo, getSessionMessages, forkSession, deleteSession, listSubagents]) {
    await assert.rejects(ask('../../etc/passwd', { dir }), /no id of a session/);
  }
  assert.equal(await getSessionInfo(FIRST, { dir }), undefined);
  await assert.rejects(getSessionMessages(FIRST, { dir }), SessionNotFoundError);
});

test('sessions of the real runtime are read, named, forked and resumed', async (context) => {
  const work = sandbox(context, [
    { when: { contains: 'first' }, text: 'One.' },
    { when: { contains: 'second' }, text: 'Two.' },
  ]);
  const before = process.env['QODER_CONFIG_DIR'];
  process.env['QODER_CONFIG_DIR'] = work.configuration;
  context.after(() => {
    if (before === undefined) delete process.env['QODER_CONFIG_DIR'];
    else process.env['QODER_CONFIG_DIR'] = before;
  });
  const dir = work.directory;
  const first = resultOf(await collect(query({ prompt: 'first', options: { ...work.options(), sessionId: FIRST } })));
  assert.equal(first.session_id, FIRST);
  assert.equal((await getSessionInfo(FIRST, { dir }))?.firstPrompt, 'first');
  await renameSession(FIRST, 'Named', { dir });
  const fork = await forkSession(FIRST, { dir });
  const second = resultOf(
    await collect(query({ prompt: 'second', options: { ...work.options(), resume: fork.sessionId } })),
  );
  assert.equal(second.result, 'Two.');
  assert.equal(second.session_id, fork.sessionId);
  const messages = await getSessionMessages(fork.sessionId, { dir });
  assert.deepEqual(
    messages.map((message) => message.type),
    ['user', 'assistant', 'user', 'assistant'],
  );
  assert.equal((await getSessionMessages(FIRST, { dir })).length, 2);
  assert.equal((await getSessionInfo(FIRST, { dir }))?.summary, 'Named');
});
