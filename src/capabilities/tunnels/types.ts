/** Requests and results of the tunnel capability. */
import type { CloseReason, LinkPathKind } from '../../foundation/domain/tunnels.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { SavedTunnel } from '../../foundation/store/tunnels.ts';

/**
 * If `localPort` is 0, the system chooses one. `idleTimeoutSec`: a tunnel closes after this time without a connection;
 * −1 for never.
 */
export type TunnelRequest = Omit<SavedTunnel, 'id'>;

/**
 * A requested tunnel. `idleTimeoutSec` 0 is the default. If omitted, an open tunnel keeps its value, and a new one gets
 * the default.
 */
export type TunnelWish = Omit<TunnelRequest, 'idleTimeoutSec'> & { readonly idleTimeoutSec?: number | undefined };

/** Why a connection of a tunnel could not be served. */
export interface TunnelFailure {
  /** A code of the catalogue. */
  readonly code: string;
  readonly message: string;
  readonly at: number;
}

/** Connections of a tunnel without a path. */
export interface NoPath {
  /** When the first of them lost it, milliseconds. */
  readonly since: number;
  /** When the first of them ends if no path is found, milliseconds. */
  readonly heldUntil: number;
  readonly connections: number;
}

export interface TunnelInfo {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** `host:port` that clients connect to. */
  readonly listen: string;
  readonly path: LinkPathKind;
  readonly remoteAddr: string;
  readonly rttMs: number;
  readonly openedAt: number;
  readonly lastActivityAt: number;
  readonly activeConns: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly idleTimeoutSec: number;
  /** Connections that lost their path and wait for another one. Null if all have one. */
  readonly noPath: NoPath | null;
  /** The latest failure. Null if all connections were served. */
  readonly lastError: TunnelFailure | null;
}

/** A closed tunnel, as it was at its end. */
export interface ClosedTunnel extends TunnelInfo {
  readonly closedAt: number;
  readonly reason: CloseReason;
}

/** The agents of a local connection that the daemon made to a bound service. */
export interface TunnelSession {
  readonly callerAid: Aid;
  readonly localAid: Aid;
  readonly since: number;
}
