/**
 * The settings that a session would have, asked of the runtime without starting a session.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { errorText, QoderCliProcessError } from './errors.js';
import { findExecutable } from './executable.js';
import { runtimeEnvironment } from './options/environment.js';
import { checkOptions } from './options/validate.js';
import type { Options, Settings } from './types/options.js';

/** The options that matter for settings. */
export type ResolveSettingsOptions = Pick<
  Options,
  'cwd' | 'env' | 'settings' | 'pathToQoderCLIExecutable' | 'cliPath'
>;

/** One effective setting. */
export interface ResolvedSetting {
  /** Its name, with dots between the levels. */
  key: string;
  value: unknown;
  /** Where the value comes from. */
  origin: string;
}

/** The effective settings, as an object and one by one. */
export interface ResolvedSettings {
  settings: Settings;
  entries: ResolvedSetting[];
}

/** Reads the effective settings for a directory. */
export async function resolveSettings(options?: ResolveSettingsOptions): Promise<ResolvedSettings> {
  const checked = checkOptions(options);
  const { command, leadingArguments } = findExecutable(checked);
  const flags: string[] = [];
  if (checked.settings !== undefined) {
    flags.push('--settings', typeof checked.settings === 'string' ? checked.settings : JSON.stringify(checked.settings));
  }
  const { stdout } = await promisify(execFile)(command, [...leadingArguments, 'config', '--json', ...flags], {
    ...(checked.cwd === undefined ? {} : { cwd: checked.cwd }),
    env: runtimeEnvironment(checked),
    maxBuffer: 16 * 1024 * 1024,
  }).catch((thrown: Error & { code?: number; stderr?: string }) => {
    const stderr = thrown.stderr ?? '';
    throw new QoderCliProcessError(
      `The settings could not be read: ${stderr.trim() || errorText(thrown)}`,
      { exitCode: typeof thrown.code === 'number' ? thrown.code : null, stderr },
      { cause: thrown },
    );
  });
  const entries = JSON.parse(stdout) as ResolvedSetting[];
  return { settings: nest(entries), entries };
}

/** Settings with dots in their names as nested objects. */
function nest(entries: ResolvedSetting[]): Settings {
  const settings: Settings = {};
  for (const { key, value } of entries) {
    const parts = key.split('.');
    const last = parts.pop() as string;
    let place = settings;
    for (const part of parts) {
      const next: Settings = (place[part] as Settings | undefined) ?? {};
      place[part] = next;
      place = next;
    }
    place[last] = value;
  }
  return settings;
}

