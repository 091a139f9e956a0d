/**
 * Makes the archives that a project installs: the package, and the one with the runtime for this platform.
 *
 *   node scripts/pack.mjs --out FOLDER [--binary FILE]
 *
 * The runtime is FILE, or what QODERCLI_BINARY names, or is built with cargo from this checkout. Nothing is left in the
 * checkout but what cargo keeps in its target folder. The paths of the archives are printed.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const packageDirectory = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = resolve(packageDirectory, '../..');

const { values } = parseArgs({ options: { out: { type: 'string' }, binary: { type: 'string' } } });
if (!values.out) {
  console.error('Usage: pack.mjs --out FOLDER [--binary FILE]');
  process.exit(2);
}
const out = resolve(values.out);
mkdirSync(out, { recursive: true });

/** What a command prints; ends this program with its code when it fails. `missing` says what to do without the command. */
function run(command, args, cwd, missing) {
  const outcome = spawnSync(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 28 });
  if (outcome.error) {
    const reason = outcome.error.code === 'ENOENT' ? `\`${command}\` was not found` : `\`${command}\`: ${outcome.error.message}`;
    console.error(`pack.mjs: ${reason}. ${missing}`);
    process.exit(1);
  }
  if (outcome.status !== 0) process.exit(outcome.status ?? 1);
  return outcome.stdout.toString();
}

/** Builds the runtime; cargo says where it is. */
function built() {
  const flags = ['build', '--release', '--locked', '-p', 'qodercli', '--message-format', 'json-render-diagnostics'];
  const missing = 'Install Rust from https://rustup.rs, or set QODERCLI_BINARY to a qodercli that is built already.';
  const lines = run('cargo', flags, repository, missing).split('\n').filter((line) => line.startsWith('{'));
  const made = lines.map((line) => JSON.parse(line)).find(({ executable, target }) => executable && target.name === 'qodercli');
  return made.executable;
}

const staging = mkdtempSync(join(tmpdir(), 'qoder-pack-'));
process.on('exit', () => rmSync(staging, { recursive: true, force: true }));
const left = new Set(['node_modules', 'dist', 'tests', 'benchmarks']);
const copy = join(staging, 'package');
cpSync(packageDirectory, copy, {
  recursive: true,
  filter: (path) => dirname(path) !== packageDirectory || !left.has(basename(path)),
});
const listing = run('npm', ['pack', '--json', '--pack-destination', out], copy, 'npm comes with Node.js; add its folder to PATH.');
console.log(join(out, JSON.parse(listing.slice(listing.indexOf('[')))[0].filename));

const binary = values.binary ?? process.env.QODERCLI_BINARY ?? built();
const platform = join(packageDirectory, 'scripts/platform-package.mjs');
process.stdout.write(run(process.execPath, [platform, '--binary', binary, '--out', out], packageDirectory, ''));
