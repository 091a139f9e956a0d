/**
 * Checks for what users of this package write themselves: does a session store keep the rules? No test framework is
 * needed; `SESSION_STORE_RULES` has the names of the rules for those who want a test for each. Every rule works with
 * keys of its own, so a store that already holds something can be checked as well.
 */
import { errorText, QoderAgentError } from '../errors.js';
import { within } from '../sessions/store-reading.js';
import type { SessionStore } from '../types/session-types.js';
import { RULES, Violation } from './store-rules.js';

/** Makes the store to check, or gives one that is there. */
export type MakeSessionStore = () => SessionStore | Promise<SessionStore>;

/** A session store breaks a rule. */
export class SessionStoreRuleError extends QoderAgentError {
  /** The name of the rule. */
  readonly rule: string;

  constructor(rule: string, message: string, options?: { cause?: unknown }) {
    super('SESSION_STORE_RULE', `session store rule '${rule}': ${message}`, options);
    this.rule = rule;
  }
}

/** The names of all rules. */
export const SESSION_STORE_RULES: readonly string[] = [...RULES.keys()];

/** A store that takes longer for one rule hangs. */
const RULE_MS = 120_000;

/**
 * Checks all rules, each on a store from `makeStore`; gives the names of those that were checked. Rules about methods
 * that a store may leave out are passed over when it has left them out.
 *
 * @throws {SessionStoreRuleError} for the first rule that is violated.
 */
export async function runSessionStoreConformance(makeStore: MakeSessionStore): Promise<string[]> {
  const checked: string[] = [];
  for (const name of SESSION_STORE_RULES) {
    if (await checkSessionStoreRule(makeStore, name)) checked.push(name);
  }
  return checked;
}

/**
 * Checks one rule; false when it is about a method that the store has left out.
 *
 * @throws {SessionStoreRuleError} when it is violated.
 */
export async function checkSessionStoreRule(makeStore: MakeSessionStore, name: string): Promise<boolean> {
  const rule = RULES.get(name);
  if (rule === undefined) {
    throw new RangeError(`There is no rule '${name}'. The rules are ${SESSION_STORE_RULES.join(', ')}.`);
  }
  const store = await makeStore();
  if (rule.needs.some((method) => typeof store[method] !== 'function')) return false;
  try {
    await within(RULE_MS, rule.check(store as Required<SessionStore>));
  } catch (thrown) {
    const text = thrown instanceof Violation ? thrown.message : `the store failed: ${errorText(thrown)}`;
    throw new SessionStoreRuleError(name, text, { cause: thrown });
  }
  return true;
}
