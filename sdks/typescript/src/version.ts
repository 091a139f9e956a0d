/**
 * The versions that this package stands for: its own, and the one of the protocol it speaks with `qodercli`.
 * A runtime that answers with others is refused, see `wire/handshake.ts`.
 */

/** Version of this package. The runtime must have the same major and minor number. */
export const SDK_VERSION = '0.1.0';

/** Version of the control protocol on the pipes between this package and the runtime. */
export const PROTOCOL_VERSION = 1;
