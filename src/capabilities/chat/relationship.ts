/**
 * How two agents come to be friends and cease to be. Pure: what stands in the row of a pair, what
 * happened, what stands there then. Each side names its part of a relationship with a stream id of
 * its own, made anew every time, so that what is late from an earlier one is told apart. See
 * docs/notes-and-chat.md, "Relationships".
 */
import { equalBytes } from '../../foundation/bytes.ts';
import { REQUEST_LIFE_MS } from '../../foundation/domain/chat.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Relationship } from '../../foundation/store/chat.ts';

/** How much longer its sender waits than its receiver, so that an answer in the last minute is not refused, milliseconds. */
export const REQUEST_GRACE_MS: number = 3600 * 1000;
/** How long the peer is told that a relationship is over, milliseconds. */
const GONE_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** How long it is remembered which stream is over, so that a word of it that comes late is told apart, milliseconds. */
const LATE_MS: number = 10 * 60_000;

/** What a change means beside the row. */
export interface Change {
  readonly next: Relationship;
  /** Entries that were not delivered never will be. */
  readonly dropsQueue: boolean;
}

/** What the peer is answered; the place in this list is what travels. `unknown`: its stream is not known, it has to introduce itself anew. */
export const ANSWERS = ['ok', 'gone', 'busy', 'unknown'] as const;
export type Answer = (typeof ANSWERS)[number];

const NOTHING = {
  note: '',
  expiresAt: null,
  origin: null,
  outStream: null,
  acked: 0,
  inStream: null,
  received: 0,
  control: null,
  controlUntil: null,
  goneOut: null,
  goneIn: null,
} as const;

function isSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a !== null && b !== null && equalBytes(a, b);
}

function kept(next: Relationship): Change {
  return { next, dropsQueue: false };
}

function wrongState(message: string): SvcError {
  return new SvcError('wrong_state', { message });
}

/**
 * We ask for a relationship. Asking again changes nothing; where the peer has asked, it is an acceptance.
 * @param stream a fresh id
 * @throws SvcError `wrong_state` where they are friends
 */
export function request(r: Relationship, note: string, stream: Uint8Array, now: number): Change {
  if (r.state === 'friends') throw wrongState('This agent and the peer are friends already.');
  if (r.state === 'out_pending') return kept(r);
  if (r.state === 'in_pending') return accept(r, stream, now);
  const until = now + REQUEST_LIFE_MS + REQUEST_GRACE_MS;
  return kept({
    ...NOTHING,
    state: 'out_pending',
    since: now,
    note,
    expiresAt: until,
    outStream: stream,
    control: 'request',
    controlUntil: until,
  });
}

/**
 * We accept the peer's request; accepting again changes nothing.
 * @param stream a fresh id
 * @throws SvcError `wrong_state` where there is none
 */
export function accept(r: Relationship, stream: Uint8Array, now: number): Change {
  if (r.state === 'friends') return kept(r);
  if (r.state !== 'in_pending') throw wrongState('The peer has sent no request that could be accepted.');
  return kept({ ...NOTHING, state: 'friends', since: now, outStream: stream, inStream: r.inStream, control: 'accept' });
}

/** @throws SvcError `wrong_state` where the peer has sent no request */
export function refuse(r: Relationship, now: number): Change {
  if (r.state !== 'in_pending') throw wrongState('The peer has sent no request that could be refused.');
  return end(r, now);
}

/** We end the relationship, or withdraw our request. @throws SvcError `wrong_state` where there is neither */
export function remove(r: Relationship, now: number): Change {
  if (r.state !== 'friends' && r.state !== 'out_pending')
    throw wrongState('There is no friend and no request of ours to remove.');
  return end(r, now);
}

function end({ outStream, inStream }: Relationship, now: number): Change {
  const gone = { control: 'gone', controlUntil: now + GONE_LIFE_MS, goneOut: outStream, goneIn: inStream } as const;
  return { next: { ...NOTHING, ...gone, state: 'none', since: now }, dropsQueue: true };
}

/** We hear nothing more from the peer, which is told nothing. */
export function block(r: Relationship, now: number): Change {
  if (r.state === 'blocked') return kept(r);
  return { next: { ...NOTHING, state: 'blocked', since: now }, dropsQueue: true };
}

/** An open request, our word to the peer, or what is remembered of a relationship that is over, has lasted too long. */
export function expire(r: Relationship, now: number): Change {
  // protocol-chat.md, step 6
  const isOver = r.expiresAt !== null && r.expiresAt <= now;
  const isTold = r.controlUntil !== null && r.controlUntil <= now;
  if (isOver && (r.state === 'out_pending' || r.state === 'in_pending'))
    return { next: { ...NOTHING, state: 'none', since: now }, dropsQueue: true };
  if (!isOver && !isTold) return kept(r);
  return kept({
    ...r,
    ...(isOver ? { expiresAt: null, goneIn: null } : {}),
    ...(isTold ? { control: null, controlUntil: null, goneOut: null } : {}),
  });
}

/** The peer's request, as it came. */
export interface IncomingRequest {
  readonly stream: Uint8Array;
  readonly note: string;
  readonly origin: string | null;
}

export interface Answered extends Change {
  readonly answer: Answer;
}

