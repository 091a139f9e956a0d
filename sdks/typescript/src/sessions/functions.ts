/**
 * The session functions: list, read, name, tag, fork and delete sessions, of this machine or of a store. They
 * need no runtime.
 */
import { randomUUID } from 'node:crypto';

import { OptionsError } from '../errors.js';
import type {
  ForkSessionOptions,
  ForkSessionResult,
  GetSessionMessagesOptions,
  ListSessionsOptions,
  SDKSessionInfo,
  SessionDirectoryOptions,
  SessionMessage,
} from '../types/session-types.js';
import { forkEntries } from './fork.js';
import { openSource } from './source.js';
import { agentMessages, conversation } from './transcript.js';

/** The most characters of a title or a tag: lists look at the end of a log only, and would not find a longer one. */
const LONGEST_NAME = 1_000;
const FORK_MARK = ' (fork)';

function checkPage(options: { limit?: number; offset?: number } | undefined): void {
  for (const [name, value] of [['limit', options?.limit], ['offset', options?.offset]] as const) {
    if (value !== undefined && (!Number.isInteger(value) || value < 0)) {
      throw new OptionsError(`${name} must be a whole number that is not negative, not ${String(value)}.`);
    }
  }
}

/** A title or a tag without blanks around it, if it can be one. */
function checkedName(what: string, text: string): string {
  const name = typeof text === 'string' ? text.trim() : '';
  if (name === '') throw new OptionsError(`The ${what} of a session must not be empty.`);
  const length = [...name].length;
  if (length > LONGEST_NAME) {
    throw new OptionsError(`The ${what} of a session has ${length} characters, and ${LONGEST_NAME} are accepted.`);
  }
  return name;
}

function page<Element>(all: Element[], options: { limit?: number; offset?: number } | undefined): Element[] {
  const start = options?.offset ?? 0;
  return options?.limit === undefined ? all.slice(start) : all.slice(start, start + options.limit);
}

/** The sessions of a project, or of all projects without `dir`; newest first. */
export async function listSessions(options?: ListSessionsOptions): Promise<SDKSessionInfo[]> {
  checkPage(options);
  const most = options?.limit === undefined ? undefined : (options.offset ?? 0) + options.limit;
  return page(await (await openSource(options)).list(most), options);
}

/** What is known of a session, or undefined when no session has this ID. */
export async function getSessionInfo(
  sessionId: string,
  options?: SessionDirectoryOptions,
): Promise<SDKSessionInfo | undefined> {
  return (await openSource(options)).info(sessionId);
}

/** The messages of a session in order: those of the conversation as it is now, after any summary. */
export async function getSessionMessages(
  sessionId: string,
  options?: GetSessionMessagesOptions,
): Promise<SessionMessage[]> {
  checkPage(options);
  const entries = await (await openSource(options)).entries(sessionId);
  return page(conversation(entries, sessionId, options?.includeSystemMessages === true), options);
}

/** Gives a session a title. */
export async function renameSession(
  sessionId: string,
  title: string,
  options?: SessionDirectoryOptions,
): Promise<void> {
  const customTitle = checkedName('title', title);
  await (await openSource(options)).append(sessionId, { type: 'custom-title', customTitle, sessionId });
}

/** Tags a session; null removes the tag. */
export async function tagSession(
  sessionId: string,
  tag: string | null,
  options?: SessionDirectoryOptions,
): Promise<void> {
  const checked = tag === null ? '' : checkedName('tag', tag);
  await (await openSource(options)).append(sessionId, { type: 'tag', tag: checked, sessionId });
}

/** Copies a session, up to a message if one is named. The new one can be resumed; the old one is untouched. */
export async function forkSession(sessionId: string, options?: ForkSessionOptions): Promise<ForkSessionResult> {
  const source = await openSource(options);
  const entries = await source.entries(sessionId);
  const fork = randomUUID();
  const title = options?.title === undefined ? await forkTitle(sessionId, options) : checkedName('title', options.title);
  await source.create(
    fork,
    sessionId,
    forkEntries(entries, { from: sessionId, to: fork }, options?.upToMessageId, title),
  );
  return { sessionId: fork };
}

async function forkTitle(sessionId: string, options?: SessionDirectoryOptions): Promise<string | undefined> {
  const info = await getSessionInfo(sessionId, options);
  return info && [...info.summary].slice(0, LONGEST_NAME - FORK_MARK.length).join('') + FORK_MARK;
}

/** Deletes a session with everything that belongs to it. */
export async function deleteSession(sessionId: string, options?: SessionDirectoryOptions): Promise<void> {
  await (await openSource(options)).remove(sessionId);
}

/** The ids of the agents that worked in a session. */
export async function listSubagents(sessionId: string, options?: SessionDirectoryOptions): Promise<string[]> {
  return [...(await (await openSource(options)).agents(sessionId)).keys()].sort();
}

/** The messages of one agent of a session, in order. */
export async function getSubagentMessages(
  sessionId: string,
  agentId: string,
  options?: SessionDirectoryOptions & { limit?: number; offset?: number },
): Promise<SessionMessage[]> {
  checkPage(options);
  const source = await openSource(options);
  const place = (await source.agents(sessionId)).get(agentId);
  if (place === undefined) throw new OptionsError(`The session ${sessionId} has no agent ${agentId}.`);
  return page(agentMessages(await source.agentEntries(sessionId, place), sessionId), options);
}
