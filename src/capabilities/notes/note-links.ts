/** Notes from node to node: hands them over when the recipient is there, and takes them in. */

import { setImmediate } from 'node:timers/promises';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { encodeEncryptionKeysPayload } from '../../foundation/records/encryption-keys.ts';
import { checkRecord, decodeRecord, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { patience } from '../../foundation/stall.ts';
import { letGo, sourceOfLink } from '../../network/links/source.ts';
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
/** Notes that all agents of one source (see `sourceOfLink`) may hand over per second, and at once. */
const SOURCE_PER_S = 50;
const SOURCE_BURST = 500;
/** Callers and sources that are remembered. */
const MAX_REMEMBERED = 8192;
/** Notes that are opened at one time. */
const MAX_OPENING = 512;

interface NoteLinksDependencies {
  readonly links: Links;
  readonly inbox: Pick<Inbox, 'accept'>;
  readonly keys: NoteKeys;
  readonly clock: Clock;
  readonly log: Log;
}

export class NoteLinks {
  readonly #deps: NoteLinksDependencies;
  readonly #callers: RateLimiter;
  readonly #sources: RateLimiter;
  readonly #stop = new AbortController();
  #opening = 0;

  /** Takes the links of purpose `note`. */
  constructor(dependencies: NoteLinksDependencies) {
    this.#deps = dependencies;
    const common = { maxKeys: MAX_REMEMBERED };
    this.#callers = new RateLimiter({ perSecond: CALLER_PER_S, burst: CALLER_BURST, ...common }, dependencies);
    this.#sources = new RateLimiter({ perSecond: SOURCE_PER_S, burst: SOURCE_BURST, ...common }, dependencies);
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
    using limit = patience(clock, REQUEST_TIMEOUT_MS, either);
    try {
      const said = await read(link, limit.signal);
      letGo(link, clock);
      return said;
    } catch (error) {
      link.destroy();
      throw error;
    }
  }

  async #serve(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    using limit = patience(this.#deps.clock, REQUEST_TIMEOUT_MS, this.#stop.signal);
    limit.signal.addEventListener('abort', () => link.destroy(), { once: true });
    try {
      const request = await readRequest(link, limit.signal);
      if (request === null) return void link.destroy();
      if (request === 'keys') answerKeys(link, encodeEncryptionKeysPayload([this.#deps.keys.current(link.called)]));
      else await this.#answer(link, request);
      letGo(link, this.#deps.clock);
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

  /** Agents of this daemon are limited where they send. */
  #mayGoOn(link: LinkStream): boolean {
    if (link.nodeKey === null) return true;
    const source = sourceOfLink(link);
    return this.#callers.take(link.caller) && (source === null || this.#sources.take(source));
  }

  async #take(link: LinkStream, encoded: Uint8Array): Promise<NoteAnswer> {
    if (this.#opening >= MAX_OPENING || !this.#mayGoOn(link)) return 'limited';
    this.#opening++;
    try {
      const record = decodeRecord(Uint8Array.from(encoded));
      if (record.type !== RECORD.note) return 'refused';
      checkRecord(record, unixSeconds(this.#deps.clock));
      const [receipt] = await this.#deps.inbox.accept(link.called, [record]);
      return receipt?.verdict ?? 'refused';
    } catch (error) {
      if (!(error instanceof SvcError) || error.status >= 500) throw error;
      return 'refused';
    } finally {
      this.#opening--;
    }
  }
}
