/**
 * The state machine of the relationship of two agents. Pure: computes the next row of a pair from the current row and
 * an event. Each side names its part of a relationship with a new random stream ID, so that late messages of an earlier
 * relationship can be recognized. See docs/notes-and-chat.md, "Relationships".
 */
import { equalBytes } from '../../foundation/bytes.ts';
import { REQUEST_LIFE_MS } from '../../foundation/domain/chat.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Relationship } from '../../foundation/store/chat.ts';

/**
 * A request expires later at the sender than at the receiver by this time, so that an answer in the last minute is
 * accepted, milliseconds.
 */
export const REQUEST_GRACE_MS: number = 3600 * 1000;
/** The peer is informed of the end of a relationship for this time, milliseconds. */
const GONE_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** The stream ID of an ended relationship is stored for this time, to recognize late messages, milliseconds. */
const LATE_MS: number = 10 * 60_000;

/** The result of an event. */
export interface Change {
  readonly next: Relationship;
  /** Queued entries are dropped. */
  readonly dropsQueue: boolean;
}

/**
 * Answers to the peer. The index is the wire value. `unknown`: the stream is unknown, so its sender must introduce
 * itself again.
 */
export const ANSWERS = ['ok', 'gone', 'busy', 'unknown'] as const;
export type Answer = (typeof ANSWERS)[number];

