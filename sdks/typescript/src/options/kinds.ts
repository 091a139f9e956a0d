/**
 * The kinds of values that options take: a check and the words for the message when it fails. Deep forms, such
 * as the fields of a server, are judged by the runtime, which names them in its own errors.
 */

/** One kind of value. */
export interface Kind {
  /** How a message calls it, after "must be". */
  readonly words: string;
  /** Whether a value is of this kind. */
  accepts(value: unknown): boolean;
}

function kind(words: string, accepts: (value: unknown) => boolean): Kind {
  return { words, accepts };
}

/** Whether a value is an object with named fields. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isString = (value: unknown): boolean => typeof value === 'string';

export const text = kind('a string', isString);
export const nonEmptyText = kind('a non-empty string', (value) => isString(value) && value !== '');
export const flag = kind('true or false', (value) => typeof value === 'boolean');
export const callback = kind('a function', (value) => typeof value === 'function');
export const texts = kind('an array of strings', (value) => Array.isArray(value) && value.every(isString));
export const record = kind('an object', isRecord);
export const textRecord = kind(
  'an object with strings as values',
  (value) => isRecord(value) && Object.values(value).every(isString),
);
export const environmentRecord = kind(
  'an object whose values are strings or undefined',
  (value) => isRecord(value) && Object.values(value).every((entry) => entry === undefined || isString(entry)),
);
export const argumentRecord = kind(
  'an object whose values are strings or null',
  (value) => isRecord(value) && Object.values(value).every((entry) => entry === null || isString(entry)),
);
export const count = kind(
  'a whole number of 0 or more',
  (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0,
);
export const positiveCount = kind(
  'a whole number of 1 or more',
  (value) => typeof value === 'number' && Number.isInteger(value) && value >= 1,
);
export const positiveNumber = kind(
  'a number above 0',
  (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
);
export const abortController = kind(
  'an AbortController',
  (value) => isRecord(value) && isRecord(value['signal']) && typeof value['abort'] === 'function',
);

/** One of some words. */
export function oneOf(...words: string[]): Kind {
  return kind(`one of ${words.map((word) => JSON.stringify(word)).join(', ')}`, (value) =>
    words.includes(value as string),
  );
}

/** Some of some words. */
export function listOf(...words: string[]): Kind {
  return kind(
    `an array of ${words.map((word) => JSON.stringify(word)).join(', ')}`,
    (value) => Array.isArray(value) && value.every((entry) => words.includes(entry as string)),
  );
}

/** An object with a certain `type`, and further fields that are checked too. */
export function tagged(types: string[], words: string, rest: (value: Record<string, unknown>) => boolean): Kind {
  return kind(words, (value) => isRecord(value) && types.includes(value['type'] as string) && rest(value));
}

/** Either of two kinds. */
export function either(first: Kind, second: Kind): Kind {
  return kind(`${first.words} or ${second.words}`, (value) => first.accepts(value) || second.accepts(value));
}

/** An array with elements of one kind. */
export function arrayOf(element: Kind, words: string): Kind {
  return kind(words, (value) => Array.isArray(value) && value.every((entry) => element.accepts(entry)));
}

/** How a message calls a value that is not of the wanted kind. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
