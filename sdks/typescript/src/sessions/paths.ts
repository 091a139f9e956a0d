/**
 * Where transcripts are: `<config root>/projects/<key>/<session>.jsonl`, with the key made from the working
 * directory. The runtime makes the same key.
 */
import { execFile } from 'node:child_process';
import { readdir, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const LONGEST_KEY = 200;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text can be the id of a session. */
export function isSessionId(text: string): boolean {
  return UUID.test(text);
}

/** The configuration directory of the runtime. */
export function configRoot(environment: Record<string, string | undefined> = process.env): string {
  return environment['QODER_CONFIG_DIR'] || environment['CLAUDE_CONFIG_DIR'] || join(homedir(), '.qoder');
}

/** The directory with the transcripts of all projects. */
export function projectsDirectory(root: string = configRoot()): string {
  return join(root, 'projects');
}

/** The hash that ends long keys: signed 32 bit, so that every reader computes the same. */
function pathHash(path: string): string {
  let hash = 0;
  for (const character of path) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return Math.abs(hash).toString(36);
}

/** The key of a canonical path. */
export function keyOfPath(path: string): string {
  const key = [...path].map((character) => (/^[A-Za-z0-9]$/.test(character) ? character : '-')).join('');
  return key.length <= LONGEST_KEY ? key : `${key.slice(0, LONGEST_KEY)}-${pathHash(path)}`;
}

/** A directory with its links resolved, or unchanged when it no longer exists. */
export async function canonicalPath(directory: string): Promise<string> {
  const absolute = resolve(directory);
  const real = await realpath(absolute).catch(() => absolute);
  return real.normalize('NFC');
}

/** The key of a directory. */
export async function projectKey(directory: string): Promise<string> {
  return keyOfPath(await canonicalPath(directory));
}

async function entriesOf(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw thrown;
  }
}

/** The directories that hold transcripts: those of one project, or of all. */
export async function projectDirectories(directory?: string): Promise<string[]> {
  const projects = projectsDirectory();
  const names = await entriesOf(projects);
  if (directory === undefined) return names.map((name) => join(projects, name));
  const key = await projectKey(directory);
  // Writers of long keys may hash in other ways; the first 200 characters are the same.
  const prefix = key.length > LONGEST_KEY ? `${key.slice(0, LONGEST_KEY)}-` : undefined;
  return names
    .filter((name) => name === key || (prefix !== undefined && name.startsWith(prefix)))
    .map((name) => join(projects, name));
}

/** A session file. */
export interface SessionFile {
  sessionId: string;
  path: string;
}

/** The session files of a project directory. */
export async function sessionFiles(directory: string): Promise<SessionFile[]> {
  const names = await entriesOf(directory);
  return names
    .filter((name) => name.endsWith('.jsonl') && isSessionId(name.slice(0, -'.jsonl'.length)))
    .map((name) => ({ sessionId: name.slice(0, -'.jsonl'.length), path: join(directory, name) }));
}

/** All work trees of the git repository that a directory is in, itself included. */
export async function workTrees(directory: string): Promise<string[]> {
  try {
    const { stdout } = await promisify(execFile)('git', ['-C', directory, 'worktree', 'list', '--porcelain']);
    const trees = stdout
      .split('\n')
      .filter((line) => line.startsWith('worktree '))
      .map((line) => line.slice('worktree '.length));
    return [...new Set([directory, ...trees])];
  } catch {
    // No repository, or no git: the directory stands alone.
    return [directory];
  }
}
