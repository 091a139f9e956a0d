/**
 * A chat in the terminal: every line is a prompt, replies appear while they are written, and tools that need
 * permission ask for it. It works without a key: the runtime's built-in offline model answers then. README.md says
 * how to start it.
 */
import { stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline';

import { createSdkMcpServer, query, tool } from '@qoder-ai/qoder-agent-sdk';
import { z } from 'zod';

const terminal = createInterface({ input: stdin, output: stdout, terminal: stdin.isTTY });
const lines = terminal[Symbol.asyncIterator]();

/** Asks for one line; undefined when there are no more. */
async function ask(question) {
  stdout.write(question);
  const { value, done } = await lines.next();
  return done ? undefined : value.trim();
}

const notes = [];
const notebook = createSdkMcpServer({
  name: 'notebook',
  tools: [
    tool('remember', 'Remembers a note for later and returns how many there are.', { note: z.string() }, async ({ note }) => {
      notes.push(note);
      return { content: [{ type: 'text', text: `I have ${notes.length} note(s).` }] };
    }),
  ],
});

let turnEnded = () => undefined;

/** The prompts of the session: one for each line, after the answer to the last one. */
async function* prompts() {
  for (;;) {
    const text = await ask('\nyou> ');
    if (text === undefined || text === 'exit') return;
    if (text === '') continue;
    const answered = new Promise((resolve) => {
      turnEnded = resolve;
    });
    yield { type: 'user', message: { role: 'user', content: text } };
    await answered;
  }
}

const session = query({
  prompt: prompts(),
  options: {
    includePartialMessages: true,
    mcpServers: { notebook },
    allowedTools: ['mcp__notebook__remember'],
    async canUseTool(toolName, input, { title }) {
      const answer = await ask(`\n${title ?? `Run ${toolName} ${JSON.stringify(input)}`} [y/N] `);
      if (answer === 'y') return { behavior: 'allow' };
      return { behavior: 'deny', message: 'The user said no.' };
    },
  },
});

for await (const message of session) {
  if (message.type === 'stream_event' && message.event.type === 'content_block_delta') {
    if (message.event.delta.type === 'text_delta') stdout.write(message.event.delta.text);
  } else if (message.type === 'assistant') {
    for (const block of message.message.content) {
      if (block.type === 'tool_use') stdout.write(`\n[${block.name} ${JSON.stringify(block.input)}]\n`);
    }
  } else if (message.type === 'result') {
    if (message.is_error) stdout.write(`\n${message.errors.join('\n')}\n`);
    stdout.write('\n');
    turnEnded();
  }
}
terminal.close();
