/** What a stream becomes once both agents are proven. */
import type { Duplex } from 'node:stream';
import type { Connection, Stream } from '../transport/types.ts';
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
export function pathOf(connection: Connection, isUpgraded: boolean): LinkPath {
  return {
    ...connection.path,
    isUpgraded: isUpgraded,
    get rttMs() {
      return connection.rtt();
    },
  };
}

/** Gives a stream to or from another node its names. */
export function asQuicLink(stream: Stream, names: LinkNames, upgrade: { readonly isReady: boolean }): LinkStream {
  const { connection, isUpgraded } = stream;
  const packets = () => {
    const { packetsSent, packetsLost } = connection.stats();
    return { sent: packetsSent, lost: packetsLost };
  };
  return Object.assign(
    asLink(stream, names, () => pathOf(connection, isUpgraded)),
    { packets, isOutdated: () => upgrade.isReady && !isUpgraded },
  );
}
