/**
 * No process of the runtime outlives the program that started it, and none is in the way of its end.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import { query } from '@qoder-ai/qoder-agent-sdk';

import { sandbox } from './support/runtime.js';

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits for a process that must end. */
async function untilGone(pid: number): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (isAlive(pid)) {
    assert.ok(Date.now() < deadline, `process ${pid} is still there`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts a program that opens a session, prints the id of its process, and then does this. */
async function program(
  context: TestContext,
  then: string,
  delayMs = 20_000,
): Promise<{ pid: number; code: number | null }> {
  const project = sandbox(context, [{ text: 'hello', delayMs }]);
  const file = join(dirname(fileURLToPath(import.meta.url)), `program-${process.pid}-${Math.random()}.mjs`);
  writeFileSync(
    file,
    `import { query } from '@qoder-ai/qoder-agent-sdk';
     import { rmSync } from 'node:fs';
     rmSync(${JSON.stringify(file)});
     async function* prompts() {
       yield { type: 'user', message: { role: 'user', content: 'hi' } };
       await new Promise(() => undefined);
     }
     const session = query({ prompt: prompts(), options: ${JSON.stringify(project.options())} });
     const { pid } = await session.initializationResult();
     await session.next();
     console.log(pid);
     ${then}`,
  );
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const [code] = (await once(child, 'exit')) as [number | null];
  return { pid: Number(line), code };
}

test('a program that exits takes the runtime along', async (context) => {
  const { pid, code } = await program(context, 'process.exit(3);');
  assert.equal(code, 3);
  await untilGone(pid);
});

test('a program that is killed, too: the runtime sees the end of its input and ends after the turn', async (context) => {
  const { pid } = await program(context, 'process.kill(process.pid, "SIGKILL");', 500);
  await untilGone(pid);
});

test('a program that closes its session ends by itself', async (context) => {
  const { pid, code } = await program(context, 'await session.close();');
  assert.equal(code, 0);
  assert.equal(isAlive(pid), false);
});

test('leaving the loop during a turn ends the runtime at once', async (context) => {
  const project = sandbox(context, [{ text: 'hello', delayMs: 20_000 }]);
  const session = query({ prompt: 'hi', options: project.options() });
  const { pid } = await session.initializationResult();
  for await (const message of session) {
    assert.equal(message.type, 'system');
    break;
  }
  assert.equal(isAlive(pid as number), false);
});
