/** What the tunnel capability is asked for and tells. */
import type { LinkPathKind } from '../../foundation/domain/tunnels.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { SavedTunnel } from '../../foundation/store/tunnels.ts';

/** A `localPort` of 0 lets the system choose. `idleTimeoutSec` is the time without a connection until it closes: −1 never, 0 the default. */
export type TunnelRequest = Omit<SavedTunnel, 'id'>;

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
}

/** Who stands behind a local connection that the daemon made to a bound service. */
export interface TunnelSession {
  readonly callerAid: Aid;
  readonly localAid: Aid;
  readonly since: number;
}
