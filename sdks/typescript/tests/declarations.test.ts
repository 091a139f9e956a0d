/**
 * What a strict compiler says about a newcomer's project: the declarations of this package with the newest
 * `@types/node`, libraries checked too, and the programs of the pages, as JavaScript and as TypeScript.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const { QODER_SDK_REPOSITORY: repository, QODER_TEST_CONSUMER: consumer } = process.env;
assert.ok(repository && consumer, 'scripts/test-packed.mjs makes a project and names it in QODER_TEST_CONSUMER');

const settings = {
  target: 'ES2022',
  lib: ['ES2022'],
  module: 'NodeNext',
  moduleResolution: 'NodeNext',
  strict: true,
  allowJs: true,
  checkJs: true,
  noEmit: true,
  skipLibCheck: false,
  types: ['node'],
};

/** What the compiler says about these files. */
function complaints(name: string, files: Record<string, string>): string {
  const folder = join(consumer!, name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: settings, include: ['.'] }));
  try {
    execFileSync(join(consumer!, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' });
    return '';
  } catch (thrown) {
    return String((thrown as { stdout?: string }).stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the declarations pass with everything checked', () => {
  const text = [
    "import * as sdk from '@qoder-ai/qoder-agent-sdk';",
    "import * as testing from '@qoder-ai/qoder-agent-sdk/testing';",
    'export async function run(): Promise<void> {',
    "  const session = sdk.query({ prompt: 'hello', options: { settingSources: ['project'] } });",
    '  for await (const message of session) {',
    "    if (message.type === 'system' && message.subtype === 'notice') console.log(message.message, testing);",
    '  }',
    '}',
  ];
  assert.equal(complaints('declarations', { 'all.ts': text.join('\n') }), '');
});

test('a misspelt name is found', () => {
  const found = complaints('misspelt', {
    'bad.ts': "import { querry } from '@qoder-ai/qoder-agent-sdk';\nconsole.log(querry);",
  });
  assert.match(found, /querry/);
});

test('the programs of the pages pass as JavaScript and as TypeScript', () => {
  const files: Record<string, string> = {};
  for (const page of ['docs/quickstart-typescript.md', 'sdks/typescript/README.md']) {
    const blocks = [...readFileSync(join(repository, page), 'utf8').matchAll(/^```(?:js|ts)[^\n]*\n([^]*?)^```$/gm)];
    assert.notEqual(blocks.length, 0, page);
    for (const [number, [, source]] of blocks.entries()) {
      const name = `${page.replaceAll(/[^a-z]+/gi, '-')}-${number}`;
      files[`${name}.mjs`] = source!;
      files[`${name}-typed.mts`] = source!;
    }
  }
  assert.equal(complaints('pages', files), '');
});
