/**
 * The suite for session stores: good stores pass it, and every rule catches a store that breaks it.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { InMemorySessionStore, type SessionStore } from '@qoder-ai/qoder-agent-sdk';
import {
  checkSessionStoreRule,
  runSessionStoreConformance,
  SESSION_STORE_RULES,
  SessionStoreRuleError,
} from '@qoder-ai/qoder-agent-sdk/testing';

import { FileSessionStore } from './examples/file-session-store.js';
import { BROKEN } from './support/broken-stores.js';

test('the store in memory keeps every rule', async () => {
  assert.deepEqual(await runSessionStoreConformance(() => new InMemorySessionStore()), SESSION_STORE_RULES);
});

test('the store in files keeps every rule', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'qoder-sdk-files-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  assert.deepEqual(await runSessionStoreConformance(async () => new FileSessionStore(folder)), SESSION_STORE_RULES);
});

for (const [rule, Store] of BROKEN) {
  test(`the rule '${rule}' catches ${Store.name}`, async () => {
    const violated = (thrown: unknown): boolean => thrown instanceof SessionStoreRuleError && thrown.rule === rule;
    await assert.rejects(checkSessionStoreRule(() => new Store(), rule), violated);
    await assert.rejects(runSessionStoreConformance(() => new Store()), SessionStoreRuleError);
  });
}

test('every rule has a store that breaks it', () => {
  assert.deepEqual(new Set(BROKEN.map(([rule]) => rule)), new Set(SESSION_STORE_RULES));
});

test('rules about methods that are left out are passed over', async () => {
  const full = new InMemorySessionStore();
  const store: SessionStore = { append: (key, entries) => full.append(key, entries), load: (key) => full.load(key) };
  const checked = await runSessionStoreConformance(() => store);
  const leftOut = ['subkeys-listed', 'session-list', 'delete-cascades', 'delete-of-a-subpath', 'delete-of-unknown'];
  assert.deepEqual(
    SESSION_STORE_RULES.filter((rule) => !checked.includes(rule)),
    leftOut,
  );
});

test('an error of the store is a violation', async () => {
  const load = (): Promise<never> => Promise.reject(new Error('no connection'));
  const store = Object.assign(new InMemorySessionStore(), { load });
  await assert.rejects(
    runSessionStoreConformance(() => store),
    /'append-order': the store failed: no connection/,
  );
});

test('an unknown rule is an error that names the rules', async () => {
  await assert.rejects(checkSessionStoreRule(() => new InMemorySessionStore(), 'append-odor'), /append-order/);
});
