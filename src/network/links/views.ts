/** What the pool of connections tells people. */
import type { Address } from '../../foundation/address.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ConnectionStats } from '../quic/types.ts';

/** Totals since the start. */
export interface LinkStats {
  readonly connections: number;
  readonly streams: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** One connection, for people who look for a fault. */
export interface ConnectionView extends ConnectionStats {
  readonly node: Aid;
  readonly address: Address;
  readonly outbound: boolean;
  /** New streams of ours go here. */
  readonly current: boolean;
  readonly streams: number;
  readonly rttMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly openedAt: number;
}
