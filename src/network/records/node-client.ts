/** Requests to other nodes: to find records and nodes, and to store records. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import { decodeRecord, MAX_RECORD_BYTES, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import type { NodeRequests } from '../node-requests.ts';
import { mayDialPort } from '../transport/udp-socket.ts';
import type { NodeAnswer } from './closest-nodes.ts';
import type { DhtEngine } from './engine.ts';
import type { StoreCode } from './messages.ts';
import {
  COMMAND,
  decodeFindReply,
  decodeRemoveReply,
  decodeStoreReply,
  encodeFindRequest,
  encodeNodeRequest,
  type FindReply,
  type FindRequest,
  type StoreReply,
} from './messages.ts';
import { PeerClocks } from './peer-health.ts';

/** Time limit for sending a record that does not fit a datagram, in ms. */
const LARGE_STORE_TIMEOUT_MS = 5000;
/** Nodes whose keys and tokens are remembered. */
const MAX_KEYS = 2048;
/** Time for which a token is used, in ms. Nodes accept it for longer. */
const TOKEN_USED_MS = 240_000;

/** A node's answer to a record. `newer` is the verified record that it has instead. */
export interface StoreVerdict {
  readonly code: StoreCode;
  readonly newer: SignedRecord | null;
  /** The token that removed the note according to the node; not verified. */
  readonly token: Uint8Array | null;
}

export class NodeClient {
  /** How our clock compares with the clocks of nodes that answered lately. */
  readonly clocks = new PeerClocks();
  /** Notified with our address as each answering node sees it. */
  readonly observed: Listeners<[reporter: Address, seen: Address]> = new Listeners();
  /** The key that each node stated last, by address. Not verified. */
  readonly #keys = new LruCache<string, Uint8Array>({ maxEntries: MAX_KEYS });
  /** The last token of each node, by address. Busy nodes answer proven addresses first. */
  readonly #tokens: LruCache<string, Uint8Array>;
  readonly #clock: Clock;
  readonly #verifier: RecordVerifier;
  readonly #nodeRequests: NodeRequests;
  readonly #tag: Uint8Array;
  readonly #engine: Pick<DhtEngine, 'request'>;

  constructor(
    clock: Clock,
    verifier: RecordVerifier,
    nodeRequests: NodeRequests,
    tag: Uint8Array,
    engine: Pick<DhtEngine, 'request'>,
  ) {
    this.#tokens = new LruCache({ maxEntries: MAX_KEYS, ttlMs: TOKEN_USED_MS }, { clock });
    this.#clock = clock;
    this.#verifier = verifier;
    this.#nodeRequests = nodeRequests;
    this.#tag = tag;
    this.#engine = engine;
  }

  /** Queries a node about a key, with a request from `encodeFindRequest`. Null without a valid answer. */
  async find(address: Address, id: Uint8Array, key: Uint8Array, value: Uint8Array): Promise<NodeAnswer | null> {
    const askedAt = this.#clock.now();
    const name = formatAddress(address);
    const token = this.#tokens.get(name) ?? null;
    const reply = await this.#engine.request(address, { command: COMMAND.find, target: key, value, token });
    if (!reply?.value) return null;
    if (reply.token !== null) this.#tokens.set(name, reply.token);
    this.observed.notify(address, reply.to);
    const found = decodeFindReply(reply.value);
    if (found === null) return null;
    this.clocks.heard(address, found.time, askedAt, this.#clock.now());
    this.#keys.set(name, found.nodeKey);
    // A node chooses this port, so a port that may belong to another service counts as none.
    const known = mayDialPort(found.quicPort) ? found : { ...found, quicPort: 0 };
    return { address, id, reply: known, token: reply.token };
  }

  /** The key that a node stated; null if it has not answered lately. */
  keyOf(address: Address): Uint8Array | null {
    return this.#keys.peek(formatAddress(address)) ?? null;
  }

  /** As `find`, for a node that has answered before. */
  async ask(at: NodeAnswer, key: Uint8Array, request: FindRequest): Promise<FindReply | null> {
    return (await this.find(at.address, at.id, key, encodeFindRequest(request)))?.reply ?? null;
  }

  /** Sends a record to a node, in a datagram if it fits. Null without a valid answer. */
  async store(at: NodeAnswer, key: Uint8Array, record: SignedRecord): Promise<StoreVerdict | null> {
    const isSmall = record.encoded.length <= MAX_DATAGRAM_RECORD_BYTES;
    const reply = await (isSmall ? this.#storeSmall(at, key, record) : this.#storeLarge(at, key, record));
    if (reply === null) return null;
    return { code: reply.code, newer: this.#readNewer(reply, key, record), token: reply.token ?? null };
  }

  /** Removes notes at a node, with a request from `encodeRemoveRequest`. Returns how many it had. */
  async removeNotes(at: NodeAnswer, key: Uint8Array, value: Uint8Array): Promise<number> {
    const reply = await this.#change(at, COMMAND.remove, key, value);
    return (reply && decodeRemoveReply(reply)) ?? 0;
  }

  async #storeSmall(at: NodeAnswer, key: Uint8Array, record: SignedRecord): Promise<StoreReply | null> {
    const reply = await this.#change(at, COMMAND.store, key, record.encoded);
    return reply && decodeStoreReply(reply);
  }

  /** Sends a request that changes what a node has. Null without an answer. */
  async #change({ address, token }: NodeAnswer, command: number, target: Uint8Array, value: Uint8Array) {
    const reply = await this.#engine.request(address, { command, target, value, token }, { retry: true });
    return reply?.value ?? null;
  }

  async #storeLarge(at: NodeAnswer, key: Uint8Array, record: SignedRecord): Promise<StoreReply | null> {
    const { nodeKey, quicPort } = at.reply;
    if (quicPort === 0) return null;
    try {
      const address = { host: at.address.host, port: quicPort };
      const body = encodeNodeRequest({ kind: 'store', tag: this.#tag, key, record: record.encoded });
      const reply = await this.#nodeRequests.request('record', { nodeKey, address }, body, {
        timeoutMs: LARGE_STORE_TIMEOUT_MS,
      });
      return decodeStoreReply(reply, MAX_RECORD_BYTES + 256);
    } catch {
      return null;
    }
  }

  /** The record that a node has instead, if it is valid and of the same kind. */
  #readNewer(reply: StoreReply, key: Uint8Array, ours: SignedRecord): SignedRecord | null {
    if (reply.code !== 'newer' || reply.record === undefined) return null;
    try {
      const newer = decodeRecord(Uint8Array.from(reply.record));
      if (newer.aid !== ours.aid || newer.type !== ours.type || !belongsUnderKey(newer, key)) return null;
      this.#verifier.verify(newer, unixSeconds(this.#clock));
      return newer;
    } catch {
      return null;
    }
  }
}
