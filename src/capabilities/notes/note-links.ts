/**
 * Notes from node to node over links: sends a note to the recipient's node, and receives notes. Asks a recipient's node for
 * its keys. Format: docs/protocol-notes.md, "Note links".
 */
import { unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { Quota } from '../../foundation/quota.ts';
import { RateQuota } from '../../foundation/rate-limit.ts';
import { agentKey } from '../../foundation/records/keys.ts';
import { decodeEncryptionKeysPayload, encodeEncryptionKeysPayload } from '../../foundation/records/payloads.ts';
import { checkRecord, decodeRecord, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES, MAX_RECORD_BYTES, RECORD } from '../../foundation/records/types.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';
import type { NodeSilence } from '../../network/peers/dial.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { BinaryReader, readExactly, readFrame, u16 } from '../../network/peers/wire.ts';
import type { RecordNetwork } from '../../network/records/types.ts';
import type { Inbox, Verdict } from './inbox.ts';
import type { NoteKeys } from './note-keys.ts';
import type { NotesDependencies } from './types.ts';

/** Milliseconds for a complete request, and for its answer. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Milliseconds to reach the recipient's node. */
const OPEN_TIMEOUT_MS = 8000;
/** Rate and burst of notes from one agent. */
const CALLER_PER_S = 20;
const CALLER_BURST = 200;
/** The same for all strangers at one IPv4 address or IPv6 /64. */
const SOURCE_PER_S = 50;
const SOURCE_BURST = 500;
/** The same for one IPv4 /24 or IPv6 /48. */
const NETWORK_PER_S = 100;
const NETWORK_BURST = 1000;
/** The same for all strangers. */
const STRANGERS_PER_S = 200;
const STRANGERS_BURST = 2000;
/** Notes opened concurrently: in total, of one pair of agents, of strangers at one source and in one network. */
const MAX_OPENING = 512;
const MAX_OPENING_OF_PAIR = 64;
const MAX_OPENING_OF_SOURCE = 128;
const MAX_OPENING_OF_NETWORK = 256;
/** Reserved for agents that the recipient's owner knows. */
const RESERVED_OPENING = 128;

type LinkParts = Pick<NotesDependencies, 'links' | 'clock' | 'log' | 'isKnown'> & {
  readonly inbox: Pick<Inbox, 'accept'>;
  readonly keys: NoteKeys;
};

export class NoteLinks {
  readonly #deps: LinkParts;
  readonly #rate: RateQuota;
  readonly #opening = new Quota({
    perKey: MAX_OPENING_OF_PAIR,
    perSource: MAX_OPENING_OF_SOURCE,
    perNetwork: MAX_OPENING_OF_NETWORK,
    total: MAX_OPENING,
    reserved: RESERVED_OPENING,
  });
  readonly #stop = new AbortController();

  /** Accepts links of purpose `note`. */
  constructor(dependencies: LinkParts) {
    this.#deps = dependencies;
    this.#rate = new RateQuota(
      {
        perKey: { perSecond: CALLER_PER_S, burst: CALLER_BURST },
        perSource: { perSecond: SOURCE_PER_S, burst: SOURCE_BURST },
        perNetwork: { perSecond: NETWORK_PER_S, burst: NETWORK_BURST },
        strangers: { perSecond: STRANGERS_PER_S, burst: STRANGERS_BURST },
      },
      dependencies,
    );
    dependencies.links.accept('note', (link) => detach(this.#serve(link)));
  }

  /** Cancels running requests. */
  stop(): void {
    this.#stop.abort();
  }

  /**
   * Sends a note to the recipient's node.
   * @param silence called if its node does not answer the first packets
   * @throws SvcError as `Links.open`; `protocol_error`
   */
  async offer(
    sender: Aid,
    recipient: Aid,
    record: SignedRecord,
    signal: AbortSignal,
    silence?: NodeSilence,
  ): Promise<NoteAnswer> {
    const answer = await this.#call(sender, recipient, signal, noteRequest(record.encoded), readAnswer, silence);
    if (answer === null) throw new SvcError('protocol_error');
    return answer;
  }

  /** The payload of the recipient's encryption key record. @throws as `offer` */
  async askKeys(sender: Aid, recipient: Aid, signal: AbortSignal): Promise<Uint8Array> {
    return this.#call(sender, recipient, signal, keysRequest(), readKeys);
  }

  async #call<T>(
    sender: Aid,
    recipient: Aid,
    signal: AbortSignal,
    request: Uint8Array,
    read: (link: LinkStream, signal: AbortSignal) => Promise<T>,
    silence?: NodeSilence,
  ): Promise<T> {
    const { links, clock } = this.#deps;
    const either = AbortSignal.any([signal, this.#stop.signal]);
    // A repeated request does no harm, so it may be sent with the header of the link.
    const first = { bytes: () => request, isAll: true };
    const options = { signal: either, timeoutMs: OPEN_TIMEOUT_MS, first, ...(silence ? { silence } : {}) };
    const link = await links.open(sender, recipient, 'note', options);
    using limit = awakeTimeout(clock, REQUEST_TIMEOUT_MS, either);
    try {
      const answer = await read(link, limit.signal);
      drainAndDestroy(link, clock);
      return answer;
    } catch (error) {
      link.destroy();
      throw error;
    }
  }

  async #serve(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    using limit = awakeTimeout(this.#deps.clock, REQUEST_TIMEOUT_MS, this.#stop.signal);
    limit.signal.addEventListener('abort', () => link.destroy(), { once: true });
    try {
      const request = await readRequest(link, limit.signal);
      if (request === null) return void link.destroy();
      if (request === 'keys') answerKeys(link, encodeEncryptionKeysPayload([this.#deps.keys.current(link.called)]));
      else answerNote(link, await this.#take(link, request));
      drainAndDestroy(link, this.#deps.clock);
    } catch (error) {
      this.#deps.log.debug({ caller: link.caller, error }, 'a note link failed');
      link.destroy();
    }
  }

  async #take(link: LinkStream, encoded: Uint8Array): Promise<NoteAnswer> {
    const holder = pairHolder(link, this.#deps.isKnown(link.called, link.caller));
    const share = this.#opening.take(holder);
    if (share === null) return 'limited';
    // Local agents are limited when they send.
    const isAllowed = link.nodeKey === null || this.#rate.take({ ...holder, key: link.caller });
    try {
      if (!isAllowed) return 'limited';
      const record = decodeRecord(Uint8Array.from(encoded));
      if (record.type !== RECORD.note) return 'refused';
      checkRecord(record, unixSeconds(this.#deps.clock));
      const [receipt] = await this.#deps.inbox.accept(link.called, [record]);
      return receipt?.verdict ?? 'refused';
    } catch (error) {
      if (!(error instanceof SvcError) || error.status >= 500) throw error;
      return 'refused';
    } finally {
      share.release();
    }
  }
}

// Wire format.

/** First byte of a request. */
const REQUEST = { note: 1, keys: 2 } as const;
/** Answers to a note. */
const ANSWERS = ['kept', 'known', 'full', 'unknown_key', 'refused', 'limited'] as const;
/** The answer of a recipient's node to a note. */
export type NoteAnswer = Verdict | 'limited';

export function noteRequest(record: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(REQUEST.note), u16(record.length), record]);
}

export function keysRequest(): Uint8Array {
  return Uint8Array.of(REQUEST.keys);
}

/** The answer to a note; null if it is invalid. Rejects as `readExactly`. */
export async function readAnswer(link: LinkStream, signal: AbortSignal): Promise<NoteAnswer | null> {
  const [answer = 255] = await readExactly(link, 1, signal);
  return ANSWERS[answer] ?? null;
}

/** The payload of the encryption key record. Rejects as `readFrame`. */
export function readKeys(link: LinkStream, signal: AbortSignal): Promise<Uint8Array> {
  return readFrame(link, MAX_DATAGRAM_RECORD_BYTES, signal);
}

/** Reads a request: the record of a note, or `keys`. Rejects as `readFrame`. */
export async function readRequest(link: LinkStream, signal: AbortSignal): Promise<Uint8Array | 'keys' | null> {
  const kind = new BinaryReader(await readExactly(link, 1, signal)).u8();
  if (kind === REQUEST.keys) return 'keys';
  return kind === REQUEST.note ? readFrame(link, MAX_RECORD_BYTES, signal) : null;
}

export function answerNote(link: LinkStream, answer: NoteAnswer): void {
  link.end(Uint8Array.of(ANSWERS.indexOf(answer)));
}

export function answerKeys(link: LinkStream, payload: Uint8Array): void {
  link.end(Buffer.concat([u16(payload.length), payload]));
}

/** Recipients with cached keys. */
const MAX_CACHED = 4096;
/** Milliseconds for which a cached key is used. */
const FRESH_MS = 10 * 60_000;
/** Milliseconds for a lookup. */
const LOOKUP_TIMEOUT_MS = 5000;

type RecipientParts = Pick<NotesDependencies, 'clock' | 'identity' | 'newestDelegation' | 'approach'> & {
  readonly network: Pick<RecordNetwork, 'list'>;
  readonly keys: NoteKeys;
  readonly links: Pick<NoteLinks, 'askKeys'>;
};

/** Finds the key that a note is sealed to: the newest one that its recipient has published. */
export class RecipientKeys {
  readonly #deps: RecipientParts;
  readonly #cache: LruCache<Aid, Uint8Array>;

  constructor(dependencies: RecipientParts) {
    this.#deps = dependencies;
    this.#cache = new LruCache({ maxEntries: MAX_CACHED, ttlMs: FRESH_MS }, dependencies);
  }

  /** True if the next note of an agent of this node needs no lookup. */
  knows(recipient: Aid): boolean {
    return this.#deps.identity(recipient) !== null || this.#cache.peek(recipient) !== undefined;
  }

  /**
   * The X25519 key that notes of `sender` for `recipient` are sealed to.
   * @param asksAgain the recipient does not know the key that was found before: ask its node
   * @throws SvcError `resolve_failed` if the recipient has published none and does not answer; `network_unavailable`, `cancelled`
   */
  async find(sender: Aid, recipient: Aid, asksAgain: boolean, signal: AbortSignal): Promise<Uint8Array> {
    // protocol-notes.md, step 2
    if (this.#deps.identity(recipient) !== null) return this.#deps.keys.current(recipient).publicKey;
    const cached = asksAgain ? undefined : this.#cache.get(recipient);
    if (cached !== undefined) return cached;
    const published = asksAgain ? null : await this.#lookup(recipient, signal);
    const key = published ?? (await this.#ask(sender, recipient, signal));
    this.#cache.set(recipient, key);
    return key;
  }

  async #lookup(recipient: Aid, signal: AbortSignal): Promise<Uint8Array | null> {
    const { network } = this.#deps;
    const types = [RECORD.endpoints, RECORD.encryptionKeys];
    // The note follows over a link, so its node is dialed during this lookup.
    const onFirst = (record: SignedRecord): void => {
      if (record.aid === recipient && record.type === RECORD.endpoints) this.#deps.approach?.(record);
    };
    const options = { timeoutMs: LOOKUP_TIMEOUT_MS, signal, onFirst };
    const records = (await network.list(agentKey(recipient), types, options)).filter(({ aid }) => aid === recipient);
    for (const record of records) onFirst(record);
    // A record under a replaced delegation may come from a thief of the old key.
    const seen = records.map(({ delegation }) => delegation.issuedAt);
    const newest = Math.max(this.#deps.newestDelegation(recipient), ...seen);
    const keys = records.find(
      ({ type, delegation }) => type === RECORD.encryptionKeys && delegation.issuedAt >= newest,
    );
    return keys === undefined ? null : firstKey(keys.payload);
  }

  /** A published key may not have reached every node yet. The recipient itself knows it. */
  async #ask(sender: Aid, recipient: Aid, signal: AbortSignal): Promise<Uint8Array> {
    let cause: unknown;
    try {
      const key = firstKey(await this.#deps.links.askKeys(sender, recipient, signal));
      if (key !== null) return key;
    } catch (error) {
      // If the network was not heard, the recipient may be online.
      if (signal.aborted || codeOf(error) === 'network_unavailable') throw error;
      cause = error;
    }
    throw new SvcError('resolve_failed', {
      message:
        'This agent has no encryption key on the network and does not answer, so a note cannot be sealed for it. Try again when it is online.',
      details: { aid: recipient },
      cause,
    });
  }
}

function firstKey(payload: Uint8Array): Uint8Array | null {
  return decodeEncryptionKeysPayload(payload)?.[0]?.publicKey ?? null;
}
