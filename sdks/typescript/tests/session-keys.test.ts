/**
 * The names of project folders follow the same rule as the runtime's.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { getSessionInfo } from '@qoder-ai/qoder-agent-sdk';

const ID = '11111111-1111-4111-8111-111111111111';

const cases: Array<[directory: string, key: string]> = [
  ['/home/u/my project.x', '-home-u-my-project-x'],
  ['/a_b-c/D9', '-a-b-c-D9'],
  ['/srv/Ünï/🦀', '-srv--n---'],
  [`/${'a'.repeat(250)}`, `-${'a'.repeat(199)}-feo44x`],
];

for (const [directory, key] of cases) {
  test(`the folder of ${directory.slice(0, 40)}`, async (context) => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'qoder-sdk-keys-')));
    process.env['QODER_CONFIG_DIR'] = root;
    context.after(() => {
      delete process.env['QODER_CONFIG_DIR'];
      rmSync(root, { recursive: true });
    });
    const folder = join(root, 'projects', key);
    mkdirSync(folder, { recursive: true });
    const line = { type: 'user', uuid: 'u', parentUuid: null, message: { role: 'user', content: 'found' } };
    writeFileSync(join(folder, `${ID}.jsonl`), `${JSON.stringify(line)}\n`);
    assert.equal((await getSessionInfo(ID, { dir: directory }))?.summary, 'found');
  });
}
