/** What a stream becomes once both agents are proven. */
import { Duplex } from 'node:stream';
import { STREAM_OPTIONS, StreamError } from '../transport/stream.ts';
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

type Callback = (error?: Error | null) => void;

class LocalStream extends Duplex {
  #peer: LocalStream | null = null;
  /** The peer's write that waits until we are read. */
  #blocked: Callback | null = null;
  #readEnded = false;
  #finished = false;

  /** @param peer the other end, where that was made before */
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
    // What was cut off here breaks there; what had ended in both directions has nothing left to break.
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

/** A pair of connected streams: what is written to one is read from the other. */
export function localPair(): readonly [Duplex, Duplex] {
  const near = new LocalStream();
  return [near, new LocalStream(near)];
}
