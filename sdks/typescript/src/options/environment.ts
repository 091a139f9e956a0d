/**
 * The environment of the runtime: that of this process, `options.env` on top, and the variables by which the runtime
 * recognises this package. Credentials given as `options.auth` are not here.
 */
import { SDK_VERSION } from '../version.js';
import { impliesSources } from './sources.js';
import type { CheckedOptions } from './validate.js';

/** The environment to start the runtime with. */
export function runtimeEnvironment(options: CheckedOptions): Record<string, string> {
  const wanted: Record<string, string | undefined> = {
    ...process.env,
    QODER_ENTRYPOINT: 'sdk-ts',
    QODER_SDK_READS_SESSION_STATE: '1',
    ...(options.cwd === undefined ? {} : { PWD: options.cwd }),
    ...options.env,
    QODER_SDK_VERSION: SDK_VERSION,
  };
  // Listing the project's files vouches for them; the caller listed none, so the runtime must not trust them.
  wanted['QODER_SDK_IMPLIED_SETTING_SOURCES'] = impliesSources(options) ? '1' : undefined;
  if (options.enableFileCheckpointing) wanted['QODER_ENABLE_SDK_FILE_CHECKPOINTING'] = 'true';
  return Object.fromEntries(
    Object.entries(wanted).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
