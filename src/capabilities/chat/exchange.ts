/**
 * Processes received frames. All frames that arrived together are processed in one transaction, which is committed
 * before the reply. An entry counts as delivered after the commit.
 */
import { randomBytes } from 'node:crypto';
import { equalBytes } from '../../foundation/bytes.ts';
import { STREAM_ID_BYTES } from '../../foundation/domain/chat.ts';
import { causeOf } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { sourceGroupOf, THIS_MACHINE } from '../../foundation/quota.ts';
import type { PairRow } from '../../foundation/store/chat.ts';
import type { ChatContent } from '../../foundation/store/chat-log.ts';
import { SourceTally } from '../../foundation/tally.ts';
import {
  type Answer,
  type Answered,
  type Change,
  onAccept,
  onControlAcknowledged,
  onEarlyMessage,
  onGone,
  onRequest,
  onStranger,
  onUnknownStream,
  sameOrBothNull,
} from './relationship.ts';
import { type ChatSession, placeOf } from './session.ts';
import type { ChatDependencies } from './types.ts';
import type { Frame, MessageFrame } from './wire.ts';

/** Limit of pending requests to one agent. */
export const MAX_INVITES = 100;
/** With this many pending requests, only agents that the owner knows can send more. */
export const MAX_INVITES_OF_STRANGERS = 80;
/** Limit of pending requests to one agent from strangers at one IPv4 address or IPv6 /64. */
export const MAX_INVITES_PER_SOURCE = 20;
/** Limit of pending requests to one agent from strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_INVITES_PER_NETWORK = 40;
/** Limit of unread entries of one conversation. Beyond it, the peer keeps new entries in its queue. */
export const MAX_UNREAD = 250_000;
/** Limit of unread entries of one conversation, bytes. */
export const MAX_UNREAD_BYTES: number = 512 * 1024 * 1024;

/** Limit of entries that are queued again after the peer has lost them. */
const MAX_RESENT = 10_000;

/** A new random stream ID. */
export function newStream(): Uint8Array {
  return new Uint8Array(randomBytes(STREAM_ID_BYTES));
}

type ExchangeParts = Pick<ChatDependencies, 'store' | 'entries' | 'events' | 'clock' | 'isKnown'>;

/** The result of processing frames. */
export interface Outcome {
  readonly replies: readonly Frame[];
  /** Position in the log of the last delivered entry, or 0 if none was delivered. */
  readonly sentUpTo: number;
  /** The peer asked not to be contacted for a while. */
  readonly isBusy: boolean;
}

/** Processes received frames. @throws SvcError `not_writable`, `store_corrupt`; nothing has changed then */
export function processFrames(deps: ExchangeParts, session: ChatSession, frames: readonly Frame[]): Outcome {
  const work = (): Outcome => {
    const step = new FrameProcessor(deps, session);
    for (const frame of frames) step.take(frame);
    return step.outcome();
  };
  return areReceipts(frames) ? deps.store.commit(work, 'soon') : deps.store.transaction(work);
}

/** Stores a change of a pair and returns the new row. Runs in a transaction. */
export function applyChange(
  { store, entries }: Pick<ChatDependencies, 'store' | 'entries'>,
  pair: PairRow,
  { next, dropsQueue }: Change,
): PairRow {
  if (next !== pair) store.setRelationship(pair.id, next);
  if (dropsQueue) entries.dropQueued(pair.id);
  return store.byId(pair.id) ?? pair;
}

/** The source that a request is counted under, or null for an agent on this machine. */
function originOf(source: string | null): string | null {
  const group = source === null ? THIS_MACHINE : sourceGroupOf(source).source;
  return group === THIS_MACHINE ? null : group;
}

/** Receipts need no flush. After a power loss the entries are sent again, and the peer recognizes their IDs. */
function areReceipts(frames: readonly Frame[]): boolean {
  return frames.every((frame) => frame.kind === 'receipt' && frame.answer === 'ok');
}

/** Processes the frames of one link in one transaction. */
class FrameProcessor {
  readonly #deps: ExchangeParts;
  readonly #session: ChatSession;
  readonly #replies: Frame[] = [];
  /** Consecutive entries of one stream that are not stored yet. */
  #run: MessageFrame[] = [];
  #pair: PairRow | null;
  #sentUpTo = 0;
  #isBusy = false;

  constructor(deps: ExchangeParts, session: ChatSession) {
    this.#deps = deps;
    this.#session = session;
    this.#pair = deps.store.pair(session.local, session.peer);
  }

