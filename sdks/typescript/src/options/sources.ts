/** Which settings files are read when the host program does not list them. */
import type { CheckedOptions } from './validate.js';

/** Skills are looked for in the files of the user and the project, unless the host program lists others. */
export function impliesSources(options: CheckedOptions): boolean {
  return options.skills !== undefined && options.settingSources === undefined;
}
