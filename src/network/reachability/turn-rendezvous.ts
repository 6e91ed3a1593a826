/**
 * What two nodes tell each other over the record network where no helper introduces them: the one that calls knocks, and
 * the other one says where it comes to. Each message is a note record, sealed to a key that was made for it, and signed
 * by an identity that was made for it: who keeps it learns nothing but the meeting place.
 */
import { randomBytes } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes } from '../../foundation/cbor.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { X25519_PRIVATE_KEY_BYTES } from '../../foundation/domain/notes.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { SvcError } from '../../foundation/errors.ts';
import { selfDelegation } from '../../foundation/identity/delegation.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';
import { BoxOpener, sealingKeyOf, sealTo } from '../../foundation/keys/sealed-box.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
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
import { ATTEMPT_BYTES } from './signals.ts';
import { dialOverTurn, type TurnAccess } from './turn/turn-servers.ts';

/** Life of a message, seconds: longer than any attempt, by whatever clock. */
export const KNOCK_TTL_S: number = CLOCK_SKEW_S + 60;
/** Largest message before it is sealed, bytes. */
export const MAX_KNOCK_BYTES = 256;
/** The version of these messages. */
const KNOCK_VERSION = 1;
const INFO = new TextEncoder().encode('svcd/knock/v1\0');

/** What the caller says. */
export interface Knock {
  /** Its node's public key: nobody else is let in at the place of meeting. */
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  /** The X25519 key that the answer is sealed to, and found by. */
  readonly answerTo: Uint8Array;
  /** The IPv4 address that its packets come from. */
  readonly host: string;
  /** Its address at a TURN server; null where it has none. */
  readonly listensAt: Address | null;
}

/** What the called node says: its own address at a TURN server. */
export interface KnockAnswer {
  readonly attempt: Uint8Array;
  readonly listensAt: Address;
}

function text(address: Address | null): string | undefined {
  return address === null ? undefined : formatAddress(address);
}

/** An IPv4 address in its one spelling and a port above 0; undefined for anything else. */
function addressOf(value: unknown): Address | undefined {
  const address = typeof value === 'string' ? parseAddress(value) : null;
  if (address === null || address.port === 0 || !isIPv4(address.host)) return undefined;
  return formatAddress(address) === value ? address : undefined;
}

function decode(bytes: Uint8Array, required: readonly string[], optional: readonly string[] = []) {
  try {
    const map = asMap(decodeCbor(bytes, MAX_KNOCK_BYTES), ['v', ...required], optional);
    return map?.['v'] === KNOCK_VERSION ? map : null;
  } catch {
    return null;
  }
}

function encode(fields: Readonly<Record<string, CborValue | undefined>>): Uint8Array {
  return encodeCbor({ ...fields, v: KNOCK_VERSION });
}

export function encodeKnock({ caller, attempt, answerTo, host, listensAt }: Knock): Uint8Array {
  return encode({ c: caller, h: host, k: answerTo, l: text(listensAt), s: attempt });
}

/** Null where the bytes are none. */
export function decodeKnock(bytes: Uint8Array): Knock | null {
  const map = decode(bytes, ['c', 'h', 'k', 's'], ['l']);
  const { c: caller, h: host, k: answerTo, l: at, s: attempt } = map ?? {};
  const listensAt = at === undefined ? null : addressOf(at);
  if (!isBytes(caller, PUBLIC_KEY_BYTES) || !isBytes(answerTo, X25519_PUBLIC_KEY_BYTES)) return null;
  if (!isBytes(attempt, ATTEMPT_BYTES) || typeof host !== 'string' || !isIPv4(host)) return null;
  return listensAt === undefined ? null : { caller, attempt, answerTo, host, listensAt };
}

export function encodeKnockAnswer({ attempt, listensAt }: KnockAnswer): Uint8Array {
  return encode({ l: text(listensAt), s: attempt });
}

/** Null where the bytes are none. */
export function decodeKnockAnswer(bytes: Uint8Array): KnockAnswer | null {
  const map = decode(bytes, ['l', 's']);
  const listensAt = addressOf(map?.['l']);
  const attempt = map?.['s'];
  return listensAt === undefined || !isBytes(attempt, ATTEMPT_BYTES) ? null : { attempt, listensAt };
}

