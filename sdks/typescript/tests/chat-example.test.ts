/**
 * The chat example works as it is, without a key.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { sandbox } from './support/runtime.js';

test('the chat answers, asks for permission, uses its own tool, and ends', async (context) => {
  const repository = process.env['QODER_SDK_REPOSITORY'];
  assert.ok(repository, 'QODER_SDK_REPOSITORY names the repository');
  const project = sandbox(context, []);
  // Beside this file, so that the installed packages are found.
  const program = join(dirname(fileURLToPath(import.meta.url)), `chat-${process.pid}.mjs`);
  cpSync(join(repository, 'examples/typescript/chat.mjs'), program);
  context.after(() => rmSync(program));
  const environment: NodeJS.ProcessEnv = { ...process.env, QODER_CONFIG_DIR: project.configuration };
  for (const name of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'QODER_PERSONAL_ACCESS_TOKEN']) delete environment[name];
  const chat = spawn(process.execPath, [program], {
    cwd: project.directory,
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  context.after(() => chat.kill('SIGKILL'));
  let output = '';
  chat.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const exited = once(chat, 'exit');
  chat.stdin.write('call mcp__notebook__remember with {"note": "milk"}\n');
  chat.stdin.write('call Bash with {"command": "touch made"}\nn\n');
  chat.stdin.end('exit\n');
  const [code] = (await exited) as [number | null];
  assert.equal(code, 0, output);
  assert.match(output, /I have 1 note\(s\)\./);
  assert.match(output, /\[y\/N\]/);
  assert.match(output, /The user said no\./);
});
