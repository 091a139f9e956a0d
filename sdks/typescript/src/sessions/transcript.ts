/**
 * Reads transcripts: the facts that a list shows, from the first and last 64 KiB, and the messages, by
 * following the chain of parents from the last one. Lines of unknown types and lines that are no JSON are
 * skipped.
 */
import type { SDKSessionInfo, SessionMessage } from '../types/session-types.js';
import { isRecord } from '../options/kinds.js';

/** How much of each end a list looks at. */
export const EDGE_BYTES = 64 * 1024;

const PROMPT_LENGTH = 200;
const CHAINED = new Set(['user', 'assistant', 'system', 'attachment', 'progress']);
const NO_PROMPT = ['<local-command-stdout>', '<session-start-hook>', '<tick>', '<goal>', '[Request interrupted by user'];

/** One line of a transcript. */
export type Entry = Record<string, unknown>;

/** The entries of a transcript, in order. */
export function parseEntries(text: string): Entry[] {
  const entries: Entry[] = [];
  for (const line of text.split('\n')) {
    const entry = parseLine(line);
    if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

function parseLine(line: string): Entry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    return isRecord(parsed) ? parsed : undefined;
  } catch {
    // A torn line, or one that began before the part that was read.
    return undefined;
  }
}

/** The two ends of a file, which overlap when it is short. */
export interface Edges {
  head: string;
  tail: string;
}

/** What a list shows of a session, or undefined when the list leaves it out. */
export function sessionFacts(
  edges: Edges,
  sessionId: string,
  lastModified: number,
  fileSize?: number,
): SDKSessionInfo | undefined {
  const firstLine = edges.head.slice(0, Math.max(0, edges.head.indexOf('\n')));
  if (/"isSidechain": ?true/.test(firstLine)) return undefined;
  const head = parseEntries(edges.head);
  const tail = parseEntries(edges.tail);
  const title =
    lastText(tail, 'customTitle') ??
    lastText(head, 'customTitle') ??
    lastText(tail, 'aiTitle') ??
    lastText(head, 'aiTitle');
  const firstPrompt = findPrompt(head);
  // Records of other kinds have a summary of something else, such as a background task.
  const summaries = tail.filter((entry) => entry['type'] === 'summary');
  const summary = title ?? lastText(tail, 'lastPrompt') ?? lastText(summaries, 'summary') ?? firstPrompt;
  if (summary === undefined) return undefined;
  const created = Date.parse(firstText(head, 'timestamp') ?? '');
  const tag = tail.filter((entry) => entry['type'] === 'tag').at(-1)?.['tag'];
  return withoutUndefined({
    sessionId,
    summary,
    lastModified,
    fileSize,
    firstPrompt,
    customTitle: title,
    gitBranch: lastText(tail, 'gitBranch') ?? lastText(head, 'gitBranch'),
    cwd: firstText(head, 'cwd'),
    tag: typeof tag === 'string' && tag !== '' ? tag : undefined,
    createdAt: Number.isNaN(created) ? undefined : created,
  });
}

function withoutUndefined<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Value;
}

function firstText(entries: Entry[], name: string): string | undefined {
  return entries.map((entry) => entry[name]).find(isText);
}