const NO_RELATIONSHIP = {
  note: '',
  expiresAt: null,
  origin: null,
  outStream: null,
  acked: 0,
  ackedId: null,
  inStream: null,
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
 * Sends a request to the peer. Idempotent. If the peer has sent a request, accepts it.
 * @param stream a new stream ID
 * @throws SvcError `wrong_state` if they are friends
 */
export function request(r: Relationship, note: string, stream: Uint8Array, now: number): Change {
  if (r.state === 'friends') throw wrongState('This agent and the peer are already friends.');
  if (r.state === 'out_pending') return kept(r);
  if (r.state === 'in_pending') return accept(r, stream, now);
  const until = now + REQUEST_LIFE_MS + REQUEST_GRACE_MS;
  return kept({
    ...NO_RELATIONSHIP,
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
 * Accepts the request of the peer. Idempotent.
 * @param stream a new stream ID
 * @throws SvcError `wrong_state` if there is no request
 */
export function accept(r: Relationship, stream: Uint8Array, now: number): Change {
  if (r.state === 'friends') return kept(r);
  if (r.state !== 'in_pending') throw wrongState('There is no request from this peer to accept.');
  return kept({
    ...NO_RELATIONSHIP,
    state: 'friends',
    since: now,
    outStream: stream,
    inStream: r.inStream,
    control: 'accept',
  });
}

/** @throws SvcError `wrong_state` if there is no request */
export function refuse(r: Relationship, now: number): Change {
  if (r.state !== 'in_pending') throw wrongState('There is no request from this peer to decline.');
  return end(r, now);
}

/** Ends the friendship or withdraws the agent's request. @throws SvcError `wrong_state` if there is neither */
export function remove(r: Relationship, now: number): Change {
  if (r.state !== 'friends' && r.state !== 'out_pending')
    throw wrongState('This peer is not a friend, and there is no request to withdraw.');
  return end(r, now);
}

function end({ outStream, inStream }: Relationship, now: number): Change {
  const gone = { control: 'gone', controlUntil: now + GONE_LIFE_MS, goneOut: outStream, goneIn: inStream } as const;
  return { next: { ...NO_RELATIONSHIP, ...gone, state: 'none', since: now }, dropsQueue: true };
}

/** Blocks the peer without informing it. */
export function block(r: Relationship, now: number): Change {
  if (r.state === 'blocked') return kept(r);
  return { next: { ...NO_RELATIONSHIP, state: 'blocked', since: now }, dropsQueue: true };
}

/** Applies the expiry of a request, of a control message or of the stream ID of an ended relationship. */
export function expire(r: Relationship, now: number): Change {
  // protocol-chat.md, step 6
  const isOver = r.expiresAt !== null && r.expiresAt <= now;
  const isTold = r.controlUntil !== null && r.controlUntil <= now;
  if (isOver && (r.state === 'out_pending' || r.state === 'in_pending'))
    return { next: { ...NO_RELATIONSHIP, state: 'none', since: now }, dropsQueue: true };
  if (!isOver && !isTold) return kept(r);
  return kept({
    ...r,
    ...(isOver ? { expiresAt: null, goneIn: null } : {}),
    ...(isTold ? { control: null, controlUntil: null, goneOut: null } : {}),
  });
}

/** A received request. */
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
 * The peer sent a request.
 * @param stream a new stream ID, used if needed
 * @param hasRoom whether one more pending request can be stored
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
      // A blocked peer must not be able to detect the block.
      return answered('ok', r);
    case 'friends':
      // The peer has lost the acceptance.
      if (isSame(theirs, r.inStream)) return answered('ok', { ...r, control: 'accept', controlUntil: null });
      // The peer has lost its state and starts a new stream, so this side does too.
      return answered('ok', {
        ...r,
        outStream: stream,
        inStream: theirs,
        control: 'accept',
        controlUntil: null,
      });
    case 'out_pending':
      // Both sides sent a request, which counts as acceptance.
      return answered('ok', {
        ...NO_RELATIONSHIP,
        state: 'friends',
        since: now,
        outStream: r.outStream,
        inStream: theirs,
        control: 'accept',
      });
    case 'in_pending':
      return answered('ok', isSame(theirs, r.inStream) ? r : { ...r, inStream: theirs, note, origin });
    case 'none':
      // A message of an ended relationship: the peer has not received the end yet, or the message is late.
      if (isSame(theirs, r.goneIn)) return answered('ok', r);
      if (!hasRoom) return answered('busy', r);
      return answered('ok', {
        ...NO_RELATIONSHIP,
        state: 'in_pending',
        since: now,
        note,
        origin,
        expiresAt: now + REQUEST_LIFE_MS,
        inStream: theirs,
      });
  }
}

/** The peer accepts our stream `re`, or introduces itself again with its stream `theirs`. */
export function onAccept(r: Relationship, theirs: Uint8Array, re: Uint8Array, now: number): Answered {
  // protocol-chat.md, step 4
  if (r.state === 'blocked') return answered('ok', r);
  if (r.state !== 'out_pending' && r.state !== 'friends') return answered('gone', r);
  // If both sides started new streams at the same time, `re` is outdated.
  if (r.state === 'friends') return answered('ok', isSame(theirs, r.inStream) ? r : { ...r, inStream: theirs });
  // An answer to an earlier request. The current request is in flight and is answered too.
  if (!isSame(re, r.outStream)) return answered('ok', r);
  return answered('ok', { ...NO_RELATIONSHIP, state: 'friends', since: now, outStream: r.outStream, inStream: theirs });
}

/** The peer ends the relationship with the streams `theirs` and `ours`. One of them may be unknown. */
export function onGone(r: Relationship, theirs: Uint8Array | null, ours: Uint8Array | null, now: number): Answered {
  // protocol-chat.md, step 4
  const meant = isSame(theirs, r.inStream) || isSame(ours, r.outStream);
  if (!meant || r.state === 'blocked' || r.state === 'none') return answered('ok', r);
  return answered(
    'ok',
    { ...NO_RELATIONSHIP, state: 'none', since: now, expiresAt: now + LATE_MS, goneIn: r.inStream },
    true,
  );
}

/** The peer does not know our stream, so the relationship is over. */
export function onStranger(r: Relationship, ours: Uint8Array, now: number): Change {
  if (!isSame(ours, r.outStream) || (r.state !== 'friends' && r.state !== 'out_pending')) return kept(r);
  return { next: { ...NO_RELATIONSHIP, state: 'none', since: now, expiresAt: now + LATE_MS }, dropsQueue: true };
}

/** The peer does not know our stream, so we introduce ourselves again. @param stream a new stream ID */
export function onUnknownStream(r: Relationship, ours: Uint8Array, stream: Uint8Array): Change {
  if (!isSame(ours, r.outStream) || r.state !== 'friends') return kept(r);
  return kept({ ...r, outStream: stream, control: 'accept', controlUntil: null });
}

/**
 * Messages of a friend arrive, but the acceptance of the request was lost here, for example because a backup was
 * restored. The repeated request makes the peer repeat the acceptance.
 */
export function onEarlyMessage(r: Relationship): Change {
  const isUndelivered = r.state === 'out_pending' && r.control === null;
  return kept(isUndelivered ? { ...r, control: 'request', controlUntil: r.expiresAt } : r);
}

/** The content of a control message in flight, to compare with the current row. */
export type SentControl = Pick<Relationship, 'control' | 'outStream' | 'goneOut' | 'goneIn'>;

/** The peer acknowledged a control message. */
export function onControlAcknowledged(r: Relationship, sent: SentControl, now: number): Change {
  const same =
    r.control === sent.control &&
    (sent.control === 'gone'
      ? sameOrBothNull(r.goneOut, sent.goneOut) && sameOrBothNull(r.goneIn, sent.goneIn)
      : isSame(r.outStream, sent.outStream));
  if (!same) return kept(r);
  return kept({ ...r, expiresAt: expiryAfterAcknowledgment(r, now), control: null, controlUntil: null, goneOut: null });
}

/**
 * After a request, the peer has the full time to answer. After an end, `goneIn` is stored to recognize late messages.
 */
function expiryAfterAcknowledgment({ state, expiresAt }: Relationship, now: number): number | null {
  if (state === 'out_pending') return now + REQUEST_LIFE_MS + REQUEST_GRACE_MS;
  return state === 'none' ? now + LATE_MS : expiresAt;
}

/** Whether both are the same stream or both are null. */
export function sameOrBothNull(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return (a === null && b === null) || isSame(a, b);
}
