/**
 * Every error that this package raises. Each class has a stable `code`, and its text says what to do next.
 * Failures inside a run are no errors: they arrive as a `result` message with `is_error`.
 */

/** The base of all errors of this package, except {@link OptionsError}, which is a `TypeError`. */
export class QoderAgentError extends Error {
  /** Stable word for programs. */
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** An option is unknown, has the wrong type, or contradicts another one. Thrown before anything starts. */
export class OptionsError extends TypeError {
  readonly code = 'INVALID_OPTIONS';

  constructor(message: string) {
    super(message);
    this.name = 'OptionsError';
  }
}

/** An `auth` option without a credential in it. */
export class AuthNotConfiguredError extends QoderAgentError {
  constructor(message: string) {
    super('auth_not_configured', message);
  }
}

/** The environment variable that should hold the access token is not set. */
export class AuthAccessTokenEnvVarError extends QoderAgentError {
  /** The name of the variable. */
  readonly envVar: string;

  constructor(envVar: string) {
    super(
      'auth_access_token_env_var',
      `The environment variable ${envVar} is not set, so there is no access token. ` +
        'Set it for this process or in options.env, or use accessToken() or qodercliAuth().',
    );
    this.envVar = envVar;
  }
}

/** `resolveModel` took longer than `resolveModelTimeoutMs`. The query fails; no other model is tried. */
export class ModelPolicyTimeoutError extends QoderAgentError {
  /** The limit that passed. */
  readonly timeoutMs: number;

  constructor(timeoutMs: number, purpose: string) {
    super(
      'MODEL_POLICY_TIMEOUT',
      `ModelPolicyTimeoutError: resolveModel gave no model for "${purpose}" within ${timeoutMs} ms. ` +
        'Answer faster, or raise options.resolveModelTimeoutMs.',
    );
    this.timeoutMs = timeoutMs;
  }
}

/** How a runtime process ended. */
export interface ProcessEnd {
  /** The exit code, or null when a signal ended the process. */
  readonly exitCode: number | null;
  /** The signal, or null. */
  readonly signal: string | null;
  /** The last lines of the diagnostics, at most 64 KiB. */
  readonly stderr: string;
}

/** The runtime could not be started, or ended when it should not have. */
export class QoderCliProcessError extends QoderAgentError implements ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stderr: string;

  constructor(message: string, end: Partial<ProcessEnd> = {}, options?: { cause?: unknown; code?: string }) {
    super(options?.code ?? 'QODER_CLI_PROCESS_ERROR', message, options);
    this.exitCode = end.exitCode ?? null;
    this.signal = end.signal ?? null;
    this.stderr = end.stderr ?? '';
  }
}

/** No `qodercli` was found. The text lists the places that were searched. */
export class QoderCliNotFoundError extends QoderCliProcessError {
  constructor(message: string) {
    super(message, {}, { code: 'QODER_CLI_NOT_FOUND' });
  }
}

/** The runtime speaks another version of the protocol than this package. */
export class ProtocolVersionMismatchError extends QoderAgentError {
  constructor(message: string) {
    super('PROTOCOL_VERSION_MISMATCH', message);
  }
}

/** The runtime lacks something that the options depend on. */
export class UnsupportedCliCapabilityError extends QoderAgentError {
  constructor(message: string) {
    super('UNSUPPORTED_CLI_CAPABILITY', message);
  }
}

/** A control request was refused or could not be sent. The text is the runtime's own where there is one. */
export class ControlRequestError extends QoderAgentError {
  /** What was asked, such as `set_model`. */
  readonly request: string;

  constructor(request: string, message: string, code = 'CONTROL_REQUEST_ERROR') {
    super(code, message);
    this.request = request;
  }
}

/** A control request got no answer within `controlRequestTimeoutMs`; it has been cancelled. */
export class ControlRequestTimeoutError extends ControlRequestError {
  constructor(request: string, timeoutMs: number) {
    super(
      request,
      `The control request "${request}" got no answer within ${timeoutMs} ms and was cancelled. ` +
        'Raise options.controlRequestTimeoutMs, or set it to 0 for no limit.',
      'CONTROL_REQUEST_TIMEOUT',
    );
  }
}

/** The runtime wrote a line that is no JSON object. */
export class MessageDecodeError extends QoderAgentError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('MESSAGE_DECODE_ERROR', message, options);
  }
}

/** No session has this ID in the place that was searched. */
export class SessionNotFoundError extends QoderAgentError {
  /** The id. */
  readonly sessionId: string;

  constructor(sessionId: string, message: string) {
    super('SESSION_NOT_FOUND', message);
    this.sessionId = sessionId;
  }
}

/** A session store failed, did not answer, or gave an answer that cannot be used. */
export class SessionStoreError extends QoderAgentError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('SESSION_STORE_ERROR', message, options);
  }
}

/** `options.abortController` was aborted. */
export class AbortError extends QoderAgentError {
  constructor(message = 'The query was aborted.', options?: { cause?: unknown }) {
    super('ABORT_ERR', message, options);
  }
}

/** The text of anything that can be thrown. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}

/**
 * The text of what a function of the user threw, for the runtime and the model: with its type, unless that says
 * nothing. The user sees it whole on the console, because nothing else would ever show where it came from.
 */
export function callbackFailure(what: string, thrown: unknown): string {
  console.error(`qodercli: ${what} failed:`, thrown);
  const text = errorText(thrown);
  const kind = thrown instanceof Error ? thrown.name : 'Error';
  return kind === 'Error' || text === kind ? text : `${kind}: ${text}`;
}
