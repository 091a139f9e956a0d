/**
 * A server that wants OAuth, with its own authorization server, and what a browser would do with it. Credentials go to
 * the configuration folder of the test, never to a keychain of the machine.
 */
import assert from 'node:assert/strict';

import type { McpHttpServerConfig } from '@qoder-ai/qoder-agent-sdk';

import { running } from './servers.js';

/** Environment of sessions: there is no keychain. */
export const NO_KEYCHAIN = { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent/bus' };

/** What came to the server. */
export type What = 'registration' | 'authorization' | 'exchange' | 'renewal';

/** The server. */
export class Guarded {
  readonly url: string;
  readonly config: McpHttpServerConfig;
  readonly #base: string;

  private constructor(url: string) {
    this.url = url;
    this.config = { type: 'http', url };
    this.#base = url.replace(/\/mcp$/, '');
  }

  /** Starts it for the tests of a file. */
  static async start(): Promise<Guarded> {
    return new Guarded(await running('guarded.py', 'http'));
  }

  /** What came since the server was started. */
  async seen(what: What): Promise<Array<Record<string, unknown>>> {
    const all = (await (await fetch(`${this.#base}/seen`)).json()) as Array<Record<string, unknown>>;
    return all.filter((each) => each['what'] === what);
  }

  /** Makes all access tokens invalid. */
  async forget(): Promise<void> {
    await fetch(`${this.#base}/forget`, { method: 'POST' });
  }

  /** Makes a token valid that the server did not issue. */
  async accept(token: string): Promise<void> {
    await fetch(`${this.#base}/accept`, { method: 'POST', body: token });
  }

  /** Visits an address and returns where the browser was redirected to. */
  async consent(address: string | undefined): Promise<string> {
    assert.ok(address, 'there is no address to visit');
    const location = (await fetch(address, { redirect: 'manual' })).headers.get('location');
    assert.ok(location, `${address} did not redirect`);
    return location;
  }
}
