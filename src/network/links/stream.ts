/** What a stream becomes once both agents are proven. */
import type { Duplex } from 'node:stream';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { QuicStream } from '../quic/types.ts';
import { type LinkStream, type PathInfo, PURPOSES, type Purpose } from './types.ts';

/** True for the purposes that this version knows. */
export function isPurpose(name: string): name is Purpose {
  return PURPOSES.some((purpose) => purpose === name);
}

/** Who speaks to whom on a stream, and why. */
export interface LinkNames {
  readonly caller: Aid;
  readonly called: Aid;
  readonly purpose: Purpose;
  readonly accessToken: string | undefined;
  /** The key that the other node proved; null on the same daemon. */
  readonly nodeKey: Uint8Array | null;
}

/** Gives a stream its names. The stream itself is used on, so a link costs nothing per byte. */
export function asLink(stream: Duplex, names: LinkNames, path: () => PathInfo): LinkStream {
  const { caller, called, purpose, accessToken, nodeKey } = names;
  return Object.assign(stream, { caller, called, purpose, accessToken, nodeKey, path });
}

/** Gives a stream to or from another node its names. */
export function asQuicLink(stream: QuicStream, names: LinkNames): LinkStream {
  const { connection } = stream;
  const packets = () => {
    const { packetsSent, packetsLost } = connection.stats();
    return { sent: packetsSent, lost: packetsLost };
  };
  const path = () => ({ kind: 'direct', remoteAddress: connection.remoteAddress, rttMs: connection.rtt() }) as const;
  return Object.assign(asLink(stream, names, path), { packets });
}
