/**
 * Where the runtime is looked for, and what is said when it is not there.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';

import { type Options, QoderCliNotFoundError, QoderCliProcessError, query } from '@qoder-ai/qoder-agent-sdk';

/** A script that answers as a runtime and names itself in its result. */
const RUNTIME = `
const lines = require('node:readline').createInterface({ input: process.stdin });
const send = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
lines.on('line', (line) => {
  const message = JSON.parse(line);
  if (message.type === 'control_request') {
    const response = { protocol_version: 1, qodercli_version: '0.1.0' };
    send({ type: 'control_response', response: { subtype: 'success', request_id: message.request_id, response } });
  } else {
    const result = JSON.stringify([process.env.NAME_OF_RUNTIME || __filename, process.execArgv]);
    send({ type: 'result', subtype: 'success', is_error: false, result, session_id: 's', uuid: 'u' });
  }
});
`;

function folder(context: TestContext): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'qoder-sdk-lookup-')));
  context.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** Writes a runtime that can be started by itself. */
function writeRuntime(path: string, name: string): string {
  mkdirSync(dirname(path), { recursive: true });
  const script = `${path}.source.cjs`;
  writeFileSync(script, RUNTIME);
  writeFileSync(path, `#!/bin/sh\nNAME_OF_RUNTIME='${name}' exec '${process.execPath}' '${script}' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Which runtime answered. */
async function whoAnswers(options: Options): Promise<[name: string, execArgv: string[]]> {
  for await (const message of query({ prompt: 'who?', options })) {
    if (message.type === 'result') return JSON.parse(message.result ?? '') as [string, string[]];
  }
  throw new Error('no runtime answered');
}

const nowhere = { QODERCLI_PATH: undefined, PATH: '/nonexistent' };

test('the option comes first, in both spellings', async (context) => {
  const path = writeRuntime(join(folder(context), 'mine'), 'option');
  const env = { QODERCLI_PATH: '/nonexistent/other' };
  assert.equal((await whoAnswers({ pathToQoderCLIExecutable: path, env }))[0], 'option');
  assert.equal((await whoAnswers({ cliPath: path, env }))[0], 'option');
});

test('then the variable, options.env before the environment', async (context) => {
  const directory = folder(context);
  const given = writeRuntime(join(directory, 'given'), 'given');
  const own = writeRuntime(join(directory, 'own'), 'own');
  const before = process.env['QODERCLI_PATH'];
  process.env['QODERCLI_PATH'] = own;
  try {
    assert.equal((await whoAnswers({}))[0], 'own');
    assert.equal((await whoAnswers({ env: { QODERCLI_PATH: given } }))[0], 'given');
  } finally {
    if (before === undefined) delete process.env['QODERCLI_PATH'];
    else process.env['QODERCLI_PATH'] = before;
  }
});

test('then the platform package, then the PATH', async (context) => {
  const directory = folder(context);
  writeRuntime(join(directory, 'qodercli'), 'path');
  const env = { QODERCLI_PATH: undefined, PATH: directory };
  const name = `@qoder-ai/qoder-agent-sdk-${process.platform}-${process.arch}`;
  const installed = (() => {
    try {
      return createRequire(import.meta.url).resolve(`${name}/bin/qodercli`);
    } catch {
      return undefined;
    }
  })();
  if (installed === undefined) {
    assert.equal((await whoAnswers({ env }))[0], 'path');
  } else {
    const session = query({ prompt: 'hello', options: { env: { ...env, QODER_CONFIG_DIR: directory } } });
    assert.equal(typeof (await session.initializationResult()).pid, 'number');
    await session.close();
  }
});

test('a script is run by Node, with arguments for it', async (context) => {
  const script = join(folder(context), 'runtime.cjs');
  writeFileSync(script, RUNTIME);
  const [name, execArgv] = await whoAnswers({ cliPath: script, executable: 'node', executableArgs: ['--no-warnings'] });
  assert.equal(name, script);
  assert.deepEqual(execArgv, ['--no-warnings']);
});

test('a path that does not hold is named, and no other place is tried', async (context) => {
  writeRuntime(join(folder(context), 'qodercli'), 'path');
  for (const options of [
    { pathToQoderCLIExecutable: '/nonexistent/qodercli' },
    { env: { QODERCLI_PATH: '/nonexistent/qodercli' } },
  ] satisfies Options[]) {
    const error = await query({ prompt: 'x', options })
      .next()
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof QoderCliNotFoundError && error instanceof QoderCliProcessError);
    assert.equal(error.code, 'QODER_CLI_NOT_FOUND');
    assert.match(error.message, /\/nonexistent\/qodercli/);
  }
});

test('nothing anywhere: the message says what to do', async () => {
  const name = `@qoder-ai/qoder-agent-sdk-${process.platform}-${process.arch}`;
  try {
    createRequire(import.meta.url).resolve(`${name}/package.json`);
    return assert.ok(true, 'the platform package is installed, so there is always a runtime');
  } catch {
    const session = query({ prompt: 'x', options: { env: nowhere } });
    await assert.rejects(session.next(), /No qodercli was found.*QODERCLI_PATH/s);
    await assert.rejects(session.initializationResult(), QoderCliNotFoundError);
  }
});

test('a file that cannot be run, and a directory that is not there', async (context) => {
  const directory = folder(context);
  const path = join(directory, 'qodercli');
  writeFileSync(path, 'no program');
  await assert.rejects(query({ prompt: 'x', options: { cliPath: path } }).next(), /could not be started.*EACCES/s);
  const missing = join(directory, 'missing');
  const runtime = writeRuntime(join(directory, 'good'), 'good');
  await assert.rejects(query({ prompt: 'x', options: { cliPath: runtime, cwd: missing } }).next(), /which is no directory/);
});

test('a start of one’s own that throws is reported', async () => {
  const spawnQoderCLIProcess = (): never => {
    throw new Error('no container');
  };
  await assert.rejects(query({ prompt: 'x', options: { spawnQoderCLIProcess } }).next(), /could not be started: no container/);
});

test('a spawn callback gets the path that was named, wherever it leads', async () => {
  let command = '';
  const spawnQoderCLIProcess = (spawned: { command: string }): never => {
    command = spawned.command;
    throw new Error('seen');
  };
  const options: Options = { spawnQoderCLIProcess, cliPath: '/in/the/container/qodercli' };
  await assert.rejects(query({ prompt: 'x', options }).next(), /seen/);
  assert.equal(command, '/in/the/container/qodercli');
});
