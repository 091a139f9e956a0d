/**
 * Session stores that each break one rule, to show that the suite for stores notices. All are stores in memory with
 * one mistake, of the kind that real stores make.
 */
import { InMemorySessionStore, type SessionKey, type SessionStoreEntry } from '@qoder-ai/qoder-agent-sdk';

type Entries = SessionStoreEntry[];
type Rows = Array<{ sessionId: string; mtime: number }>;

class NewestFirst extends InMemorySessionStore {
  override async load(key: SessionKey): Promise<Entries | null> {
    return (await super.load(key))?.reverse() ?? null;
  }
}

/** Cuts a character out that many databases refuse. */
class TextWithoutNul extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    await super.append(key, JSON.parse(JSON.stringify(entries).replaceAll('\\u0000', '')) as Entries);
  }
}

/** Has no column type for true and false. */
class NumbersForTruth extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    const number = (_name: string, value: unknown): unknown => (typeof value === 'boolean' ? Number(value) : value);
    const text = JSON.stringify(entries, number);
    await super.append(key, JSON.parse(text) as Entries);
  }
}

class KeepsReferences extends InMemorySessionStore {
  readonly #logs = new Map<string, Entries>();

  override async append(key: SessionKey, entries: Entries): Promise<void> {
    this.#logs.set(JSON.stringify(key), entries);
  }

  override async load(key: SessionKey): Promise<Entries | null> {
    return this.#logs.get(JSON.stringify(key)) ?? null;
  }
}

class GivesReferences extends InMemorySessionStore {
  readonly #given = new Map<string, Entries | null>();

  override async load(key: SessionKey): Promise<Entries | null> {
    const name = JSON.stringify(key);
    if (!this.#given.has(name)) this.#given.set(name, await super.load(key));
    return this.#given.get(name) ?? null;
  }
}

class EmptyForUnknown extends InMemorySessionStore {
  override async load(key: SessionKey): Promise<Entries | null> {
    return (await super.load(key)) ?? [];
  }
}

/** Changes keys on the way in. */
abstract class OtherKeys extends InMemorySessionStore {
  protected abstract changed(key: SessionKey): SessionKey;

  override async append(key: SessionKey, entries: Entries): Promise<void> {
    await super.append(this.changed(key), entries);
  }

  override async load(key: SessionKey): Promise<Entries | null> {
    return super.load(this.changed(key));
  }

  override async listSubkeys(key: SessionKey): Promise<string[]> {
    return super.listSubkeys(this.changed(key));
  }
}

function mapKey(key: SessionKey, change: (text: string) => string): SessionKey {
  return Object.fromEntries(Object.entries(key).map(([name, text]) => [name, change(text as string)])) as never;
}

class ForgetsProjects extends OtherKeys {
  protected changed(key: SessionKey): SessionKey {
    return { ...key, projectKey: 'all' };
  }
}

class IgnoresCase extends OtherKeys {
  protected changed(key: SessionKey): SessionKey {
    return mapKey(key, (text) => text.toLowerCase());
  }
}

/** Uses the last part of a path only. */
class FlatSubpaths extends OtherKeys {
  protected changed(key: SessionKey): SessionKey {
    return mapKey(key, (text) => text.split('/').at(-1) as string);
  }
}

/** As a column that is too narrow, in a database that does not complain. */
class CutsNames extends OtherKeys {
  protected changed(key: SessionKey): SessionKey {
    return mapKey(key, (text) => text.slice(0, 255));
  }
}

class ListsMainAsSubkey extends InMemorySessionStore {
  override async listSubkeys(key: SessionKey): Promise<string[]> {
    const main = (await this.load(key)) === null ? [] : [''];
    return [...main, ...(await super.listSubkeys(key))];
  }
}

class Seconds extends InMemorySessionStore {
  override async listSessions(projectKey: string): Promise<Rows> {
    return (await super.listSessions(projectKey)).map((row) => ({ ...row, mtime: Math.floor(row.mtime / 1000) }));
  }
}

class TimeOfCreation extends InMemorySessionStore {
  readonly #created = new Map<string, number>();

