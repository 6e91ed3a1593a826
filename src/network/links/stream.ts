/** Link streams: transport streams with the names of both agents, and pairs in memory for agents on one daemon. */
import { Duplex } from 'node:stream';
import { STREAM_OPTIONS, StreamError } from '../transport/stream.ts';
import type { Connection, Stream } from '../transport/types.ts';
import { type LinkNames, type LinkPath, type LinkStream, PURPOSES, type Purpose } from './types.ts';

/** True for the purposes that this version knows. */
export function isPurpose(name: string): name is Purpose {
  return PURPOSES.some((purpose) => purpose === name);
}

/** Adds the names of the agents to a stream. The stream itself is reused, so a link has no cost per byte. */
export function asLink(stream: Duplex, names: LinkNames, path: () => LinkPath): LinkStream {
  const { caller, called, purpose, accessToken, nodeKey } = names;
  return Object.assign(stream, { caller, called, purpose, accessToken, nodeKey, path });
}

/**
 * The current path of a connection. The round-trip time is read on access, because it waits for the engine's thread and
 * most callers do not need it.
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

/** Adds the names of the agents to a stream of another node. */
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

type Callback = (error?: Error | null) => void;

class LocalStream extends Duplex {
  #peer: LocalStream | null = null;
  /** A write of the other end that waits for reads on this end. */
  #blocked: Callback | null = null;
  #readEnded = false;
  #finished = false;

  /** @param peer the other end, if it exists */
  constructor(peer?: LocalStream) {
    super(STREAM_OPTIONS);
    if (peer === undefined) return;
    this.#peer = peer;
    peer.#peer = this;
  }

  override _read(): void {
    this.#unblock();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#peer === null || this.#peer.destroyed) return callback(new StreamError('stream_reset'));
    if (this.#peer.push(chunk)) callback();
    else this.#peer.#blocked = callback;
  }

  override _final(callback: Callback): void {
    this.#finished = true;
    if (this.#peer !== null && !this.#peer.destroyed) {
      this.#peer.#readEnded = true;
      this.#peer.push(null);
    }
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const peer = this.#peer;
    this.#peer = null;
    // A reset on this end becomes an error on the other. A fully ended stream needs none.
    if (peer !== null && !peer.destroyed && !(this.#finished && this.#readEnded))
      process.nextTick(() => peer.destroy(new StreamError('stream_reset')));
    callback(error);
    this.#unblock();
  }

  #unblock(): void {
    const written = this.#blocked;
    this.#blocked = null;
    written?.();
  }
}

/** A pair of connected streams. Each end reads what the other writes. */
export function localPair(): readonly [Duplex, Duplex] {
  const near = new LocalStream();
  return [near, new LocalStream(near)];
}
