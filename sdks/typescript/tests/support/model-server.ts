/**
 * A model server for tests: answers with a text, in the protocol of the path that is called, and keeps every request,
 * so that a test can look at what reached the provider.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** What reached the provider. */
export interface ModelRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

/** Where the server is, and what it was asked. */
export interface ModelServer {
  url: string;
  requests: ModelRequest[];
}

const anthropic = (text: string): unknown[] => [
  {
    type: 'message_start',
    message: {
      id: 'm1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      usage: { input_tokens: 1000, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 20 } },
  { type: 'message_stop' },
];

const openai = (text: string): unknown[] => {
  const head = { id: 'c1', object: 'chat.completion.chunk', created: 0, model: 'm' };
  return [
    { ...head, choices: [{ index: 0, delta: { role: 'assistant', content: text }, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...head, choices: [], usage: { prompt_tokens: 1000, completion_tokens: 20, total_tokens: 1020 } },
  ];
};

/** Starts a server that is gone after the test. */
export async function modelServer(context: TestContext, status = 200): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      if (request.method === 'GET') {
        const data = ['large', 'small'].map((id) => ({ id, object: 'model' }));
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }));
        return;
      }
      requests.push({ path, headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
      response.statusCode = status;
      if (status !== 200) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ error: { message: 'Incorrect API key provided' } }));
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      const isAnthropic = path.endsWith('/messages');
      for (const event of isAnthropic ? anthropic('hello') : openai('hello')) {
        const name = isAnthropic ? `event: ${(event as { type: string }).type}\n` : '';
        response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
      }
      response.end(isAnthropic ? '' : 'data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
