/** Delivers entries to one peer of one agent, over the newest link that either side opened. */
import type { Control } from '../../foundation/domain/chat.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { PairRow } from '../../foundation/store/chat.ts';
import { type ChatEntry, entryBytes } from '../../foundation/store/chat-log.ts';
import { sameOrBothNull } from './relationship.ts';
import type { ChatSession, PendingControl, SendCursor } from './session.ts';
import type { ChatDependencies } from './types.ts';
import { CHAT_VERSION, encodeFrame, type Frame } from './wire.ts';

/** Limit of links between one agent and one peer. Beyond it, the oldest link is closed. */
const MAX_SESSIONS = 4;
/** Limit of unacknowledged entries. */
const WINDOW_ENTRIES = 1024;
/** Limit of unacknowledged entries, bytes. */
const WINDOW_BYTES: number = 2 * 1024 * 1024;
/** Limits of one read from the queue: entries and bytes. */
const BATCH_ENTRIES = 128;
const BATCH_BYTES: number = 512 * 1024;
const VERSION_BYTE: Uint8Array = Uint8Array.of(CHAT_VERSION);

type CourierDependencies = Pick<ChatDependencies, 'store' | 'entries'>;

export class Courier {
  readonly name: string;
  readonly aid: Aid;
  readonly peer: Aid;
  readonly #deps: CourierDependencies;
  /** Oldest first. */
  readonly sessions: Set<ChatSession> = new Set();
  /** The newest link. The peer opens another one only if the older link has failed. */
  #current: ChatSession | null = null;
  /** Consecutive failed attempts. */
  failures = 0;
  /** A link is being opened. */
  isOpening = false;
  /** The peer is not contacted before this time, Unix milliseconds. 0 means no restriction. */
  backoffUntil = 0;
  /** When switching to a faster path was last tried, Unix milliseconds. */
  pathTriedAt = 0;

  constructor(name: string, aid: Aid, peer: Aid, dependencies: CourierDependencies) {
    this.name = name;
    this.aid = aid;
    this.peer = peer;
    this.#deps = dependencies;
  }

  get current(): ChatSession | null {
    return this.#current?.closed === false ? this.#current : null;
  }

  /** The stored pair, or null if there is none. */
  get pair(): PairRow | null {
    return this.#deps.store.pair(this.aid, this.peer);
  }

  adopt(session: ChatSession): void {
    this.sessions.add(session);
    this.#current = session;
    const [oldest] = this.sessions;
    if (this.sessions.size > MAX_SESSIONS) oldest?.cut();
  }

  /** Must be called when a link has closed. */
  release(session: ChatSession): void {
    this.sessions.delete(session);
    if (this.#current === session) this.#current = [...this.sessions].findLast((other) => !other.closed) ?? null;
  }

  /** The first bytes of a new link: the version, and the pending control message, if it may be sent now. */
  firstBytes(mayControl: boolean): { readonly bytes: Uint8Array; readonly control: PendingControl | null } {
    const { pair } = this;
    const frame = pair === null || !mayControl ? null : controlFrame(pair, 1);
    if (pair === null || frame === null) return { bytes: VERSION_BYTE, control: null };
    return { bytes: Buffer.concat([VERSION_BYTE, encodeFrame(frame)]), control: { n: frame.n, about: pair } };
  }

  /** Whether there is a control message or an entry to send. */
  hasWork(): boolean {
    const { pair } = this;
    return pair !== null && (pair.control !== null || pair.queued > 0);
  }

  /**
   * Sends as much as the window allows. The rest follows when the peer acknowledges.
   * @param before position of the first entry that must not be sent yet
   */
  pump(before = Number.POSITIVE_INFINITY): void {
    const session = this.current;
    const pair = session && this.pair;
    if (session === null || pair === null) return;
    this.#sendControl(session, pair);
    this.#sendQueued(session, pair, before);
  }

  /**
   * Asks whether the peer still has the last acknowledged entry. A peer that restored a backup receives the lost entries
   * even if there is no new one.
   */
  check(session: ChatSession): void {
    // protocol-chat.md, step 7
    const { pair } = this;
    if (pair?.state !== 'friends' || pair.outStream === null || pair.ackedId === null || pair.queued > 0) return;
    session.send({ kind: 'check', stream: cursorOf(session, pair, pair.outStream).stream, after: pair.ackedId });
  }

  #sendControl(session: ChatSession, pair: PairRow): void {
    // protocol-chat.md, step 5
    if (pair.control === null || isAlreadySent(session, pair)) return;
    const frame = controlFrame(pair, session.nextNumber());
    if (frame === null) return;
    session.pendingControl = { n: frame.n, about: pair };
    session.awaits();
    session.send(frame);
  }

  #sendQueued(session: ChatSession, pair: PairRow, before: number): void {
    // protocol-chat.md, step 7
    if (pair.state !== 'friends' || pair.outStream === null || pair.queued === 0) return;
    const cursor = cursorOf(session, pair, pair.outStream);
    while (!session.isFull && !session.closed && fitsWindow(cursor)) {
      const { entries } = this.#deps;
      const queued = entries.queued(pair.id, cursor.lastEntry, BATCH_ENTRIES, BATCH_BYTES);
      const batch = queued.filter(({ seq }) => seq < before);
      if (batch.length === 0) return;
      session.awaits();
      session.send(...batch.map((entry) => frameOf(cursor, entry)));
    }
  }
}

function controlFrame(pair: PairRow, n: number): Extract<Frame, { kind: Control }> | null {
  const { control, outStream, inStream, note } = pair;
  if (control === 'gone') return { kind: 'gone', n, stream: pair.goneOut, re: pair.goneIn };
  if (outStream === null) return null;
  if (control === 'request') return { kind: 'request', n, stream: outStream, note };
  if (control === 'accept' && inStream !== null) return { kind: 'accept', n, stream: outStream, re: inStream };
  return null;
}

function isAlreadySent({ pendingControl: pending }: ChatSession, pair: PairRow): boolean {
  if (pending === null) return false;
  const { control, outStream, goneOut, goneIn } = pending.about;
  return (
    control === pair.control &&
    sameOrBothNull(outStream, pair.outStream) &&
    sameOrBothNull(goneOut, pair.goneOut) &&
    sameOrBothNull(goneIn, pair.goneIn)
  );
}

/** The send cursor of a link. On a new link it starts after the last acknowledged entry. */
function cursorOf(session: ChatSession, pair: PairRow, stream: Uint8Array): SendCursor {
  if (session.cursor === null || !sameOrBothNull(session.cursor.stream, stream))
    session.cursor = { stream, lastId: pair.ackedId, lastEntry: 0, unacknowledged: [] };
  return session.cursor;
}

/** Encodes the next message of a link. */
function frameOf(cursor: SendCursor, content: ChatEntry): Frame {
  const { id } = content;
  const after = cursor.lastId;
  cursor.lastId = id;
  cursor.lastEntry = content.seq;
  cursor.unacknowledged.push({ id, place: content.seq, bytes: entryBytes(content) });
  return { kind: 'message', stream: cursor.stream, after, content };
}

function fitsWindow({ unacknowledged }: SendCursor): boolean {
  if (unacknowledged.length >= WINDOW_ENTRIES) return false;
  return unacknowledged.reduce((sum, { bytes }) => sum + bytes, 0) < WINDOW_BYTES;
}
