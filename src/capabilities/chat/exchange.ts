/**
 * What frames do: all that came together in one transaction, which is on disk before anything is
 * answered. An entry counts as arrived only then.
 */
import { randomBytes } from 'node:crypto';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { STREAM_ID_BYTES } from '../../foundation/domain/chat.ts';
import { causeOf, type EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { sourceGroupOf, THIS_MACHINE } from '../../foundation/quota.ts';
import { SourceTally } from '../../foundation/source-tally.ts';
import type { ChatStore, PairRow } from '../../foundation/store/chat.ts';
import type { ChatContent, ChatLog } from '../../foundation/store/chat-log.ts';
import type { Durability } from '../../foundation/store/store.ts';
import {
  type Answer,
  type Answered,
  type Change,
  onAccept,
  onGone,
  onHeard,
  onRequest,
  onStranger,
  onUnknownStream,
} from './relationship.ts';
import type { ChatSession } from './session.ts';
import type { Frame, MessageFrame } from './wire.ts';

/** Open incoming requests of one agent. */
export const MAX_INVITES = 100;
/** Open incoming requests of one agent above which only agents that its owner knows may send more. */
export const MAX_INVITES_OF_STRANGERS = 80;
/** Open incoming requests of one agent from the strangers on one IPv4 address or IPv6 /64. */
export const MAX_INVITES_PER_SOURCE = 20;
/** The same from those in one IPv4 /24 or IPv6 /48. */
export const MAX_INVITES_PER_NETWORK = 40;
/** Unread entries of one conversation: above it the peer keeps what it has. */
export const MAX_UNREAD = 250_000;
/** Bytes of unread entries of one conversation. */
export const MAX_UNREAD_BYTES: number = 512 * 1024 * 1024;

/** Entries that a peer had and has lost that are sent again at once. */
const MAX_RESENT = 10_000;

/** A fresh name for what is sent in a relationship. */
export function newStream(): Uint8Array {
  return new Uint8Array(randomBytes(STREAM_ID_BYTES));
}

export interface ChatExchangeDependencies {
  readonly store: ChatStore;
  readonly entries: ChatLog;
  readonly events: EventSink;
  readonly clock: Clock;
  /** The owner of an agent here knows another one: strangers leave room for its requests. */
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
}

/** What became of frames. */
export interface Outcome {
  readonly replies: readonly Frame[];
  /** Place in our log of the last entry that has arrived at the peer by now; 0 where none did. */
  readonly sentUpTo: number;
  /** The peer wants to be left alone for a while. */
  readonly isBusy: boolean;
}

/** Takes in what has come over a link. @throws SvcError `not_writable`, `store_corrupt`: then nothing has changed */
export function takeFrames(deps: ChatExchangeDependencies, session: ChatSession, frames: readonly Frame[]): Outcome {
  return deps.store.transaction(() => {
    const step = new Step(deps, session);
    for (const frame of frames) step.take(frame);
    return step.outcome();
  }, durabilityOf(frames));
}

/** Keeps a change of a pair; returns what stands there then. In a transaction. */
export function applyChange(
  { store, entries }: Pick<ChatExchangeDependencies, 'store' | 'entries'>,
  pair: PairRow,
  { next, dropsQueue }: Change,
): PairRow {
  if (next !== pair) store.setRelationship(pair.id, next);
  if (dropsQueue) entries.dropQueued(pair.id);
  return store.byId(pair.id) ?? pair;
}

/** The source that a request counts for; null for an agent on this machine. */
function originOf(source: string | null): string | null {
  const group = source === null ? THIS_MACHINE : sourceGroupOf(source).source;
  return group === THIS_MACHINE ? null : group;
}

/** Where the power takes back a receipt, what it was for is sent again, and the peer knows it by its id. */
function durabilityOf(frames: readonly Frame[]): Durability | undefined {
  return frames.every((frame) => frame.kind === 'receipt' && frame.answer === 'ok') ? 'normal' : undefined;
}

/** Frames of one link inside one transaction. */
class Step {
  readonly #deps: ChatExchangeDependencies;
  readonly #session: ChatSession;
  readonly #replies: Frame[] = [];
  /** Entries of one stream that came one behind the other, and are not kept yet. */
  #run: MessageFrame[] = [];
  #pair: PairRow | null;
  #sentUpTo = 0;
  #isBusy = false;

  constructor(deps: ChatExchangeDependencies, session: ChatSession) {
    this.#deps = deps;
    this.#session = session;
    this.#pair = deps.store.pair(session.local, session.peer);
  }

  outcome(): Outcome {
    this.#endRun();
    return { replies: this.#replies, sentUpTo: this.#sentUpTo, isBusy: this.#isBusy };
  }

  take(frame: Frame): void {
    const now = this.#deps.clock.now();
    const [first] = this.#run;
    const goesOn = frame.kind === 'message' && first !== undefined && equalBytes(first.stream, frame.stream);
    if (!goesOn) this.#endRun();
    switch (frame.kind) {
      case 'message':
        return void this.#run.push(frame);
      case 'request':
        return this.#hear(frame.n, this.#request(frame.stream, frame.note, now));
      case 'accept':
        return this.#hear(
          frame.n,
          this.#answer('gone', (pair) => onAccept(pair, frame.stream, frame.re, now)),
        );
      case 'gone':
        return this.#hear(frame.n, this.#gone(frame.stream, frame.re, now));
      case 'heard':
        return this.#heard(frame.n, frame.answer, now);
      case 'receipt':
        return this.#receipt(frame.stream, frame.seq, frame.answer, now);
    }
  }

  #hear(n: number, answer: Answer): void {
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
    if (before === 'none' && this.#pair?.state === 'in_pending') this.#tellInvites(local);
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
    if (before === 'in_pending' && this.#pair?.state === 'none') this.#tellInvites(this.#session.local);
    return answer;
  }

  #tellInvites(aid: Aid): void {
    const { store, events, isKnown } = this.#deps;
    const { peer } = this.#session;
    const peers = store.inviters(aid, MAX_INVITES);
    events.emit(aid, 'chat.invites', { count: peers.length, peers }, causeOf(peer, isKnown(aid, peer)));
  }

  /** The peer has heard what we told it on this link. */
  #heard(n: number, answer: Answer, now: number): void {
    const session = this.#session;
    const { told } = session;
    if (told === null || told.n !== n) return;
    session.told = null;
    session.answered();
    const pair = this.#pair;
    if (pair === null) return;
    const { about } = told;
    if (answer === 'busy') this.#isBusy = true;
    else if (answer === 'gone' && about.control === 'accept' && about.outStream !== null)
      this.#apply(pair, onStranger(pair, about.outStream, now));
    else this.#apply(pair, onHeard(pair, about, now));
  }

  /** Entries of ours have arrived, or cannot. */
  #receipt(stream: Uint8Array, seq: number, answer: Answer, now: number): void {
    // protocol-chat.md, step 11
    const { cursor } = this.#session;
    const pair = this.#pair;
    if (pair === null || cursor === null || !equalBytes(cursor.stream, stream)) return;
    const upTo = Math.min(seq, cursor.nextSeq - 1);
    cursor.unacknowledged = cursor.unacknowledged.filter((sent) => sent.seq > upTo);
    this.#session.answered();
    if (pair.outStream === null || !equalBytes(pair.outStream, stream)) return;
    const count = upTo - pair.acked;
    if (count > 0) {
      const last = this.#deps.entries.markSent(pair, count, upTo);
      this.#sentUpTo = Math.max(this.#sentUpTo, last);
      this.#pair = this.#deps.store.byId(pair.id);
    }
    const current = this.#pair;
    if (current === null) return;
    if (answer === 'gone') this.#apply(current, onStranger(current, stream, now));
    else if (answer === 'unknown') this.#beginAnew(current, stream, upTo);
    else if (answer === 'busy') this.#isBusy = true;
  }

  /**
   * The peer has only `upTo` of our stream, as a node that came back from a backup does: what it
   * once had beyond that is sent again as well. What it has twice, its ids tell it.
   */
  #beginAnew(pair: PairRow, stream: Uint8Array, upTo: number): void {
    // protocol-chat.md, step 9
    const change = onUnknownStream(pair, stream, newStream());
    const lost = Math.min(pair.acked - upTo, MAX_RESENT);
    if (change.next !== pair && lost > 0) this.#deps.entries.requeue(pair.id, lost);
    this.#apply(pair, change);
  }

  #endRun(): void {
    // protocol-chat.md, steps 8 and 10
    const frames = this.#run;
    this.#run = [];
    const last = frames.at(-1);
    if (last === undefined) return;
    const { stream } = last;
    const receipt = (seq: number, answer: Answer): void => {
      this.#replies.push({ kind: 'receipt', stream, seq, answer });
    };
    const pair = this.#pair;
    if (pair === null || pair.state === 'none' || pair.state === 'in_pending') return receipt(0, 'gone');
    // A block is not told apart from silence: nobody reads it, as far as the peer can see.
    // protocol-chat.md, step 12
    if (pair.state === 'blocked') return receipt(last.seq, 'ok');
    if (pair.state === 'out_pending') return receipt(0, 'busy');
    if (pair.inStream === null || !equalBytes(pair.inStream, stream)) return receipt(0, 'unknown');
    if (pair.unread + frames.length > MAX_UNREAD || pair.unreadBytes > MAX_UNREAD_BYTES) return receipt(0, 'busy');
    const contents: ChatContent[] = [];
    let { received } = pair;
    for (const { seq, content } of frames) {
      // A gap: one of the two has lost its memory, and they begin anew, behind what is here.
      if (seq > received + 1) {
        this.#keep(pair, contents, received);
        return receipt(received, 'unknown');
      }
      received = Math.max(received, seq);
      contents.push(content);
    }
    this.#keep(pair, contents, received);
    receipt(last.seq, 'ok');
  }

  /** Keeps what is not in the log yet: what comes a second time has the same id. */
  #keep(pair: PairRow, contents: readonly ChatContent[], received: number): void {
    const { entries, events, store, clock } = this.#deps;
    const now = clock.now();
    // The clock of the peer says when it was written; that nothing is from the future, ours.
    const shown = contents.map((content) => ({ ...content, at: Math.min(content.at, now) }));
    const added = entries.receive(pair, shown, received, now);
    for (const seq of added) events.emit(pair.aid, 'chat.received', { peer: pair.peer, seq }, pair.peer);
    this.#pair = store.byId(pair.id);
    if (added.length > 0)
      events.emit(pair.aid, 'chat.unread', { peer: pair.peer, unread_count: this.#pair?.unread ?? 0 }, pair.peer);
  }
}