function lastText(entries: Entry[], name: string): string | undefined {
  return entries
    .map((entry) => entry[name])
    .filter(isText)
    .at(-1);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** The first prompt that a person wrote. */
function findPrompt(entries: Entry[]): string | undefined {
  for (const entry of entries) {
    if (entry['type'] !== 'user' || entry['isMeta'] === true || entry['isCompactSummary'] === true) continue;
    const text = promptText(entry['message']);
    if (text === undefined || text.includes('<command-name>')) continue;
    if (NO_PROMPT.some((start) => text.startsWith(start)) || /^<ide_[a-z_]+>[^]*<\/ide_[a-z_]+>$/.test(text)) continue;
    const characters = [...text];
    return characters.length > PROMPT_LENGTH ? `${characters.slice(0, PROMPT_LENGTH).join('').trim()}…` : text;
  }
  return undefined;
}

function promptText(message: unknown): string | undefined {
  const content = isRecord(message) ? message['content'] : undefined;
  if (isText(content)) return content.replace(/\n/g, ' ').trim();
  if (!Array.isArray(content)) return undefined;
  const blocks = content.filter(isRecord);
  if (blocks.some((block) => block['type'] === 'tool_result')) return undefined;
  const text = blocks.find((block) => block['type'] === 'text')?.['text'];
  return isText(text) ? text.replace(/\n/g, ' ').trim() : undefined;
}

/** The messages of a conversation, without what a summary replaced and without side chains. */
export function conversation(entries: Entry[], sessionId: string, withSystem: boolean): SessionMessage[] {
  const chained = entries.filter((entry) => CHAINED.has(String(entry['type'])) && isText(entry['uuid']));
  const byId = new Map(chained.map((entry) => [entry['uuid'] as string, entry]));
  const last = entries.filter((entry) => entry['type'] === 'cut' || (isShown(entry) && isText(entry['uuid']))).at(-1);
  // After a cut the conversation went back and nothing was said since: it ends with the last entry that stays.
  const leaf = last?.['type'] === 'cut' ? byId.get(String(last['at'])) : last;
  const chain: Entry[] = [];
  const seen = new Set<string>();
  for (let entry = leaf; entry !== undefined; entry = byId.get(String(entry['parentUuid']))) {
    if (seen.has(entry['uuid'] as string)) break;
    seen.add(entry['uuid'] as string);
    chain.push(entry);
  }
  const joined = joinSiblings(chain.reverse(), chained, seen);
  return joined
    .filter((entry) => isShown(entry) || (withSystem && entry['type'] === 'system' && entry['isMeta'] !== true))
    .map((entry) => toMessage(entry, sessionId));
}

function isShown(entry: Entry): boolean {
  return (
    (entry['type'] === 'user' || entry['type'] === 'assistant') &&
    entry['isMeta'] !== true &&
    entry['isSidechain'] !== true &&
    entry['teamName'] === undefined
  );
}

/** Adds the calls and results that run beside the chain when tools were called together. */
function joinSiblings(chain: Entry[], all: Entry[], seen: Set<string>): Entry[] {
  const replies = new Set(chain.map(replyId).filter(isText));
  const beside = new Set<string>(seen);
  for (const entry of all) {
    const reply = replyId(entry);
    const parent = entry['parentUuid'];
    const besideReply = isText(reply) && replies.has(reply);
    const answersOne = entry['type'] === 'user' && isText(parent) && beside.has(parent) && hasToolResult(entry);
    if (isShown(entry) && (besideReply || answersOne)) beside.add(entry['uuid'] as string);
  }
  if (beside.size === seen.size) return chain;
  const first = all.indexOf(chain[0] as Entry);
  return all.filter((entry, index) => index >= first && beside.has(entry['uuid'] as string));
}

function replyId(entry: Entry): unknown {
  return entry['type'] === 'assistant' && isRecord(entry['message']) ? entry['message']['id'] : undefined;
}

function hasToolResult(entry: Entry): boolean {
  const content = isRecord(entry['message']) ? entry['message']['content'] : undefined;
  return Array.isArray(content) && content.some((block) => isRecord(block) && block['type'] === 'tool_result');
}

/** The messages of an agent's transcript, which has no branches. */
export function agentMessages(entries: Entry[], sessionId: string): SessionMessage[] {
  return entries
    .filter((entry) => (entry['type'] === 'user' || entry['type'] === 'assistant') && entry['isMeta'] !== true)
    .filter((entry) => isText(entry['uuid']))
    .map((entry) => toMessage(entry, sessionId));
}

function toMessage(entry: Entry, sessionId: string): SessionMessage {
  return withoutUndefined({
    type: entry['type'] as SessionMessage['type'],
    uuid: entry['uuid'] as string,
    session_id: isText(entry['sessionId']) ? entry['sessionId'] : sessionId,
    message: entry['message'],
    parent_tool_use_id: isText(entry['parent_tool_use_id']) ? entry['parent_tool_use_id'] : null,
    timestamp: isText(entry['timestamp']) ? entry['timestamp'] : undefined,
    subtype: isText(entry['subtype']) ? entry['subtype'] : undefined,
    compact_metadata: entry['compact_metadata'] ?? entry['compactMetadata'],
  });
}