/** The record of a message; it belongs under `turnRendezvousKey(to)`. Throws where the key is no usable one. */
export function sealKnock(message: Uint8Array, to: Uint8Array, clock: Clock): SignedRecord {
  const shown = {
    mailbox: turnRendezvousKey(to),
    // It goes by itself, soon.
    removalHash: removalHash(randomBytes(REMOVAL_TOKEN_BYTES)),
    keyId: encryptionKeyId(to),
  };
  const box = sealTo(to, message, { info: INFO, aad: noteHeader(shown) });
  const payload = encodeNotePayload({ ...shown, ...box });
  const once = KeyPair.generate();
  const delegation = selfDelegation(once);
  const timestamp = unixSeconds(clock);
  const content = {
    aid: delegation.agent,
    type: RECORD.note,
    seq: 1,
    timestamp,
    ttl: KNOCK_TTL_S,
    payload,
    delegation,
  };
  return signRecord(content, once);
}

/** The message in a record; null where it holds none for this key. */
export function openKnock({ payload }: SignedRecord, opener: BoxOpener): Uint8Array | null {
  const note = decodeNotePayload(payload);
  if (note === null) return null;
  try {
    return opener.open(note, { info: INFO, aad: noteHeader(note) });
  } catch {
    return null;
  }
}

/*
 * Where a node without helpers looks for those who want to reach it by a TURN server: a place in the record network that
 * its endpoint record names. It costs a look-up every few seconds, so only those do it whom nobody introduces.
 */

/** How often the place is looked at, milliseconds. */
export const MEETING_LOOK_MS = 4_000;
/** Looks in a row at which no helper was there before the place is named: helpers are found within seconds. */
export const UNHELPED_LOOKS = 3;
/** Requests that are read at a time. */
export const MAX_KNOCKS = 8;
/** Records that are not read again, and for how long: nobody takes them for valid any more then, milliseconds. */
const MAX_KNOWN = 1024;
const KNOWN_MS: number = (KNOCK_TTL_S + 2 * CLOCK_SKEW_S) * 1000;

interface MeetingsDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly records: Pick<RecordNetwork, 'put' | 'list'>;
  /** Our host as others see it; null while none has said. */
  readonly seenHost: () => string | null;
  /** Whether strangers do not reach this node, and no helper introduces it. */
  readonly isNeeded: () => boolean;
  /** Told where the node is met; null where it is not any more. */
  readonly changed: (place: TurnRendezvous | null) => void;
  /** Goes to meet a caller: null where that is at its own address, else where the caller has to come to. */
  readonly meet: (knock: Knock, ownHost: string) => Promise<Address | null>;
}

export class Meetings implements Component {
  readonly #deps: MeetingsDependencies;
  /** A new one with each start of the process. */
  readonly #opener = new BoxOpener(sealingKeyOf(randomBytes(X25519_PRIVATE_KEY_BYTES)));
  /** Digests of records that were read. */
  readonly #known: LruCache<string, string>;
  readonly #stop = new AbortController();
  #looks: RepeatingTask | null = null;
  #unhelped = 0;
  #host: string | null = null;

