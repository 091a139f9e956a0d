/**
 * Compiles the package into `dist`, for `npm pack`:
 *
 *   node scripts/build.mjs            # before packing
 *   node scripts/build.mjs --clean    # after it
 *
 * The compiler is the one of `node_modules`. Where there is none, it is installed into a temporary folder, so that
 * packing a fresh checkout needs no step before it and leaves nothing behind.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const packageDirectory = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const output = join(packageDirectory, 'dist');

/** Runs a command; ends this program with its code when it fails. */
function run(command, args, cwd) {
  // Its output would mix with what `npm pack --json` prints.
  const outcome = spawnSync(command, args, { cwd, stdio: ['ignore', 2, 2] });
  if (outcome.error) throw outcome.error;
  if (outcome.status !== 0) process.exit(outcome.status ?? 1);
}

/** A copy of the sources with the packages that they are compiled with. */
function withCompiler() {
  const staging = mkdtempSync(join(tmpdir(), 'qoder-build-'));
  process.on('exit', () => rmSync(staging, { recursive: true, force: true }));
  for (const name of ['src', 'tsconfig.json']) cpSync(join(packageDirectory, name), join(staging, name), { recursive: true });
  const { devDependencies } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8'));
  writeFileSync(join(staging, 'package.json'), JSON.stringify({ private: true, type: 'module', devDependencies }));
  run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--no-json'], staging);
  return staging;
}

rmSync(output, { recursive: true, force: true });
if (!process.argv.includes('--clean')) {
  const compiler = 'node_modules/typescript/bin/tsc';
  const sources = existsSync(join(packageDirectory, compiler)) ? packageDirectory : withCompiler();
  run(process.execPath, [join(sources, compiler), '-p', 'tsconfig.json', '--outDir', output], sources);
}
