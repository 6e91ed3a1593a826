/** Tunnels: TCP connections to remote agents. */

/**
 * How a connection reaches the other node: at a public address, on this machine or in its network, at a port that a
 * router was asked to map, through a hole that both sides punched, by a helper that relays, by a TURN server.
 */
export const PATH_KINDS = ['direct', 'lan', 'mapped', 'punched', 'relay', 'turn'] as const;
export type PathKind = (typeof PATH_KINDS)[number];

/** How a link reaches the other agent: as its connection, or within the same daemon. */
export const LINK_PATH_KINDS = [...PATH_KINDS, 'local'] as const;
export type LinkPathKind = (typeof LINK_PATH_KINDS)[number];

/** True where a third node carries every packet, so that the address at the end of the path is not that of the other node. */
export function isRelayed(kind: LinkPathKind): boolean {
  return kind === 'relay' || kind === 'turn';
}

/**
 * Why a tunnel closed: nobody connected for its idle time-out, somebody asked for it, its agent left this node, or its
 * port was taken when the daemon started again.
 */
export const CLOSE_REASONS = ['idle', 'asked', 'agent_gone', 'port_in_use'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

/** Most tunnels of one daemon. */
export const MAX_TUNNELS = 256;
/** Tunnels that closed last, of which a daemon still says why, until it restarts. */
export const MAX_CLOSED_TUNNELS = 32;
/** Seconds without a connection after which a tunnel closes, unless it was asked otherwise. */
export const DEFAULT_IDLE_TIMEOUT_S = 360;
/** Longest idle time-out, seconds: 30 days. */
export const MAX_IDLE_TIMEOUT_S: number = 30 * 24 * 3600;
/** How long the local address of one connection waits for its client, milliseconds. */
export const CLIENT_WAIT_MS = 30_000;
/** The highest TCP or UDP port. */
export const MAX_PORT = 65_535;