  override async listSessions(projectKey: string): Promise<Rows> {
    return (await super.listSessions(projectKey)).map(({ sessionId, mtime }) => {
      if (!this.#created.has(sessionId)) this.#created.set(sessionId, mtime);
      return { sessionId, mtime: this.#created.get(sessionId) as number };
    });
  }
}

class DeletesMainOnly extends InMemorySessionStore {
  override async delete(key: SessionKey): Promise<void> {
    const kept = (await this.listSubkeys(key)).map((subpath) => ({ ...key, subpath }));
    const logs = await Promise.all(kept.map((each) => this.load(each)));
    await super.delete(key);
    for (const [index, each] of kept.entries()) await this.append(each, logs[index] ?? []);
  }
}

class DeletesInAllProjects extends InMemorySessionStore {
  readonly #projects = new Set<string>();

  override async append(key: SessionKey, entries: Entries): Promise<void> {
    this.#projects.add(key.projectKey);
    await super.append(key, entries);
  }

  override async delete(key: SessionKey): Promise<void> {
    for (const projectKey of this.#projects) await super.delete({ ...key, projectKey });
  }
}

class DeletesByPrefix extends InMemorySessionStore {
  override async delete(key: SessionKey): Promise<void> {
    const { subpath: start, ...session } = key;
    if (start === undefined) return super.delete(key);
    for (const subpath of await this.listSubkeys(session)) {
      if (subpath.startsWith(start)) await super.delete({ ...session, subpath });
    }
  }
}

class DeleteMustFind extends InMemorySessionStore {
  override async delete(key: SessionKey): Promise<void> {
    if ((await this.load(key)) === null) throw new Error(`no such session: ${key.sessionId}`);
    await super.delete(key);
  }
}

/** Reads everything, waits, and writes everything back. */
class OneWriterAtATime extends InMemorySessionStore {
  #logs: Record<string, Entries> = {};

  override async append(key: SessionKey, entries: Entries): Promise<void> {
    const logs = structuredClone(this.#logs);
    await new Promise(setImmediate);
    (logs[JSON.stringify(key)] ??= []).push(...entries);
    this.#logs = logs;
  }

  override async load(key: SessionKey): Promise<Entries | null> {
    return structuredClone(this.#logs[JSON.stringify(key)] ?? null);
  }
}

class SmallRows extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    if (entries.some((entry) => JSON.stringify(entry).length > 1_000_000)) throw new Error('the row is too large');
    await super.append(key, entries);
  }
}

class SmallBatches extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    await super.append(key, entries.slice(0, 500));
  }
}

class UniqueEntries extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    const known = new Set(((await this.load(key)) ?? []).map((entry) => entry['uuid']));
    if (entries.some((entry) => known.has(entry['uuid']))) throw new Error('duplicate key violates unique constraint');
    await super.append(key, entries);
  }
}

/** Replaces an entry that it has by the new one, which goes to the end. */
class MovesRepeats extends InMemorySessionStore {
  override async append(key: SessionKey, entries: Entries): Promise<void> {
    const replaced = new Set(entries.map((entry) => entry['uuid']));
    const kept = ((await this.load(key)) ?? []).filter((entry) => !replaced.has(entry['uuid']));
    await super.delete(key);
    await super.append(key, [...kept, ...entries]);
  }
}

/** The rule that each of them breaks. */
export const BROKEN: Array<[string, new () => InMemorySessionStore]> = [
  ['append-order', NewestFirst],
  ['deep-equality', TextWithoutNul],
  ['deep-equality', NumbersForTruth],
  ['values-are-copies', KeepsReferences],
  ['values-are-copies', GivesReferences],
  ['unknown-key', EmptyForUnknown],
  ['keys-are-separate', ForgetsProjects],
  ['keys-are-separate', IgnoresCase],
  ['keys-are-separate', FlatSubpaths],
  ['subkeys-listed', ListsMainAsSubkey],
  ['session-list', Seconds],
  ['session-list', TimeOfCreation],
  ['delete-cascades', DeletesMainOnly],
  ['delete-cascades', DeletesInAllProjects],
  ['delete-of-a-subpath', DeletesByPrefix],
  ['delete-of-unknown', DeleteMustFind],
  ['concurrent-appends', OneWriterAtATime],
  ['large-batches', SmallRows],
  ['large-batches', SmallBatches],
  ['repeated-delivery', UniqueEntries],
  ['repeated-delivery', MovesRepeats],
  ['odd-keys', CutsNames],
];