  outcome(): Outcome {
    this.#flushRun();
    return { replies: this.#replies, sentUpTo: this.#sentUpTo, isBusy: this.#isBusy };
  }

  take(frame: Frame): void {
    const now = this.#deps.clock.now();
    const [first] = this.#run;
    const goesOn = frame.kind === 'message' && first !== undefined && equalBytes(first.stream, frame.stream);
    if (!goesOn) this.#flushRun();
    switch (frame.kind) {
      case 'message':
        return void this.#run.push(frame);
      case 'request':
        return this.#acknowledge(frame.n, this.#request(frame.stream, frame.note, now));
      case 'accept':
        return this.#acknowledge(
          frame.n,
          this.#answer('gone', (pair) => onAccept(pair, frame.stream, frame.re, now)),
        );
      case 'gone':
        return this.#acknowledge(frame.n, this.#gone(frame.stream, frame.re, now));
      case 'heard':
        return this.#controlAcknowledged(frame.n, frame.answer, now);
      case 'receipt':
        return this.#receipt(frame.stream, frame.last, frame.answer, now);
      case 'check':
        return this.#check(frame.stream, frame.after);
    }
  }

  #acknowledge(n: number, answer: Answer): void {
    this.#replies.push({ kind: 'heard', n, answer });
  }

  #apply(pair: PairRow, change: Change): void {
    this.#pair = applyChange(this.#deps, pair, change);
  }

  #answer(otherwise: Answer, decide: (pair: PairRow) => Answered): Answer {
    if (this.#pair === null) return otherwise;
    const result = decide(this.#pair);
    this.#apply(this.#pair, result);
    return result.answer;
  }

  #request(stream: Uint8Array, note: string, now: number): Answer {
    // protocol-chat.md, step 4
    const { store } = this.#deps;
    const { local, peer, link } = this.#session;
    const origin = originOf(link.path().source);
    const hasRoom = this.#hasRoom(local, peer, origin);
    if (this.#pair === null && !hasRoom) return 'busy';
    this.#pair ??= store.open(local, peer, now);
    const before = this.#pair?.state;
    const incoming = { stream, note, origin };
    const answer = this.#answer('gone', (pair) => onRequest(pair, incoming, newStream(), hasRoom, now));
    if (before === 'none' && this.#pair?.state === 'in_pending') this.#emitInvites(local, peer);
    return answer;
  }

  #hasRoom(local: Aid, peer: Aid, origin: string | null): boolean {
    const { store, isKnown } = this.#deps;
    const open = store.count(local, 'in_pending');
    if (isKnown(local, peer)) return open < MAX_INVITES;
    if (open >= MAX_INVITES_OF_STRANGERS) return false;
    if (origin === null) return true;
    const origins = new SourceTally();
    for (const each of store.requestSources(local)) origins.add(each);
    return origins.of(origin) < MAX_INVITES_PER_SOURCE && origins.ofNetwork(origin) < MAX_INVITES_PER_NETWORK;
  }

  #gone(theirs: Uint8Array | null, ours: Uint8Array | null, now: number): Answer {
    const before = this.#pair?.state;
    const answer = this.#answer('ok', (pair) => onGone(pair, theirs, ours, now));
    if (before === 'in_pending' && this.#pair?.state === 'none') this.#emitInvites(this.#session.local);
    return answer;
  }

  /** @param from the sender of a new request */
  #emitInvites(aid: Aid, from?: Aid): void {
    const { store, events, isKnown } = this.#deps;
    const { peer } = this.#session;
    const peers = store.inviters(aid, MAX_INVITES);
    const data = { count: peers.length, peers, ...(from === undefined ? {} : { from }) };
    events.emit(aid, 'chat.invites', data, causeOf(peer, isKnown(aid, peer)));
  }

  /** The peer acknowledged a control message of this link. */
  #controlAcknowledged(n: number, answer: Answer, now: number): void {
    const session = this.#session;
    const { pendingControl: pending } = session;
    if (pending === null || pending.n !== n) return;
    session.pendingControl = null;
    session.answered();
    const pair = this.#pair;
    if (pair === null) return;
    const { about } = pending;
    if (answer === 'busy') this.#isBusy = true;
    else if (answer === 'gone' && about.control === 'accept' && about.outStream !== null)
      this.#apply(pair, onStranger(pair, about.outStream, now));
    else this.#apply(pair, onControlAcknowledged(pair, about, now));
  }

  /** The peer acknowledged or rejected entries. */
  #receipt(stream: Uint8Array, last: Uint8Array | null, answer: Answer, now: number): void {
    // protocol-chat.md, step 11
    const { cursor } = this.#session;
    const pair = this.#pair;
    if (pair === null || cursor === null || !equalBytes(cursor.stream, stream)) return;
    const upTo = placeOf(cursor, last);
    cursor.unacknowledged = cursor.unacknowledged.filter((sent) => sent.place > upTo);
    this.#session.answered();
    if (pair.outStream === null || !equalBytes(pair.outStream, stream)) return;
    this.#markSent(pair, upTo);
    const current = this.#pair;
    if (current === null) return;
    if (answer === 'gone') this.#apply(current, onStranger(current, stream, now));
    else if (answer === 'unknown') this.#restartStream(current, stream, last);
    else if (answer === 'busy') this.#isBusy = true;
  }

  #markSent(pair: PairRow, upTo: number): void {
    if (upTo === 0) return;
    const last = this.#deps.entries.markSent(pair.id, upTo);
    this.#sentUpTo = Math.max(this.#sentUpTo, last);
    this.#pair = this.#deps.store.byId(pair.id);
  }

  /**
   * The last entry that the peer has is `last`, for example after a restore from a backup. Later entries are queued
   * again. If this log does not have that entry, because this side restored a backup too, all entries of the
   * relationship are. The peer recognizes duplicates by their IDs.
   */
  #restartStream(pair: PairRow, stream: Uint8Array, last: Uint8Array | null): void {
    // protocol-chat.md, step 9
    if (pair.state !== 'friends') return;
    const { entries } = this.#deps;
    const place = last === null ? 0 : entries.placeOfOwn(pair.id, last);
    this.#markSent(pair, place);
    entries.requeue(pair.id, place, Math.min(this.#pair?.acked ?? 0, MAX_RESENT));
    const current = this.#deps.store.byId(pair.id) ?? pair;
    this.#apply(current, onUnknownStream(current, stream, newStream()));
  }

  /** The peer has a receipt for the message `after`, but a restored backup may not contain it. */
  #check(stream: Uint8Array, after: Uint8Array): void {
    // protocol-chat.md, steps 7 and 8
    const problem = this.#problemWith(stream);
    if (problem === null && this.#pair !== null && this.#hasReceived(this.#pair, after, this.#pair.receivedId)) return;
    this.#replies.push(problem ?? { kind: 'receipt', stream, last: this.#pair?.receivedId ?? null, answer: 'unknown' });
  }

  /** Why messages of a stream cannot be stored, or null. */
  #problemWith(stream: Uint8Array): Frame | null {
    const receipt = (answer: Answer, last: Uint8Array | null = null): Frame => ({
      kind: 'receipt',
      stream,
      last,
      answer,
    });
    const pair = this.#pair;
    if (pair === null || pair.state === 'none' || pair.state === 'in_pending') return receipt('gone');
    if (pair.state === 'out_pending') {
      this.#apply(pair, onEarlyMessage(pair));
      return receipt('busy');
    }
    if (pair.state === 'blocked') return null;
    return sameOrBothNull(pair.inStream, stream) ? null : receipt('unknown', pair.receivedId);
  }

  /** Whether all messages of the peer up to `after` are stored. `last` is the last one. */
  #hasReceived(pair: PairRow, after: Uint8Array | null, last: Uint8Array | null): boolean {
    if (after === null || sameOrBothNull(after, last) || pair.state === 'blocked') return true;
    return this.#deps.entries.hasReceived(pair.id, after);
  }

  #flushRun(): void {
    // protocol-chat.md, steps 8 and 10
    const now = this.#deps.clock.now();
    const frames = this.#run;
    this.#run = [];
    const last = frames.at(-1);
    if (last === undefined) return;
    const { stream } = last;
    const problem = this.#problemWith(stream);
    const pair = this.#pair;
    if (problem !== null || pair === null) return void this.#replies.push(...(problem === null ? [] : [problem]));
    const receipt = (id: Uint8Array | null, answer: Answer): void => {
      this.#replies.push({ kind: 'receipt', stream, last: id, answer });
    };
    // A blocked peer must not be able to detect the block, so its entries appear delivered and unread.
    // protocol-chat.md, step 12
    if (pair.state === 'blocked') {
      this.#deps.entries.receive(pair, [], last.content.id, now);
      return receipt(last.content.id, 'ok');
    }
    if (pair.unread + frames.length > MAX_UNREAD || pair.unreadBytes > MAX_UNREAD_BYTES) return receipt(null, 'busy');
    const contents: ChatContent[] = [];
    let { receivedId } = pair;
    for (const { after, content } of frames) {
      // A gap means that this side lost messages. The peer sends them again, after the last one here.
      if (!this.#hasReceived(pair, after, receivedId)) {
        this.#keep(pair, contents, receivedId);
        return receipt(receivedId, 'unknown');
      }
      receivedId = content.id;
      contents.push(content);
    }
    this.#keep(pair, contents, receivedId);
    receipt(receivedId, 'ok');
  }

  /** Stores entries that are not in the log yet. Duplicates have the same ID. */
  #keep(pair: PairRow, contents: readonly ChatContent[], receivedId: Uint8Array | null): void {
    const { entries, events, store, clock } = this.#deps;
    const now = clock.now();
    // The peer's clock sets the time of an entry. This clock limits it, so that no entry is in the future.
    const shown = contents.map((content) => ({ ...content, at: Math.min(content.at, now) }));
    const added = entries.receive(pair, shown, receivedId, now);
    for (const seq of added) events.emit(pair.aid, 'chat.received', { peer: pair.peer, seq }, pair.peer);
    this.#pair = store.byId(pair.id);
    if (added.length > 0)
      events.emit(pair.aid, 'chat.unread', { peer: pair.peer, unread_count: this.#pair?.unread ?? 0 }, pair.peer);
  }
}
