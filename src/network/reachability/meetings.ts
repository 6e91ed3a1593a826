/**
 * Where a node without helpers looks for those who want to reach it by a TURN server: a place in the record network that
 * its endpoint record names. It costs a look-up every few seconds, so only those do it whom nobody introduces.
 */
import { randomBytes } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { X25519_PRIVATE_KEY_BYTES } from '../../foundation/domain/notes.ts';
import { CLOCK_SKEW_S } from '../../foundation/domain/time.ts';
import { BoxOpener, sealingKeyOf } from '../../foundation/keys/sealed-box.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { turnRendezvousKey } from '../../foundation/records/keys.ts';
import type { TurnRendezvous } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { RecordNetwork } from '../records/types.ts';
import { decodeKnock, encodeKnockAnswer, KNOCK_TTL_S, type Knock, openKnock, sealKnock } from './knocks.ts';

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
