/**
 * `canUseTool`: what it gets, what its answers become, and what its failures become.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type CanUseTool, type CanUseToolOptions, type PermissionResult, query } from '@qoder-ai/qoder-agent-sdk';

import { type Peer, type Wire, withPeer } from './support/peer.js';
import { collect } from './support/runtime.js';

const question = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' }, tool_use_id: 'call_1' };

/** Runs a session whose runtime does this, with this callback. */
async function runtimeDoes(script: (peer: Peer) => Promise<void>, canUseTool?: CanUseTool): Promise<void> {
  const { options, scriptDone } = withPeer(
    async (peer) => {
      await peer.handshake();
      await script(peer);
      await peer.turn();
      await peer.untilClosed();
      peer.exit(0);
    },
    canUseTool ? { canUseTool } : {},
  );
  await collect(query({ prompt: 'hello', options }));
  await scriptDone;
}

/** What a callback's answer becomes. */
async function answerTo(callback: CanUseTool): Promise<Wire> {
  let answer: Wire = {};
  await runtimeDoes(async (peer) => {
    answer = await peer.askWell(question);
  }, callback);
  return answer;
}

test('the callback gets everything, in camelCase', async () => {
  const seen: Array<[string, unknown, Omit<CanUseToolOptions, 'signal'>]> = [];
  await runtimeDoes(
    async (peer) => {
      await peer.askWell({
        ...question,
        permission_suggestions: [{ type: 'setMode', mode: 'plan', destination: 'session' }],
        blocked_path: '/etc',
        decision_reason: 'outside',
        decision_reason_type: 'workingDir',
        classifier_approvable: false,
        title: 'Run ls?',
        display_name: 'Bash',
        description: 'Lists files',
        agent_id: 'agent-1',
        exit_plan_mode: { plan: 'p' },
      });
      await peer.askWell({ ...question, blocked_path: null });
    },
    async (toolName, input, { signal, ...rest }) => {
      assert.ok(signal instanceof AbortSignal);
      seen.push([toolName, input, rest]);
      return { behavior: 'allow' };
    },
  );
  assert.deepEqual(seen, [
    [
      'Bash',
      { command: 'ls' },
      {
        toolUseID: 'call_1',
        suggestions: [{ type: 'setMode', mode: 'plan', destination: 'session' }],
        blockedPath: '/etc',
        decisionReason: 'outside',
        decisionReasonType: 'workingDir',
        classifierApprovable: false,
        title: 'Run ls?',
        displayName: 'Bash',
        description: 'Lists files',
        agentID: 'agent-1',
        exitPlanMode: { plan: 'p' },
      },
    ],
    ['Bash', { command: 'ls' }, { toolUseID: 'call_1' }],
  ]);
});

test('allow: with the original arguments, or with others', async () => {
  assert.deepEqual(await answerTo(() => ({ behavior: 'allow' })), {
    behavior: 'allow',
    updatedInput: { command: 'ls' },
  });
  const updatedPermissions = [{ type: 'setMode' as const, mode: 'plan' as const, destination: 'session' as const }];
  const answer = await answerTo(async (_tool, _input, { toolUseID }) => ({
    behavior: 'allow',
    updatedInput: { command: 'pwd' },
    updatedPermissions,
    toolUseID,
    decisionClassification: 'user_temporary',
  }));
  assert.deepEqual(answer, {
    behavior: 'allow',
    updatedInput: { command: 'pwd' },
    updatedPermissions,
    toolUseID: 'call_1',
    decisionClassification: 'user_temporary',
  });
});

test('deny: with a reason, and with an interrupt', async () => {
  assert.deepEqual(await answerTo(() => ({ behavior: 'deny', message: 'no' })), { behavior: 'deny', message: 'no' });
  assert.deepEqual(await answerTo(() => ({ behavior: 'deny', message: 'stop', interrupt: true })), {
    behavior: 'deny',
    message: 'stop',
    interrupt: true,
  });
});

test('an error in the callback denies with its text', async () => {
  const thrown = await answerTo(() => {
    throw new Error('the approval service is down');
  });
  assert.deepEqual(thrown, { behavior: 'deny', message: 'the approval service is down' });
  const rejected = await answerTo(() => Promise.reject(new Error('later')));
  assert.deepEqual(rejected, { behavior: 'deny', message: 'later' });
});

test('an answer without a decision denies', async () => {
  for (const wrong of [undefined, true, 'allow', {}, { behavior: 'ask' }]) {
    const answer = await answerTo(() => wrong as unknown as PermissionResult);
    assert.equal(answer['behavior'], 'deny');
    assert.match(answer['message'], /canUseTool must return/);
  }
});

test('a question without a callback is answered with an error', () =>
  runtimeDoes(async (peer) => {
    const response = await peer.ask(question);
    assert.equal(response['subtype'], 'error');
  }));

test('questions are answered at the same time', async () => {
  const waiting: Array<() => void> = [];
  await runtimeDoes(
    async (peer) => {
      const answers = await Promise.all([1, 2, 3].map((id) => peer.askWell({ ...question, input: { id } })));
      assert.deepEqual(
        answers.map((answer) => answer.updatedInput.id),
        [1, 2, 3],
      );
    },
    async () => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 3) for (const release of waiting.reverse()) release();
      });
      return { behavior: 'allow' };
    },
  );
});

test('a cancelled question aborts its signal and gets no answer', async () => {
  let aborted = false;
  await runtimeDoes(
    async (peer) => {
      let answered = false;
      void peer.ask(question, 'moot').then(() => (answered = true));
      peer.send({ type: 'control_cancel_request', request_id: 'moot' });
      await peer.askWell({ ...question, tool_name: 'Read' });
      assert.equal(answered, false);
    },
    async (toolName, _input, { signal }) => {
      if (toolName === 'Bash') {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        aborted = true;
      }
      return { behavior: 'allow' };
    },
  );
  assert.equal(aborted, true);
});

test('a kind of request that is not known is answered with an error, and the session continues', () =>
  runtimeDoes(async (peer) => {
    const response = await peer.ask({ subtype: 'make_coffee' });
    assert.match(response['error'], /Unsupported control request subtype: make_coffee/);
  }));
