/**
 * The forms of `options.auth`, and how they become what travels in the `initialize` request. A token is
 * never put on the command line or into the environment of the runtime.
 */
import { AuthAccessTokenEnvVarError, AuthNotConfiguredError, OptionsError } from './errors.js';

/** The variable that {@link accessTokenFromEnv} reads unless told otherwise. */
export const DEFAULT_ACCESS_TOKEN_VARIABLE = 'QODER_PERSONAL_ACCESS_TOKEN';

/** A personal access token, or the name of the environment variable that holds it. */
export interface AccessTokenAuth {
  type: 'accessToken';
  accessToken: string | { envVar: string };
}

/** Whatever `qodercli` itself is configured with on this machine. */
export interface QodercliAuth {
  type: 'qodercli';
}

/** How a session authenticates. */
export type AuthOptions = AccessTokenAuth | QodercliAuth;

/** What travels to the runtime. */
export type ResolvedAuth = { type: 'accessToken'; accessToken: string } | { type: 'qodercli' };

/** Authenticates with a personal access token. */
export function accessToken(token: string): AccessTokenAuth {
  return { type: 'accessToken', accessToken: token };
}

/**
 * Authenticates with the token in an environment variable. It is read when `query()` is called:
 * `options.env` first, then the environment of this process.
 */
export function accessTokenFromEnv(envVar: string = DEFAULT_ACCESS_TOKEN_VARIABLE): AccessTokenAuth {
  return { type: 'accessToken', accessToken: { envVar } };
}

/** Authenticates with what `qodercli` is configured with on this machine. */
export function qodercliAuth(): QodercliAuth {
  return { type: 'qodercli' };
}

/** Turns the option into what travels; undefined without the option. */
export function resolveAuth(
  auth: AuthOptions | undefined,
  environment: Record<string, string | undefined>,
): ResolvedAuth | undefined {
  if (auth === undefined) return undefined;
  if (auth.type === 'qodercli') return { type: 'qodercli' };
  if (auth.type !== 'accessToken') {
    throw new OptionsError(
      `options.auth.type must be "accessToken" or "qodercli", not ${JSON.stringify((auth as { type: unknown }).type)}.`,
    );
  }
  const given = auth.accessToken;
  if (typeof given === 'object' && given !== null) {
    const token = environment[given.envVar];
    if (!token) throw new AuthAccessTokenEnvVarError(given.envVar);
    return { type: 'accessToken', accessToken: token };
  }
  if (typeof given !== 'string' || given.trim() === '') {
    throw new AuthNotConfiguredError('The access token in options.auth is empty. Pass a token, or leave auth out.');
  }
  return { type: 'accessToken', accessToken: given };
}
