/** What a stream becomes once both agents are proven. */
import type { Duplex } from 'node:stream';
import { NearStream } from '../near/near-stream.ts';
import type { QuicConnection, QuicStream } from '../quic/types.ts';
import { type LinkNames, type LinkPath, type LinkStream, PURPOSES, type Purpose } from './types.ts';

/** True for the purposes that this version knows. */
export function isPurpose(name: string): name is Purpose {
  return PURPOSES.some((purpose) => purpose === name);
}

/** Gives a stream its names. The stream itself is used on, so a link costs nothing per byte. */
export function asLink(stream: Duplex, names: LinkNames, path: () => LinkPath): LinkStream {
  const { caller, called, purpose, accessToken, nodeKey } = names;
  return Object.assign(stream, { caller, called, purpose, accessToken, nodeKey, path });
}

/**
 * How a connection reaches the other node, now. The round-trip time is asked for where it is read: that waits for the
 * engine's thread, and most want to know whom a link counts for.
 */
export function pathOf(connection: QuicConnection, isNear: boolean): LinkPath {
  return {
    ...connection.path,
    isNear,
    get rttMs() {
      return connection.rtt();
    },
  };
}

/** Gives a stream to or from another node its names. */
export function asQuicLink(stream: QuicStream, names: LinkNames, beside: { readonly isReady: boolean }): LinkStream {
  const { connection } = stream;
  const isNear = stream instanceof NearStream;
  const packets = () => {
    const { packetsSent, packetsLost } = connection.stats();
    return { sent: packetsSent, lost: packetsLost };
  };
  return Object.assign(
    asLink(stream, names, () => pathOf(connection, isNear)),
    { packets, isOutdated: () => beside.isReady && !isNear },
  );
}
