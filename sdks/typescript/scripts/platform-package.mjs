/**
 * Makes the npm package that carries the runtime for one platform, from a binary:
 *
 *   node scripts/platform-package.mjs --binary FILE --out FOLDER [--platform NAME] [--arch NAME]
 *
 * The package is `@qoder-ai/qoder-agent-sdk-<platform>-<arch>` in the version of this one. It is packed into FOLDER,
 * and the path of the archive is printed. This package lists them as optional dependencies: npm installs the one that
 * fits the machine.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const packageDirectory = resolve(dirname(fileURLToPath(import.meta.url)), '..');

const { values } = parseArgs({
  options: {
    binary: { type: 'string' },
    out: { type: 'string' },
    platform: { type: 'string', default: process.platform },
    arch: { type: 'string', default: process.arch },
  },
});

/** Ends this program with a message. */
function fail(message) {
  console.error(message);
  process.exit(2);
}

if (!values.binary || !values.out) fail('Usage: platform-package.mjs --binary FILE --out FOLDER [--platform NAME] [--arch NAME]');
const binary = resolve(values.binary);
if (!statSync(binary, { throwIfNoEntry: false })?.isFile()) fail(`There is no file ${binary}.`);
const out = resolve(values.out);
mkdirSync(out, { recursive: true });

const { version, license } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8'));
const name = `@qoder-ai/qoder-agent-sdk-${values.platform}-${values.arch}`;
const fileName = values.platform === 'win32' ? 'qodercli.exe' : 'qodercli';

const staging = mkdtempSync(join(tmpdir(), 'qoder-platform-'));
process.on('exit', () => rmSync(staging, { recursive: true, force: true }));
mkdirSync(join(staging, 'bin'));
copyFileSync(binary, join(staging, 'bin', fileName));
chmodSync(join(staging, 'bin', fileName), 0o755);
for (const text of ['LICENSE-MIT', 'LICENSE-APACHE']) copyFileSync(join(packageDirectory, text), join(staging, text));
writeFileSync(
  join(staging, 'package.json'),
  JSON.stringify(
    {
      name,
      version,
      license,
      description: `The runtime qodercli for ${values.platform} on ${values.arch}, used by @qoder-ai/qoder-agent-sdk.`,
      os: [values.platform],
      cpu: [values.arch],
      files: ['bin', 'LICENSE-MIT', 'LICENSE-APACHE'],
      preferUnplugged: true,
    },
    null,
    2,
  ),
);

const packed = spawnSync('npm', ['pack', '--json', '--pack-destination', out], {
  cwd: staging,
  stdio: ['ignore', 'pipe', 'inherit'],
});
if (packed.error) throw packed.error;
if (packed.status !== 0) process.exit(packed.status ?? 1);
const listing = packed.stdout.toString();
console.log(join(out, JSON.parse(listing.slice(listing.indexOf('[')))[0].filename));
