/**
 * A file for what must not stand on a command line, where every user of the machine can read it: headers and
 * variables of MCP servers, which often hold tokens. It exists until the runtime has read it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { McpServerConfig } from '../types/mcp.js';

/** Writes a file that only this user can read; gives back its path. */
export function writePrivateFile(content: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'qoder-sdk-')), 'servers.json');
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

/** Removes a file that {@link writePrivateFile} wrote. */
export function removePrivateFile(path: string): void {
  rmSync(dirname(path), { recursive: true, force: true });
}

/** Whether a configuration may hold secrets. */
export function mayHoldSecrets(servers: Record<string, McpServerConfig>): boolean {
  return Object.values(servers).some((config) => 'headers' in config || 'env' in config);
}
