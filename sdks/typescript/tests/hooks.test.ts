/**
 * Hooks: how they are registered, called and answered, and what the real runtime makes of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type HookJSONOutput, type HooksOption, query } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, type Wire, withPeer } from './support/peer.js';
import { collect, resultOf, sandbox, toolResults } from './support/runtime.js';

async function runtimeDoes(hooks: HooksOption, script: (peer: Peer, request: Wire) => Promise<void>): Promise<void> {
  const { options, scriptDone } = withPeer(
    async (peer) => {
      await script(peer, await peer.handshake());
      await peer.turn();
      await peer.untilClosed();
      peer.exit(0);
    },
    { hooks },
  );
  await collect(query({ prompt: 'hello', options }));
  await scriptDone;
}

test('each callback has an id, and matchers keep their conditions', () => {
  const hook = (): HookJSONOutput => ({});
  return runtimeDoes(
    {
      PreToolUse: [{ matcher: 'Bash|Edit', hooks: [hook, hook], timeout: 5 }, { hooks: [hook], onFailure: 'block' }],
      Elicitation: [{ hooks: [hook] }],
    },
    async (_peer, request) => {
      assert.deepEqual(request['hooks'], {
        PreToolUse: [
          { matcher: 'Bash|Edit', hookCallbackIds: ['hook_0', 'hook_1'], timeout: 5 },
          { matcher: null, hookCallbackIds: ['hook_2'], onFailure: 'block' },
        ],
        Elicitation: [{ matcher: null, hookCallbackIds: ['hook_3'] }],
      });
    },
  );
});

test('a hook gets input, id and signal, and its output is passed on', () =>
  runtimeDoes(
    {
      PostToolUse: [
        {
          hooks: [
            async (input, toolUseID, { signal }) => {
              assert.ok(signal instanceof AbortSignal);
              assert.equal(input.tool_name, 'Read');
              assert.equal(toolUseID, 'call_1');
              return { hookSpecificOutput: { hookEventName: 'PostToolUse', updatedToolOutput: 'hidden' } };
            },
          ],
        },
      ],
      Stop: [{ hooks: [(input, toolUseID) => ({ decision: 'block', reason: `${input.stop_hook_active} ${toolUseID}` })] }],
      SessionEnd: [{ hooks: [() => undefined] }],
    },
    async (peer) => {
      const output = await peer.askWell({
        subtype: 'hook_callback',
        callback_id: 'hook_0',
        input: { hook_event_name: 'PostToolUse', tool_name: 'Read' },
        tool_use_id: 'call_1',
      });
      assert.deepEqual(output, { hookSpecificOutput: { hookEventName: 'PostToolUse', updatedToolOutput: 'hidden' } });
      const stop = await peer.askWell({
        subtype: 'hook_callback',
        callback_id: 'hook_1',
        input: { stop_hook_active: false },
      });
      assert.deepEqual(stop, { decision: 'block', reason: 'false undefined' });
      const end = await peer.askWell({ subtype: 'hook_callback', callback_id: 'hook_2', input: { reason: 'other' } });
      assert.deepEqual(end, {});
    },
  ));

test('a hook that fails, answers nonsense or does not exist is an error', () =>
  runtimeDoes(
    {
      Stop: [
        {
          hooks: [
            async () => {
              throw new Error('broken hook');
            },
            async () => 'yes' as unknown as HookJSONOutput,
            async () => ({ decision: 'block', count: 1n }) as unknown as HookJSONOutput,
            async () => Promise.reject(),
          ],
        },
      ],
    },
    async (peer) => {
      for (const [id, expected] of [
        ['hook_0', /broken hook/],
        ['hook_1', /must return an object/],
        ['hook_2', /not JSON.*BigInt/],
        ['hook_3', /./],
        ['hook_9', /There is no hook hook_9/],
      ] as const) {
        const response = await peer.ask({ subtype: 'hook_callback', callback_id: id, input: {} });
        assert.equal(response['subtype'], 'error');
        assert.match(response['error'], expected);
      }
    },
  ));

test('the signal of a hook is aborted when the runtime no longer waits', async () => {
  let aborted: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    aborted = resolve;
  });
  await runtimeDoes(
    {
      Stop: [
        {
          hooks: [
            (_input, _id, { signal }) =>
              new Promise((resolve) =>
                signal.addEventListener('abort', () => {
                  aborted();
                  resolve({});
                }),
              ),
          ],
        },
      ],
    },
    async (peer) => {
      void peer.ask({ subtype: 'hook_callback', callback_id: 'hook_0', input: {} }, 'slow');
      peer.send({ type: 'control_cancel_request', request_id: 'slow' });
      await done;
    },
  );
});

test('the real runtime calls hooks around a tool and takes their words', async (context) => {
  const project = sandbox(context, [
    { toolCalls: [{ name: 'Bash', input: { command: 'echo wrong' } }] },
    { when: { lastToolResultContains: 'replaced' }, text: 'Seen.' },
  ]);
  const events: string[] = [];
  const messages = await collect(
    query({
      prompt: 'Say it.',
      options: {
        ...project.options(),
        allowedTools: ['Bash'],
        hooks: {
          UserPromptSubmit: [{ hooks: [async (input) => void events.push(`prompt ${input.prompt}`)] }],
          PreToolUse: [
            {
              matcher: 'Bash',
              hooks: [
                async (input) => {
                  events.push(`before ${input.tool_name}`);
                  return {
                    hookSpecificOutput: {
                      hookEventName: 'PreToolUse',
                      permissionDecision: 'allow',
                      updatedInput: { command: 'echo right' },
                    },
                  };
                },
              ],
            },
          ],
          PostToolUse: [
            {
              hooks: [
                async (input) => {
                  events.push(`after ${JSON.stringify(input.tool_response).includes('right')}`);
                  return { hookSpecificOutput: { hookEventName: 'PostToolUse', updatedToolOutput: 'replaced' } };
                },
              ],
            },
          ],
          Stop: [{ hooks: [async () => void events.push('stop')] }],
        },
      },
    }),
  );
  assert.deepEqual(events, ['prompt Say it.', 'before Bash', 'after true', 'stop']);
  assert.equal(toolResults(messages)[0]?.text, 'replaced');
  assert.equal(resultOf(messages).result, 'Seen.');
});
