/** The sockets of a relay that drops, replays and spoils what it should hand over. */
import type { RelaySocket } from '../../../src/network/reachability/relay.ts';

/** Of so many datagrams one is dropped, and one is followed by a spoiled copy. */
const DROP_EVERY = 97;
const SPOIL_EVERY = 13;
/** Datagrams that are kept for being replayed, the oldest with each new one. */
const KEPT = 64;
/** How often each is handed over at once. */
const COPIES = 2;

/** Wraps sockets so that all of them share what is replayed. */
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
        // What the engine gives is its own memory, used again for the next one.
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

/** A copy with one bit changed, in its middle. */
function spoiled(datagram: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(datagram);
  const middle = copy.length >> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}
