/** Dishonest nodes: they drop, delay, replay, truncate and change what they send to the record network. */
import type { Random } from '../test/support/random.ts';
import type { Schedule } from './schedule.ts';

/** Datagrams that are kept to be replayed. */
const MAX_KEPT = 64;
/** Longest delay, milliseconds. */
const MAX_DELAY_MS = 20_000;
/** Part of the datagrams that are not changed. */
const HONEST = 0.5;
/** First bytes below this belong to the simulated QUIC, which real nodes cannot change unnoticed. */
const FIRST_RECORD_BYTE = 6;

/** Sends datagrams instead of the original. */
export type Lie = (datagram: Uint8Array, send: (datagram: Uint8Array) => void) => void;

export function lies(schedule: Schedule, random: Random): Lie {
  const kept: Uint8Array[] = [];
  return (datagram, send) => {
    if ((datagram[0] ?? 0) < FIRST_RECORD_BYTE || random.chance(HONEST)) return send(datagram);
    kept.push(datagram);
    if (kept.length > MAX_KEPT) kept.splice(random.below(MAX_KEPT), 1);
    const changed = Uint8Array.from(datagram);
    random.pick([
      () => {},
      () => void schedule.after(MAX_DELAY_MS * random.next(), () => send(datagram)),
      () => send(random.pick(kept)),
      () => send(changed.subarray(0, random.below(changed.length))),
      () => {
        changed[random.below(changed.length)] = random.below(256);
        send(changed);
      },
    ])();
  };
}
