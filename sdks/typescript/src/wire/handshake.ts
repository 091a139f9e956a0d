/**
 * The `initialize` request, and whether the runtime's answer fits this package.
 */
import { ProtocolVersionMismatchError, UnsupportedCliCapabilityError } from '../errors.js';
import type { CheckedOptions } from '../options/validate.js';
import type { InitializationResult } from '../types/query.js';
import { PROTOCOL_VERSION, SDK_VERSION } from '../version.js';
import type { WireObject } from './control.js';
import type { HookRegistry } from './hooks.js';

/** The `initialize` request for these options. */
export function initializeRequest(
  options: CheckedOptions,
  hooks: HookRegistry,
): WireObject & { subtype: string } {
  const request: WireObject & { subtype: string } = {
    subtype: 'initialize',
    protocolVersion: PROTOCOL_VERSION,
    sdk: { name: 'typescript', version: SDK_VERSION },
    hooks: hooks.description,
  };
  const add = (name: string, value: unknown): void => {
    if (value !== undefined) request[name] = value;
  };
  add('auth', options.resolvedAuth);
  add('agents', options.agents);
  add('skills', Array.isArray(options.skills) ? options.skills : undefined);
  const prompt = options.systemPrompt;
  if (typeof prompt === 'object' && prompt.type === 'preset') {
    add('excludeDynamicSections', prompt.excludeDynamicSections);
  }
  add('proxy', options.proxy);
  add('planModeInstructions', options.planModeInstructions);
  add('toolConfig', options.toolConfig);
  add('promptSuggestions', options.promptSuggestions);
  add('forwardSubagentText', options.forwardSubagentText);
  add('customContext', options.customContext);
  add('goalMaxTurns', options.goalMaxTurns);
  add('modelPolicy', options.resolveModel && true);
  add('elicitation', options.onElicitation && true);
  add('mcpOAuth', options.onMcpOAuthRequired && true);
  add('authExpired', options.onAuthExpired && true);
  return request;
}

/** Refuses a runtime that does not fit; otherwise its answer with empty lists for what is missing. */
export function checkInitialization(response: WireObject, hooks: HookRegistry): InitializationResult {
  const protocol = response['protocol_version'];
  if (String(protocol) !== String(PROTOCOL_VERSION)) {
    const spoken = protocol === undefined ? 'no version' : `version ${String(protocol)}`;
    throw new ProtocolVersionMismatchError(
      `This package speaks version ${PROTOCOL_VERSION} of the protocol, and the runtime ${spoken}. ` +
        'Install versions of qodercli and @qoder-ai/qoder-agent-sdk that belong together.',
    );
  }
  const version = response['qodercli_version'];
  if (typeof version === 'string' && majorMinor(version) !== majorMinor(SDK_VERSION)) {
    throw new ProtocolVersionMismatchError(
      `This package is version ${SDK_VERSION}, and the runtime is version ${version}. ` +
        'Install versions of qodercli and @qoder-ai/qoder-agent-sdk with the same major and minor number.',
    );
  }
  if (hooks.needsFailurePolicy && response['hook_on_failure_supported'] !== true) {
    throw new UnsupportedCliCapabilityError(
      'A hook sets onFailure, which this runtime does not support. Update qodercli, or leave onFailure out.',
    );
  }
  if (hooks.size > 0 && response['hooks_applied'] === false) {
    throw new UnsupportedCliCapabilityError('The runtime did not apply options.hooks. Check its settings for hooks.');
  }
  return {
    ...response,
    commands: listOf(response['commands']),
    agents: listOf(response['agents']),
    models: listOf(response['models']),
    skills: listOf(response['skills']),
    plugins: listOf(response['plugins']),
    capabilities: listOf(response['capabilities']),
    account: (response['account'] ?? {}) as InitializationResult['account'],
    output_style: String(response['output_style'] ?? 'default'),
    protocol_version: protocol as number,
    qodercli_version: String(version ?? ''),
  };
}

function listOf<Element>(value: unknown): Element[] {
  return Array.isArray(value) ? (value as Element[]) : [];
}

function majorMinor(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}
