/** Fake nodes of the record network, and their answers. */
import type { Address } from '../../src/foundation/address.ts';
import type { NodeAnswer } from '../../src/network/records/closest-nodes.ts';
import type { FindReply } from '../../src/network/records/messages.ts';

/** Each number is another public host, up to 1,024 in different blocks. */
export function nodeAddress(n: number): Address {
  return { host: `${45 + ((n >> 8) & 3)}.${n & 255}.${n >> 10}.1`, port: 4121 };
}

/** A node that has nothing unless configured otherwise. */
export function answerOf(to: Address, id: Uint8Array, says: Partial<FindReply> = {}): NodeAnswer {
  const reply = {
    nodeKey: new Uint8Array(32),
    quicPort: 1,
    nodes: [],
    time: 0,
    count: 0,
    digest: new Uint8Array(8),
    records: [],
    summaries: [],
    ...says,
  };
  return { address: to, id, reply, token: new Uint8Array(8) };
}
