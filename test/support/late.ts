/** Clocks, paths and streams that are late at random, as on a busy machine. Nothing may wait for itself then. */
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../src/foundation/clock.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { BulkPace } from '../../src/network/links/bulk-pace.ts';
import type { Stream } from '../../src/network/transport/types.ts';
import type { Random } from './random.ts';

/** Each is one order of events. */
export const LATE_SEEDS: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8];
/** The longest delays of timers, milliseconds. */
const LATE_MS: readonly number[] = [0, 0, 0, 1, 5, 20, 200];
/** Round-trip times on both sides of the limit of long paths, milliseconds. */
const ROUND_TRIPS_MS: readonly number[] = [1, 8, 9.9, 10.1, 14, 40, 300];
const MAX_PIECE_BYTES: number = 512 * 1024;
/** Pauses of a writer or reader, and times in which it blocks all other callbacks, milliseconds. */
const MAX_PAUSE_MS = 30;
const MAX_BLOCKED_MS = 10;

/** A clock whose timers are late at random. */
export function lateClock(clock: Clock, random: Random): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, task) => clock.after(ms + random.pick(LATE_MS) * random.next(), task),
  };
}

function isPaceable(stream: Duplex): stream is Stream & Required<Pick<Stream, 'setPace'>> {
  return 'setPace' in stream && stream.setPace !== undefined && 'connection' in stream;
}

/** Paces the writes of a stream, if it can be paced, on a path whose round-trip time changes at random. */
export function paceAtRandom(stream: Duplex, clock: Clock, random: Random): void {
  if (!isPaceable(stream)) return;
  const { connection } = stream;
  let rttMs = random.pick(ROUND_TRIPS_MS);
  const link = {
    nodeKey: connection.remoteKey,
    path: () => {
      if (random.chance(0.1)) rttMs = random.pick(ROUND_TRIPS_MS);
      return { kind: 'direct', address: '', rttMs, isUpgraded: false } as never;
    },
    packets: () => {
      const { packetsSent, packetsLost } = connection.stats();
      return { sent: packetsSent, lost: packetsLost };
    },
    sentBytes: () => connection.stats().bytesSent,
    isOver: () => stream.destroyed,
  };
  const lossy = new LruCache<string, true>({ maxEntries: 1 }, { clock });
  stream.setPace(new BulkPace(clock, link, lossy, () => {}));
}

async function beLate(random: Random): Promise<void> {
  if (random.chance(0.05)) {
    const end = performance.now() + random.next() * MAX_BLOCKED_MS;
    while (performance.now() < end);
  }
  if (random.chance(0.05)) await pause(random.next() * MAX_PAUSE_MS);
}

/** Writes bytes in pieces of random sizes, with pauses, and ends the stream. */
export async function writeLate(stream: Duplex, bytes: Buffer, random: Random): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + 1 + random.below(MAX_PIECE_BYTES));
    at += piece.length;
    await beLate(random);
    await new Promise<void>((resolve, reject) => {
      stream.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  }
  stream.end();
}

/** Reads a stream to its end. @param pauses false if a stream whose reader pauses is lost */
export async function readLate(stream: Duplex, random: Random, pauses: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  // The other half may still be written after the end.
  const read: AsyncIterable<Buffer> = stream.iterator({ destroyOnReturn: false });
  for await (const chunk of read) {
    chunks.push(Buffer.from(chunk));
    if (pauses) await beLate(random);
  }
  return Buffer.concat(chunks);
}
