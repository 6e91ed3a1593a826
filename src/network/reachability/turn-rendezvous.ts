/**
 * Messages that two nodes exchange over the record network if no helper can introduce them: a request of the caller and
 * the answer of the called node. Each message is a note record, sealed to a one-time key and signed by a one-time
 * identity. Storage nodes learn nothing but the rendezvous key.
 */
import { randomBytes } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { bytes, CborMap, fromBytes, nullable, text, toBytes, type ValueOf, where } from '../../foundation/cbor-map.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable, pause } from '../../foundation/deadline.ts';
import { X25519_PRIVATE_KEY_BYTES } from '../../foundation/domain/notes.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { SvcError } from '../../foundation/errors.ts';
import { selfDelegation } from '../../foundation/identity/delegation.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';
import { BoxOpener, sealingKeyOf, sealTo } from '../../foundation/keys/sealed-box.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { turnRendezvousKey } from '../../foundation/records/keys.ts';
import { decodeNotePayload, encodeNotePayload, noteHeader, removalHash } from '../../foundation/records/notes.ts';
import { encryptionKeyId, type TurnRendezvous, X25519_PUBLIC_KEY_BYTES } from '../../foundation/records/payloads.ts';
import { type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { RECORD, REMOVAL_TOKEN_BYTES } from '../../foundation/records/types.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodePlace } from '../peers/dial.ts';
import type { RecordNetwork } from '../records/types.ts';
import type { Connection } from '../transport/types.ts';
import { mayDialAt } from './punch-guard.ts';
import { ADDRESS, ATTEMPT_BYTES } from './signals.ts';
import { dialOverTurn, type TurnServers } from './turn/turn-servers.ts';

/** Time to live of a message, seconds: longer than any attempt, even if clocks differ. */
export const RENDEZVOUS_TTL_S: number = CLOCK_SKEW_S + 60;
/** Largest message before sealing, bytes. */
export const MAX_RENDEZVOUS_BYTES = 256;
const INFO = new TextEncoder().encode('svcd/knock/v1\0');

/** An IPv4 address in canonical form with a port above 0. */
const IPV4_ADDRESS = where(ADDRESS, ({ host }) => isIPv4(host));
const VERSION = { version: 1 } as const;

/** The caller's request to meet. */
const REQUEST = new CborMap(
  {
    /** The caller's node key. Other nodes are rejected at the meeting address. */
    caller: ['c', bytes(PUBLIC_KEY_BYTES)],
    attempt: ['s', bytes(ATTEMPT_BYTES)],
    /** The X25519 key to seal the answer to. The answer is stored under it. */
    answerTo: ['k', bytes(X25519_PUBLIC_KEY_BYTES)],
    /** The IPv4 address that the caller's packets are sent from. */
    host: ['h', text(isIPv4)],
    /** The caller's address at a TURN server; null if it has none. */
    listensAt: ['l', nullable(IPV4_ADDRESS)],
  },
  VERSION,
);
/** The answer: the called node's address at a TURN server. */
const ANSWER = new CborMap({ attempt: ['s', bytes(ATTEMPT_BYTES)], listensAt: ['l', IPV4_ADDRESS] }, VERSION);

export type RendezvousRequest = ValueOf<typeof REQUEST>;
export type RendezvousAnswer = ValueOf<typeof ANSWER>;

export function encodeRendezvousRequest(request: RendezvousRequest): Uint8Array {
  return toBytes(REQUEST, request);
}

/** Null if the bytes are invalid. */
export function decodeRendezvousRequest(message: Uint8Array): RendezvousRequest | null {
  return fromBytes(REQUEST, message, MAX_RENDEZVOUS_BYTES);
}

export function encodeRendezvousAnswer(answer: RendezvousAnswer): Uint8Array {
  return toBytes(ANSWER, answer);
}

/** Null if the bytes are invalid. */
export function decodeRendezvousAnswer(message: Uint8Array): RendezvousAnswer | null {
  return fromBytes(ANSWER, message, MAX_RENDEZVOUS_BYTES);
}

/** Seals a message into a record, to be stored under `turnRendezvousKey(to)`. Throws if the key is invalid. */
export function sealRendezvousMessage(message: Uint8Array, to: Uint8Array, clock: Clock): SignedRecord {
  const header = {
    mailbox: turnRendezvousKey(to),
    // The record expires soon, so no removal token is needed.
    removalHash: removalHash(randomBytes(REMOVAL_TOKEN_BYTES)),
    keyId: encryptionKeyId(to),
  };
  const box = sealTo(to, message, { info: INFO, aad: noteHeader(header) });
  const payload = encodeNotePayload({ ...header, ...box });
  const identity = KeyPair.generate();
  const delegation = selfDelegation(identity);
  const timestamp = unixSeconds(clock);
  const content = {
    aid: delegation.agent,
    type: RECORD.note,
    seq: 1,
    timestamp,
    ttl: RENDEZVOUS_TTL_S,
    payload,
    delegation,
  };
  return signRecord(content, identity);
}

/** The message in a record; null if it contains none for this key. */
export function openRendezvousMessage({ payload }: SignedRecord, opener: BoxOpener): Uint8Array | null {
  const note = decodeNotePayload(payload);
  if (note === null) return null;
  try {
    return opener.open(note, { info: INFO, aad: noteHeader(note) });
  } catch {
    return null;
  }
}

/*
 * The called side. A node without helpers polls a rendezvous key in the record network, which its endpoint record
 * names, for callers that can use a TURN server. Polling costs a lookup every few seconds, so nodes with helpers do not
 * poll.
 */

/** Polling interval, milliseconds. */
export const RENDEZVOUS_POLL_MS = 4_000;
/**
 * Number of consecutive polls without a helper before the rendezvous is published. Helpers are usually found within
 * seconds.
 */
export const UNHELPED_POLLS = 3;
/** Maximum number of requests to read in one poll. */
export const MAX_RENDEZVOUS_REQUESTS = 8;
/**
 * Maximum number of processed records to remember, and for how long, milliseconds. After that time they are no longer
 * valid.
 */
const MAX_PROCESSED = 1024;
const PROCESSED_TTL_MS: number = (RENDEZVOUS_TTL_S + 2 * CLOCK_SKEW_S) * 1000;

interface TurnRendezvousServerDependencies extends NodeParts {
  readonly nodeKey: Uint8Array;
  readonly records: Pick<RecordNetwork, 'put' | 'list'>;
  /** This node's host as other nodes see it; null if unknown. */
  readonly seenHost: () => string | null;
  /** True if strangers cannot reach this node and it has no helper. */
  readonly isNeeded: () => boolean;
  /** Called when the published rendezvous changes; null if there is none. */
  readonly onRendezvous: (place: TurnRendezvous | null) => void;
  /** Meets a caller. Returns the address that the caller must dial, or null if they meet at the caller's address. */
  readonly meet: (request: RendezvousRequest, ownHost: string) => Promise<Address | null>;
}

export class TurnRendezvousServer implements Component {
  readonly #deps: TurnRendezvousServerDependencies;
  /** A new key for each start of the process. */
  readonly #opener = new BoxOpener(sealingKeyOf(randomBytes(X25519_PRIVATE_KEY_BYTES)));
  /** Digests of processed records. */
  readonly #processed: LruCache<string, string>;
  readonly #stop = new AbortController();
  #polls: RepeatingTask | null = null;
  #unhelpedPolls = 0;
  #host: string | null = null;

  constructor(dependencies: TurnRendezvousServerDependencies) {
    this.#deps = dependencies;
    this.#processed = new LruCache({ maxEntries: MAX_PROCESSED, ttlMs: PROCESSED_TTL_MS }, dependencies);
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'cannot check the TURN rendezvous');
    this.#polls = every(this.#deps.clock, { periodMs: RENDEZVOUS_POLL_MS, onError }, () => this.#poll());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#polls?.stop();
    await this.#polls?.idle();
  }

  async #poll(): Promise<void> {
    const { isNeeded, seenHost, records } = this.#deps;
    const seen = isNeeded() ? seenHost() : null;
    this.#unhelpedPolls = seen === null || !isIPv4(seen) ? 0 : this.#unhelpedPolls + 1;
    const host = this.#unhelpedPolls < UNHELPED_POLLS ? null : seen;
    if (host !== this.#host)
      this.#deps.onRendezvous(host === null ? null : { publicKey: this.#opener.publicKey, host });
    this.#host = host;
    if (host === null) return;
    const { signal } = this.#stop;
    const known = new Set(this.#processed.values());
    const options = { limit: MAX_RENDEZVOUS_REQUESTS, known, signal };
    const found = await records.list(turnRendezvousKey(this.#opener.publicKey), [RECORD.note], options);
    await Promise.all(found.map((record) => this.#process(record, host)));
  }

  async #process(record: SignedRecord, ownHost: string): Promise<void> {
    const { nodeKey, meet, log } = this.#deps;
    const digest = toHex(recordDigest(record.encoded));
    this.#processed.set(digest, digest);
    const message = openRendezvousMessage(record, this.#opener);
    const request = message === null ? null : decodeRendezvousRequest(message);
    if (request === null || equalBytes(request.caller, nodeKey)) return;
    try {
      const listensAt = await meet(request, ownHost);
      if (listensAt !== null) await this.#answer(request, listensAt);
    } catch (error) {
      log.debug({ error }, 'cannot meet a caller at a TURN server');
    }
  }

  async #answer({ attempt, answerTo }: RendezvousRequest, listensAt: Address): Promise<void> {
    const { records, clock } = this.#deps;
    const record = sealRendezvousMessage(encodeRendezvousAnswer({ attempt, listensAt }), answerTo, clock);
    await records.put(turnRendezvousKey(answerTo), record, { signal: this.#stop.signal });
  }
}

/*
 * The caller's side. Reaches a node without helpers through a TURN server of either node, by a request over the record
 * network.
 */

/** Interval between checks for the answer, milliseconds. */
export const ANSWER_POLL_MS = 500;
/** Maximum number of answers to read at a time. Any node can store some. */
const MAX_ANSWERS = 8;

interface TurnRendezvousClientDependencies {
  readonly clock: Clock;
  readonly nodeKey: Uint8Array;
  readonly records: Pick<RecordNetwork, 'put' | 'list'>;
  /** This node's host as other nodes see it; null if unknown. */
  readonly seenHost: () => string | null;
  /** This node's TURN servers. */
  readonly turn: TurnServers;
  /** Dials an address over a path of kind `turn`; the packets are sent to `remote`. */
  readonly dial: (address: Address, nodeKey: Uint8Array, remote: Address, signal: AbortSignal) => Promise<Connection>;
}

export class TurnRendezvousClient {
  readonly #deps: TurnRendezvousClientDependencies;

  constructor(dependencies: TurnRendezvousClientDependencies) {
    this.#deps = dependencies;
  }

  /** Whether the node has a rendezvous, and one of the two nodes has a TURN server. */
  mayLead({ meeting, hasTurn }: NodePlace): boolean {
    return meeting !== undefined && (this.#deps.turn.isAvailable || hasTurn === true);
  }

  /**
   * Meets a node at this node's TURN server, or at the other node's if this node has none.
   * @throws SvcError `connect_failed`, or the signal's reason
   */
  async meet({ nodeKey, meeting }: NodePlace, signal: AbortSignal): Promise<Connection> {
    const { turn, dial, seenHost, nodeKey: caller } = this.#deps;
    const host = seenHost();
    if (meeting === undefined || host === null) throw new SvcError('connect_failed');
    const attempt = new Uint8Array(randomBytes(ATTEMPT_BYTES));
    const opener = new BoxOpener(sealingKeyOf(randomBytes(X25519_PRIVATE_KEY_BYTES)));
    const sendRequest = async (listensAt: Address | null): Promise<void> => {
      const message = encodeRendezvousRequest({ caller, attempt, answerTo: opener.publicKey, host, listensAt });
      await this.#put(message, meeting.publicKey, signal);
    };
    if (turn.isAvailable)
      return await dialOverTurn(turn, { peerHost: meeting.host, token: attempt }, async (carrier) => {
        await sendRequest(carrier.relayed);
        await abortable(carrier.peerArrived, signal);
        return await dial(carrier.local, nodeKey, carrier.server, signal);
      });
    await sendRequest(null);
    const at = await this.#answer(opener, attempt, signal);
    if (!mayDialAt(at, { host, port: 0 }))
      throw new SvcError('connect_failed', {
        message: 'The node sent an address that must not be dialed: a private host, or a port below 1024.',
      });
    return await dial(at, nodeKey, at, signal);
  }

  async #put(message: Uint8Array, to: Uint8Array, signal: AbortSignal): Promise<void> {
    const { records, clock } = this.#deps;
    const { replicas, isHere } = await records.put(turnRendezvousKey(to), sealRendezvousMessage(message, to, clock), {
      signal,
    });
    if (replicas === 0 && isHere !== true)
      throw new SvcError('connect_failed', { message: 'Cannot reach any node of the record network.' });
  }

  /** Polls until the node has answered. */
  async #answer(opener: BoxOpener, attempt: Uint8Array, signal: AbortSignal): Promise<Address> {
    const { records, clock } = this.#deps;
    for (;;) {
      const found = await records.list(turnRendezvousKey(opener.publicKey), [RECORD.note], {
        limit: MAX_ANSWERS,
        signal,
      });
      const messages = found.map((record) => openRendezvousMessage(record, opener));
      const answers = messages.map((message) => (message === null ? null : decodeRendezvousAnswer(message)));
      const answer = answers.find((one) => one !== null && equalBytes(one.attempt, attempt));
      if (answer !== undefined && answer !== null) return answer.listensAt;
      await pause(clock, ANSWER_POLL_MS, signal);
    }
  }
}
