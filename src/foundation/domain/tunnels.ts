/** Tunnels: TCP connections to remote agents. */

/**
 * Paths to another node: a public address, the same machine or network, a mapped port, a hole punched by both sides, a
 * relay of a helper, a TURN server, or UDP over TLS through a helper.
 */
export const PATH_KINDS = ['direct', 'lan', 'mapped', 'punched', 'relay', 'turn', 'tls'] as const;
export type PathKind = (typeof PATH_KINDS)[number];

/** Paths to another agent: the path of its connection, or none within the same daemon. */
export const LINK_PATH_KINDS = [...PATH_KINDS, 'local'] as const;
export type LinkPathKind = (typeof LINK_PATH_KINDS)[number];

/** True if a third node forwards every packet. */
export function isRelayed(kind: LinkPathKind): boolean {
  return kind === 'relay' || kind === 'turn' || kind === 'tls';
}

/**
 * Why a tunnel closed: idle timeout, a request, the agent left this node, or the port was in use when the daemon
 * restarted.
 */
export const CLOSE_REASONS = ['idle', 'asked', 'agent_gone', 'port_in_use'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

/** Maximum number of tunnels of one daemon. */
export const MAX_TUNNELS = 256;
/** Closed tunnels that are still listed until a restart. */
export const MAX_CLOSED_TUNNELS = 32;
/** Default idle timeout of a tunnel, seconds. */
export const DEFAULT_IDLE_TIMEOUT_S = 360;
/** Longest idle timeout, seconds: 30 days. */
export const MAX_IDLE_TIMEOUT_S: number = 30 * 24 * 3600;
/** The local port of a single connection waits this long for its client, milliseconds. */
export const CLIENT_WAIT_MS = 30_000;
/** The highest TCP or UDP port. */
export const MAX_PORT = 65_535;

/** Why a port cannot be opened. */
export const PORT_TROUBLES = ['in_use', 'not_permitted', 'unusable'] as const;
export type PortTrouble = (typeof PORT_TROUBLES)[number];