function answered(answer: Answer, next: Relationship, dropsQueue = false): Answered {
  return { answer, next, dropsQueue };
}

/**
 * The peer asks for a relationship.
 * @param stream a fresh id, where one is needed
 * @param hasRoom whether one more open request may be kept
 */
export function onRequest(
  r: Relationship,
  incoming: IncomingRequest,
  stream: Uint8Array,
  hasRoom: boolean,
  now: number,
): Answered {
  const { stream: theirs, note, origin } = incoming;
  switch (r.state) {
    case 'blocked':
      // A block is not told apart from silence.
      return answered('ok', r);
    case 'friends':
      if (isSame(theirs, r.inStream)) return answered('ok', r);
      // The peer has begun anew, with a memory of its own: so do we. What it has twice, its ids tell it.
      return answered('ok', {
        ...r,
        outStream: stream,
        acked: 0,
        inStream: theirs,
        received: 0,
        control: 'accept',
        controlUntil: null,
      });
    case 'out_pending':
      // Both have asked: that is an answer.
      return answered('ok', {
        ...NOTHING,
        state: 'friends',
        since: now,
        outStream: r.outStream,
        inStream: theirs,
        control: 'accept',
      });
    case 'in_pending':
      return answered('ok', isSame(theirs, r.inStream) ? r : { ...r, inStream: theirs, note, origin });
    case 'none':
      // That relationship is over: the peer does not know yet, or its word comes late.
      if (isSame(theirs, r.goneIn)) return answered('ok', r);
      if (!hasRoom) return answered('busy', r);
      return answered('ok', {
        ...NOTHING,
        state: 'in_pending',
        since: now,
        note,
        origin,
        expiresAt: now + REQUEST_LIFE_MS,
        inStream: theirs,
      });
  }
}

/** The peer accepts our stream `re`, or introduces itself anew, with its stream `theirs`. */
export function onAccept(r: Relationship, theirs: Uint8Array, re: Uint8Array, now: number): Answered {
  // protocol-chat.md, step 4
  if (r.state === 'blocked') return answered('ok', r);
  if (r.state !== 'out_pending' && r.state !== 'friends') return answered('gone', r);
  // Both say that they are friends. Where both have begun anew at once, `re` is out of date.
  if (r.state === 'friends')
    return answered('ok', isSame(theirs, r.inStream) ? r : { ...r, inStream: theirs, received: 0 });
  // An answer to an earlier request of ours: the present one is on its way and is answered as well.
  if (!isSame(re, r.outStream)) return answered('ok', r);
  return answered('ok', { ...NOTHING, state: 'friends', since: now, outStream: r.outStream, inStream: theirs });
}

/** The peer ends the relationship in which it sent `theirs` and we sent `ours`; either may be unknown. */
export function onGone(r: Relationship, theirs: Uint8Array | null, ours: Uint8Array | null, now: number): Answered {
  // protocol-chat.md, step 4
  const meant = isSame(theirs, r.inStream) || isSame(ours, r.outStream);
  if (!meant || r.state === 'blocked' || r.state === 'none') return answered('ok', r);
  return answered('ok', { ...NOTHING, state: 'none', since: now, expiresAt: now + LATE_MS, goneIn: r.inStream }, true);
}

/** The peer knows nothing of the stream that we send: the relationship is over on its side. */
export function onStranger(r: Relationship, ours: Uint8Array, now: number): Change {
  if (!isSame(ours, r.outStream) || (r.state !== 'friends' && r.state !== 'out_pending')) return kept(r);
  return { next: { ...NOTHING, state: 'none', since: now, expiresAt: now + LATE_MS }, dropsQueue: true };
}

/** The peer does not know our stream: we introduce ourselves anew. @param stream a fresh id */
export function onUnknownStream(r: Relationship, ours: Uint8Array, stream: Uint8Array): Change {
  if (!isSame(ours, r.outStream) || r.state !== 'friends') return kept(r);
  return kept({ ...r, outStream: stream, acked: 0, control: 'accept', controlUntil: null });
}

/** What the peer was told, to compare with what it is to be told by now. */
export type Told = Pick<Relationship, 'control' | 'outStream' | 'goneOut' | 'goneIn'>;

/** The peer has heard what it was told. */
export function onHeard(r: Relationship, told: Told, now: number): Change {
  const same =
    r.control === told.control &&
    (told.control === 'gone'
      ? eitherSame(r.goneOut, told.goneOut) && eitherSame(r.goneIn, told.goneIn)
      : isSame(r.outStream, told.outStream));
  if (!same) return kept(r);
  return kept({ ...r, expiresAt: afterHeard(r, now), control: null, controlUntil: null, goneOut: null });
}

/** A request: from now on the peer has its time to answer. An end: `goneIn` stays, what comes late is told apart by it. */
function afterHeard({ state, expiresAt }: Relationship, now: number): number | null {
  if (state === 'out_pending') return now + REQUEST_LIFE_MS + REQUEST_GRACE_MS;
  return state === 'none' ? now + LATE_MS : expiresAt;
}

/** True for the same stream, or none on both sides. */
export function eitherSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return (a === null && b === null) || isSame(a, b);
}
