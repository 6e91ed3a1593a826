/** Notes from node to node: hands them over when the recipient is there, and takes them in. */

import { setImmediate } from 'node:timers/promises';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { Quota } from '../../foundation/quota.ts';
import { RateQuota } from '../../foundation/rate-limit.ts';
import { encodeEncryptionKeysPayload } from '../../foundation/records/payloads.ts';
import { checkRecord, decodeRecord, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { drainAndDestroy } from '../../network/links/stream-dispatcher.ts';
import type { LinkStream, Links } from '../../network/links/types.ts';
import type { Inbox } from './inbox.ts';
import type { NoteKeys } from './note-keys.ts';
import {
  answerKeys,
  answerNote,
  keysRequest,
  type NoteAnswer,
  noteRequest,
  readAnswer,
  readKeys,
  readRequest,
} from './wire.ts';

/** Milliseconds for a request to be whole, and for its answer. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Milliseconds to reach the recipient's node. */
const OPEN_TIMEOUT_MS = 8000;
/** Notes that one agent may hand over per second, and at once. */
const CALLER_PER_S = 20;
const CALLER_BURST = 200;
/** Notes that all strangers of one IPv4 address or IPv6 /64 may hand over per second, and at once. */
const SOURCE_PER_S = 50;
const SOURCE_BURST = 500;
/** The same of one IPv4 /24 or IPv6 /48. */
const NETWORK_PER_S = 100;
const NETWORK_BURST = 1000;
/** The same of all strangers. */
const STRANGERS_PER_S = 200;
const STRANGERS_BURST = 2000;
/** Notes that are opened at one time: of all, of one pair of agents, of the strangers of one source and of one network. */
const MAX_OPENING = 512;
const MAX_OPENING_OF_PAIR = 64;
const MAX_OPENING_OF_SOURCE = 128;
const MAX_OPENING_OF_NETWORK = 256;
/** Places among them that strangers leave to agents that the recipient's owner knows. */
const RESERVED_OPENING = 128;

interface NoteLinksDependencies {
  readonly links: Links;
  readonly inbox: Pick<Inbox, 'accept'>;
  readonly keys: NoteKeys;
  readonly clock: Clock;
  readonly log: Log;
  /** As `NotesDependencies.isKnown`. */
  isKnown(aid: Aid, peer: Aid): boolean;
}

export class NoteLinks {
  readonly #deps: NoteLinksDependencies;
  readonly #rate: RateQuota;
  readonly #opening = new Quota({
    perKey: MAX_OPENING_OF_PAIR,
    perSource: MAX_OPENING_OF_SOURCE,
    perNetwork: MAX_OPENING_OF_NETWORK,
    total: MAX_OPENING,
    reserved: RESERVED_OPENING,
  });
  readonly #stop = new AbortController();

  /** Takes the links of purpose `note`. */
  constructor(dependencies: NoteLinksDependencies) {
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

  /** Gives up what is under way. */
  stop(): void {
    this.#stop.abort();
  }

  /**
   * Hands a note over to the recipient's node.
   * @param onGone called when it is about to be written, once or more often
   * @throws SvcError as `Links.open`; `protocol_error`
   */
  async offer(
    sender: Aid,
    recipient: Aid,
    record: SignedRecord,
    { signal, onGone }: { readonly signal: AbortSignal; readonly onGone: () => void },
  ): Promise<NoteAnswer> {
    const request = (): Uint8Array => {
      onGone();
      return noteRequest(record.encoded);
    };
    const answer = await this.#call(sender, recipient, signal, { request, read: readAnswer });
    if (answer === null) throw new SvcError('protocol_error');
    return answer;
  }

  /** The payload of the recipient's encryption key record. @throws as `offer` */
  async askKeys(sender: Aid, recipient: Aid, signal: AbortSignal): Promise<Uint8Array> {
    return this.#call(sender, recipient, signal, { request: keysRequest, read: readKeys });
  }

  async #call<T>(
    sender: Aid,
    recipient: Aid,
    signal: AbortSignal,
    { request, read }: { request: () => Uint8Array; read: (link: LinkStream, signal: AbortSignal) => Promise<T> },
  ): Promise<T> {
    const { links, clock } = this.#deps;
    const either = AbortSignal.any([signal, this.#stop.signal]);
    // A note that comes twice is one, so that it may go with the header of its link.
    const options = { signal: either, timeoutMs: OPEN_TIMEOUT_MS, first: { bytes: request, isAll: true } };
    const link = await links.open(sender, recipient, 'note', options);
    using limit = awakeTimeout(clock, REQUEST_TIMEOUT_MS, either);
    try {
      const said = await read(link, limit.signal);
      drainAndDestroy(link, clock);
      return said;
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
      else await this.#answer(link, request);
      drainAndDestroy(link, this.#deps.clock);
    } catch (error) {
      this.#deps.log.debug({ caller: link.caller, error }, 'a link with a note failed');
      link.destroy();
    }
  }

  /** The event of the note goes out first: who sent it has copies to spread once it is answered, and on one machine that is in its way. */
  async #answer(link: LinkStream, request: Uint8Array): Promise<void> {
    const answer = await this.#take(link, request);
    await setImmediate();
    answerNote(link, answer);
  }

  async #take(link: LinkStream, encoded: Uint8Array): Promise<NoteAnswer> {
    const holder = pairHolder(link, this.#deps.isKnown(link.called, link.caller));
    const share = this.#opening.take(holder);
    if (share === null) return 'limited';
    // Agents of this daemon are limited where they send.
    const mayGoOn = link.nodeKey === null || this.#rate.take({ ...holder, key: link.caller });
    try {
      if (!mayGoOn) return 'limited';
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
