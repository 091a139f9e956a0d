/**
 * Finds the runtime: the option, `QODERCLI_PATH`, the platform package that is installed beside this one, and
 * the `PATH`, in this order. A place that was named and does not hold is an error; no other one is tried.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, extname, isAbsolute, join, resolve } from 'node:path';

import { QoderCliNotFoundError } from './errors.js';
import type { CheckedOptions } from './options/validate.js';

const BINARY_NAME = process.platform === 'win32' ? 'qodercli.exe' : 'qodercli';
const SCRIPT_EXTENSIONS = new Set(['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']);

/** What is to be started: a command and what precedes the runtime's own arguments. */
export interface Executable {
  command: string;
  leadingArguments: string[];
}

/** The package that carries the binary for a platform. */
export function platformPackageName(platform: string = process.platform, arch: string = process.arch): string {
  return `@qoder-ai/qoder-agent-sdk-${platform}-${arch}`;
}

/** Finds the runtime for these options. */
export function findExecutable(options: CheckedOptions): Executable {
  const path = findPath(options);
  if (!SCRIPT_EXTENSIONS.has(extname(path).toLowerCase())) return { command: path, leadingArguments: [] };
  const executable = options.executable ?? defaultScriptRunner();
  // The running Node is surely there; one on the PATH may not be.
  const command = executable === 'node' && !('bun' in process.versions) ? process.execPath : executable;
  return { command, leadingArguments: [...(options.executableArgs ?? []), path] };
}

/**
 * What a start function of the caller gets: a path that was named is meant for the place where it will run, which need
 * not be this machine, and a runtime that is not found here may be there.
 */
export function proposeExecutable(options: CheckedOptions): Executable {
  if (options.pathToQoderCLIExecutable !== undefined) {
    return { command: options.pathToQoderCLIExecutable, leadingArguments: [] };
  }
  try {
    return findExecutable(options);
  } catch {
    return { command: BINARY_NAME, leadingArguments: [] };
  }
}

function defaultScriptRunner(): 'node' | 'bun' | 'deno' {
  if ('bun' in process.versions) return 'bun';
  if ('deno' in process.versions) return 'deno';
  return 'node';
}

function findPath(options: CheckedOptions): string {
  const named = options.pathToQoderCLIExecutable;
  if (named !== undefined) return demandFile(named, 'options.pathToQoderCLIExecutable', options);
  const variable = options.environment['QODERCLI_PATH'];
  if (variable) return demandFile(variable, 'the environment variable QODERCLI_PATH', options);
  const found = inPlatformPackage() ?? onSearchPath(options.environment);
  if (found !== undefined) return found;
  throw new QoderCliNotFoundError(
    `No ${BINARY_NAME} was found: the package ${platformPackageName()} is not installed and no directory of PATH ` +
      'has one. Install qodercli, set QODERCLI_PATH, or set options.pathToQoderCLIExecutable.',
  );
}

/** A path that the options or the environment name. A bare name is looked up on the `PATH`. */
function demandFile(named: string, place: string, options: CheckedOptions): string {
  const bare = !named.includes('/') && !named.includes('\\');
  if (bare) {
    const found = onSearchPath(options.environment, named);
    if (found !== undefined) return found;
  }
  const path = isAbsolute(named) ? named : resolve(options.cwd ?? process.cwd(), named);
  if (isFile(path)) return path;
  throw new QoderCliNotFoundError(`There is no file ${path}, which ${place} names as the runtime. Correct the path.`);
}

function inPlatformPackage(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${platformPackageName()}/bin/${BINARY_NAME}`);
  } catch {
    // Not installed, which is normal: the next place is tried.
    return undefined;
  }
}

function onSearchPath(
  environment: Record<string, string | undefined>,
  name: string = BINARY_NAME,
): string | undefined {
  for (const directory of (environment['PATH'] ?? '').split(delimiter)) {
    if (directory === '') continue;
    const path = join(directory, name);
    if (isFile(path) && isRunnable(path)) return path;
  }
  return undefined;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
