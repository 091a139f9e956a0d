/**
 * Runs the code samples of the product's documents as they stand. Samples are kept in Markdown files under
 * `seeds/samples`, one heading each. A program is a sample in a frame: lines in front of it and behind it that say
 * what the sample leaves out. All programs of a test file are compiled together, with `tsc --strict`, in the project
 * that the package is installed in, and each is run by a process of its own that is configured by its
 * environment alone.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { SDKMessage } from '@qoder-ai/qoder-agent-sdk';

import type { Sandbox } from './runtime.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** A program that takes longer is hanging. */
const PATIENCE_MS = 120_000;

/** The samples of a file by the numbers in their headings. */
export function samples(file: string): Map<number, string> {
  const text = readFileSync(join(root, 'tests/seeds/samples', `${file}.md`), 'utf8');
  const found = text.matchAll(/^## (\d+) [^\n]+\n\n```typescript\n(.*?)^```$/gms);
  return new Map([...found].map(([, number, code]) => [Number(number), code ?? '']));
}

/** What a program that is only imports and a sample leaves out. */
export const IMPORTS = `
import { accessTokenFromEnv, createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';
`;

/** In front of a sample whose messages are to be seen; the folder that it names stands for the one it runs in. */
export const LISTENING = `
import * as sdk from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';
const { accessTokenFromEnv, createSdkMcpServer, tool } = sdk;
const started: sdk.Query[] = [];
const query: typeof sdk.query = ({ prompt, options }) => {
  started.push(sdk.query({ prompt, options: options?.cwd ? { ...options, cwd: process.cwd() } : options }));
  return started[started.length - 1]!;
};
`;

/** Behind it: each session is a line. */
export const LISTENED = `
for (const session of started) {
  const messages: sdk.SDKMessage[] = [];
  for await (const message of session) messages.push(message);
  console.log(JSON.stringify(messages));
}
`;

/** Programs of one test file, compiled. */
export class Programs {
  readonly #folder: string;

  constructor(sources: Record<string, string[]>) {
    this.#folder = mkdtempSync(join(root, 'samples-'));
    mkdirSync(join(this.#folder, 'source'));
    const files = Object.entries(sources).map(([name, parts]) => {
      const path = join(this.#folder, 'source', `${name}.ts`);
      writeFileSync(path, parts.join('\n'));
      return path;
    });
    const options = '--strict --target ES2022 --module NodeNext --moduleResolution NodeNext --types node'.split(' ');
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const where = ['--rootDir', join(this.#folder, 'source'), '--outDir', join(this.#folder, 'compiled')];
    const done = spawnSync(process.execPath, [compiler, ...options, ...where, ...files], { encoding: 'utf8' });
    if (done.status !== 0) this.remove();
    assert.equal(done.status, 0, `the samples do not compile:\n${done.stdout}`);
  }

  /** Runs a program in a project; gives what it printed. On the console's other side it says `complaint`, or nothing. */
  run(name: string, project: Sandbox, complaint = /^$/): string {
    const { model, env } = project.options();
    const done = spawnSync(process.execPath, [join(this.#folder, 'compiled', `${name}.js`)], {
      cwd: project.directory,
      env: { ...process.env, ...env, QODER_MODEL: model },
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.equal(done.status, 0, `${name} ended with ${done.status ?? done.signal}: ${done.stderr}`);
    assert.match(done.stderr, complaint);
    return done.stdout;
  }

  /** Runs a program that listens; gives the messages of its sessions. */
  sessions(name: string, project: Sandbox, complaint?: RegExp): SDKMessage[][] {
    return this.run(name, project, complaint)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as SDKMessage[]);
  }

  /** Removes the files. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
