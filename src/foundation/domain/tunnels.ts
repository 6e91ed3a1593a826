/** Tunnels: TCP connections to remote agents. */

/** How a connection reaches the other node. */
export const PATH_KINDS = ['direct', 'punched', 'turn', 'relay', 'local'] as const;
export type PathKind = (typeof PATH_KINDS)[number];

/** Most tunnels of one daemon. */
export const MAX_TUNNELS = 256;
/** Seconds without a connection after which a tunnel closes, unless it was asked otherwise. */
export const DEFAULT_IDLE_TIMEOUT_S = 360;
/** Longest idle time-out, seconds: 30 days. */
export const MAX_IDLE_TIMEOUT_S: number = 30 * 24 * 3600;
/** How long the local address of one connection waits for its client, milliseconds. */
export const CLIENT_WAIT_MS = 30_000;
/** The highest TCP or UDP port. */
export const MAX_PORT = 65_535;
