/** What the tunnel capability is asked for and tells. */
import type { CloseReason, LinkPathKind } from '../../foundation/domain/tunnels.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { SavedTunnel } from '../../foundation/store/tunnels.ts';

/** A `localPort` of 0 lets the system choose. `idleTimeoutSec` is the time without a connection until it closes: −1 never. */
export type TunnelRequest = Omit<SavedTunnel, 'id'>;

/** A tunnel as it is asked for: `idleTimeoutSec` of 0 is the default; left out, it is the default too, or what it was. */
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
  /** When the first of them is given up, milliseconds. */
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
  /** Connections that lost their path and are held for another one; null if all have one. */
  readonly noPath: NoPath | null;
  /** The latest; null where all connections were served. */
  readonly lastError: TunnelFailure | null;
}

/** A tunnel that is no more, as it was at its end. */
export interface ClosedTunnel extends TunnelInfo {
  readonly closedAt: number;
  readonly reason: CloseReason;
}

/** Who stands behind a local connection that the daemon made to a bound service. */
export interface TunnelSession {
  readonly callerAid: Aid;
  readonly localAid: Aid;
  readonly since: number;
}
