/**
 * Every JavaScript program of these pages that is marked `runnable` runs as it is and prints the lines it says after
 * `//=>`: in a project with nothing but the installed archives, and without any variable of the caller.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { sandbox } from './support/runtime.js';

const { QODER_SDK_REPOSITORY: repository, QODER_TEST_CONSUMER: consumer } = process.env;
assert.ok(repository && consumer, 'scripts/test-packed.mjs makes a project and names it in QODER_TEST_CONSUMER');
const pages = ['quickstart-typescript.md', 'session-stores.md'];
const text = pages.map((name) => readFileSync(join(repository, 'docs', name), 'utf8')).join('\n');
const programs = [...text.matchAll(/^## (.+)$|^```js runnable\n([^]*?)^```$/gm)];

let heading = '';
let count = 0;
for (const [, title, source] of programs) {
  if (title !== undefined) heading = title;
  if (source === undefined) continue;
  count += 1;
  const number = count;
  test(`example: ${heading}`, async (context) => {
    const project = sandbox(context, []);
    const file = join(consumer, `quickstart-${process.pid}-${number}.mjs`);
    writeFileSync(file, source);
    context.after(() => rmSync(file));
    const environment = { HOME: dirname(project.configuration), PATH: '/usr/bin:/bin' };
    const { stdout } = await promisify(execFile)(process.execPath, [file], {
      cwd: project.directory,
      env: environment,
      timeout: 60_000,
    });
    const expected = [...source.matchAll(/^\/\/=> (.*)$/gm)].map((match) => match[1] as string);
    assert.notEqual(expected.length, 0);
    for (const line of expected) assert.ok(stdout.includes(line), `${JSON.stringify(line)} is not in:\n${stdout}`);
  });
}

test('the pages have programs', () => {
  assert.ok(count >= 7);
});
