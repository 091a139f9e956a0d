/**
 * Packing a fresh checkout: both archives come out, they fit together, and nothing stays behind.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';

const repository = process.env['QODER_SDK_REPOSITORY'];
assert.ok(repository, 'QODER_SDK_REPOSITORY names the repository');

/** Every file below a folder, by its path in it. */
function listing(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[]).sort();
}

/** The text of a file in an archive. */
const inArchive = (archive: string, file: string): string =>
  execFileSync('tar', ['-xzOf', archive, `package/${file}`], { encoding: 'utf8' });

test('a fresh checkout is packed and left as it was', (context) => {
  const base = mkdtempSync(join(tmpdir(), 'qoder-packing-'));
  context.after(() => rmSync(base, { recursive: true, force: true }));
  const checkout = join(base, 'checkout');
  const folder = join(checkout, 'sdks/typescript');
  mkdirSync(folder, { recursive: true });
  cpSync(join(repository, 'sdks/typescript'), folder, {
    recursive: true,
    filter: (path) => !['node_modules', 'dist'].includes(basename(path)),
  });
  const binary = join(base, 'qodercli');
  writeFileSync(binary, '#!/bin/sh\n');
  chmodSync(binary, 0o755);
  const before = listing(checkout);

  const script = join(folder, 'scripts/pack.mjs');
  const printed = execFileSync(process.execPath, [script, '--out', join(base, 'out'), '--binary', binary], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });

  assert.deepEqual(listing(checkout), before);
  const [main, platform] = printed.trim().split('\n') as [string, string];
  assert.deepEqual(listing(join(base, 'out')), [main, platform].map((path) => basename(path)).sort());
  const about = JSON.parse(inArchive(main, 'package.json'));
  const carried = JSON.parse(inArchive(platform, 'package.json'));
  assert.equal(about.optionalDependencies[carried.name], carried.version);
  assert.equal(carried.name, `@qoder-ai/qoder-agent-sdk-${process.platform}-${process.arch}`);
  for (const version of Object.values(about.optionalDependencies)) assert.equal(version, about.version);
  assert.match(inArchive(main, 'dist/index.js'), /export/);
  assert.equal(inArchive(platform, 'bin/qodercli'), readFileSync(binary, 'utf8'));
  for (const archive of [main, platform]) {
    for (const text of ['LICENSE-MIT', 'LICENSE-APACHE']) {
      assert.equal(inArchive(archive, text), readFileSync(join(repository, text), 'utf8'));
    }
  }
});
