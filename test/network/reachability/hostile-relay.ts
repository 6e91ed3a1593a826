/** Sockets of a relay that drops, replays and damages datagrams. */
import type { RelaySocket } from '../../../src/network/reachability/relay.ts';

/** Intervals of dropped datagrams, and of damaged copies. */
const DROP_EVERY = 97;
const SPOIL_EVERY = 13;
/** Datagrams kept for replay. Each new one replays the oldest. */
const KEPT = 64;
/** How often each datagram is sent. */
const COPIES = 2;

/** Wraps sockets that share the datagrams for replay. */
export function hostileSockets(create: () => RelaySocket): () => RelaySocket {
  let sent = 0;
  return () => {
    const socket = create();
    const old: Uint8Array[] = [];
    return {
      on: (event, listener) => socket.on(event, listener),
      bind: (port, host) => socket.bind(port, host),
      address: () => socket.address(),
      close: () => socket.close(),
      trySend: (datagram, port, host) => {
        sent++;
        // The engine reuses its buffer for the next datagram.
        old.push(Uint8Array.from(datagram));
        const replayed = old.length > KEPT ? old.shift() : undefined;
        const give = (bytes: Uint8Array): void => socket.trySend(bytes, port, host);
        if (sent % DROP_EVERY !== 0) for (let i = 0; i < COPIES; i++) give(datagram);
        if (replayed !== undefined) give(replayed);
        if (sent % SPOIL_EVERY === 0) give(spoiled(datagram));
      },
    };
  };
}

/** A copy with one changed bit in the middle. */
function spoiled(datagram: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(datagram);
  const middle = copy.length >> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}
