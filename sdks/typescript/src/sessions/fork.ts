/**
 * Copies a conversation into a new session: new ids throughout, each entry pointing to the one it was copied
 * from. Side chains and links that only order progress are left out.
 */
import { randomUUID } from 'node:crypto';

import { OptionsError } from '../errors.js';
import type { Entry } from './transcript.js';

const COPIED = new Set(['user', 'assistant', 'system', 'attachment']);
/** Belongs to the old file: its numbering, its checksums, and names that hold only there. */
const LEFT_OUT = ['seq', 'crc', 'v', 'teamName', 'agentName', 'slug', 'sourceToolAssistantUUID', 'inputId'];

/** The entries of a fork. */
export function forkEntries(
  entries: Entry[],
  ids: { from: string; to: string },
  upToMessageId: string | undefined,
  title: string | undefined,
): Entry[] {
  const chained = links(entries, upToMessageId);
  if (upToMessageId !== undefined && chained.at(-1)?.['uuid'] !== upToMessageId) {
    throw new OptionsError(`The session ${ids.from} has no message ${upToMessageId}.`);
  }
  const copied = chained.filter((entry) => COPIED.has(String(entry['type'])));
  if (copied.length === 0) throw new OptionsError(`The session ${ids.from} has no messages to fork.`);
  const newIds = new Map(copied.map((entry) => [entry['uuid'] as string, randomUUID() as string]));
  const parents = new Map(chained.map((entry) => [entry['uuid'] as string, entry['parentUuid']]));
  const now = new Date().toISOString();
  const fork = copied.map((entry, index) => {
    const copy: Entry = {
      ...entry,
      uuid: newIds.get(entry['uuid'] as string),
      parentUuid: newParent(entry['parentUuid'], newIds, parents),
      logicalParentUuid: newParent(entry['logicalParentUuid'], newIds, parents),
      sessionId: ids.to,
      forkedFrom: { sessionId: ids.from, messageUuid: entry['uuid'] },
    };
    if (index === copied.length - 1) copy['timestamp'] = now;
    for (const name of LEFT_OUT) delete copy[name];
    return copy;
  });
  const replacements = entries
    .filter((entry) => entry['type'] === 'content-replacement')
    .map((entry) => ({ ...entry, sessionId: ids.to }));
  const named = title === undefined ? [] : [{ type: 'custom-title', customTitle: title, sessionId: ids.to }];
  return [...fork, ...replacements, ...named];
}

/** The entries that a copy is made of, up to one if it is named. */
function links(entries: Entry[], upToMessageId: string | undefined): Entry[] {
  const kept: Entry[] = [];
  for (const entry of entries) {
    if (entry['type'] === 'cut') {
      // The conversation went on from here, or began anew; what was left out stays out of the copy.
      kept.length = kept.findIndex((one) => one['uuid'] === entry['at']) + 1;
    } else if (typeof entry['uuid'] === 'string' && entry['isSidechain'] !== true) {
      kept.push(entry);
      if (entry['uuid'] === upToMessageId) break;
    }
  }
  return kept;
}

/** The copy of a parent; a parent that was left out is replaced by its own. */
function newParent(parent: unknown, newIds: Map<string, string>, parents: Map<string, unknown>): string | null {
  let current = parent;
  for (let step = 0; step <= parents.size && typeof current === 'string'; step += 1) {
    const copied = newIds.get(current);
    if (copied !== undefined) return copied;
    current = parents.get(current);
  }
  return null;
}