  constructor(dependencies: MeetingsDependencies) {
    this.#deps = dependencies;
    this.#known = new LruCache({ maxEntries: MAX_KNOWN, ttlMs: KNOWN_MS }, dependencies);
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'the place of meeting was not looked at');
    this.#looks = every(this.#deps.clock, { periodMs: MEETING_LOOK_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#looks?.stop();
    await this.#looks?.idle();
  }

  async #look(): Promise<void> {
    const { isNeeded, seenHost, records } = this.#deps;
    const seen = isNeeded() ? seenHost() : null;
    this.#unhelped = seen === null || !isIPv4(seen) ? 0 : this.#unhelped + 1;
    const host = this.#unhelped < UNHELPED_LOOKS ? null : seen;
    if (host !== this.#host) this.#deps.changed(host === null ? null : { publicKey: this.#opener.publicKey, host });
    this.#host = host;
    if (host === null) return;
    const { signal } = this.#stop;
    const known = new Set(this.#known.values());
    const options = { limit: MAX_KNOCKS, known, signal };
    const found = await records.list(turnRendezvousKey(this.#opener.publicKey), [RECORD.note], options);
    await Promise.all(found.map((record) => this.#hear(record, host)));
  }

  async #hear(record: SignedRecord, ownHost: string): Promise<void> {
    const { nodeKey, meet, log } = this.#deps;
    const digest = toHex(recordDigest(record.encoded));
    this.#known.set(digest, digest);
    const message = openKnock(record, this.#opener);
    const knock = message === null ? null : decodeKnock(message);
    if (knock === null || equalBytes(knock.caller, nodeKey)) return;
    try {
      const listensAt = await meet(knock, ownHost);
      if (listensAt !== null) await this.#answer(knock, listensAt);
    } catch (error) {
      log.debug({ error }, 'a caller was not met');
    }
  }

  async #answer({ attempt, answerTo }: Knock, listensAt: Address): Promise<void> {
    const { records, clock } = this.#deps;
    const record = sealKnock(encodeKnockAnswer({ attempt, listensAt }), answerTo, clock);
    await records.put(turnRendezvousKey(answerTo), record, { signal: this.#stop.signal });
  }
}

/* Reaches a node that has no helper by a TURN server of either side: it is asked over the record network. */

/** How often is looked whether the node has answered, milliseconds. */
export const ANSWER_LOOK_MS = 500;
/** Answers that are read at a time: anybody may write some. */
const MAX_ANSWERS = 8;

interface KnockerDependencies {
  readonly clock: Clock;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly records: Pick<RecordNetwork, 'put' | 'list'>;
  /** Our host as others see it; null while none has said. */
  readonly seenHost: () => string | null;
  /** Our own TURN servers. */
  readonly turn: TurnAccess;
  /** Dials an address by a way of kind `turn`, whose packets go to `remote`. */
  readonly dial: (address: Address, nodeKey: Uint8Array, remote: Address, signal: AbortSignal) => Promise<Connection>;
}

export class TurnRendezvousClient {
  readonly #deps: KnockerDependencies;

  constructor(dependencies: KnockerDependencies) {
    this.#deps = dependencies;
  }

  /** Whether there is anything that a dial of a node could begin with. */
  mayLead({ meeting, hasTurn }: NodePlace): boolean {
    return meeting !== undefined && (this.#deps.turn.isAvailable || hasTurn === true);
  }

  /**
   * Meets a node at a TURN server: of ours where we have one, else of its own.
   * @throws SvcError `connect_failed`, or the signal's reason
   */
  async meet({ nodeKey, meeting }: NodePlace, signal: AbortSignal): Promise<Connection> {
    const { turn, dial, seenHost, nodeKey: caller } = this.#deps;
    const host = seenHost();
    if (meeting === undefined || host === null) throw new SvcError('connect_failed');
    const attempt = new Uint8Array(randomBytes(ATTEMPT_BYTES));
    const opener = new BoxOpener(sealingKeyOf(randomBytes(X25519_PRIVATE_KEY_BYTES)));
    const knock = async (listensAt: Address | null): Promise<void> => {
      const message = encodeKnock({ caller, attempt, answerTo: opener.publicKey, host, listensAt });
      await this.#put(message, meeting.publicKey, signal);
    };
    if (turn.isAvailable)
      return await dialOverTurn(turn, { peerHost: meeting.host, token: attempt }, async (carrier) => {
        await knock(carrier.relayed);
        await abortable(carrier.peerArrived, signal);
        return await dial(carrier.local, nodeKey, carrier.server, signal);
      });
    await knock(null);
    const at = await this.#answer(opener, attempt, signal);
    if (!mayDialAt(at, { host, port: 0 }))
      throw new SvcError('connect_failed', {
        message: 'The node named an address that is not dialled: a private host, or a port below 1024.',
      });
    return await dial(at, nodeKey, at, signal);
  }

  async #put(message: Uint8Array, to: Uint8Array, signal: AbortSignal): Promise<void> {
    const { records, clock } = this.#deps;
    const { replicas, isHere } = await records.put(turnRendezvousKey(to), sealKnock(message, to, clock), { signal });
    if (replicas === 0 && isHere !== true)
      throw new SvcError('connect_failed', { message: 'No node of the record network was reached.' });
  }

  /** Looks until the node has answered. */
  async #answer(opener: BoxOpener, attempt: Uint8Array, signal: AbortSignal): Promise<Address> {
    const { records, clock } = this.#deps;
    for (;;) {
      const found = await records.list(turnRendezvousKey(opener.publicKey), [RECORD.note], {
        limit: MAX_ANSWERS,
        signal,
      });
      const messages = found.map((record) => openKnock(record, opener));
      const answers = messages.map((message) => (message === null ? null : decodeKnockAnswer(message)));
      const answer = answers.find((one) => one !== null && equalBytes(one.attempt, attempt));
      if (answer !== undefined && answer !== null) return answer.listensAt;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(ANSWER_LOOK_MS, resolve);
      try {
        await abortable(promise, signal);
      } finally {
        timer.cancel();
      }
    }
  }
}
