/** Chat: conversations between two agents that both accepted it. See docs/notes-and-chat.md. */
import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import type { AgentChange } from '../../foundation/agent-change.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import {
  ENTRY_ID_BYTES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  type PairState,
} from '../../foundation/domain/chat.ts';
import { isSha256 } from '../../foundation/domain/objects.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { ChatCounters, PairRow, ReadState } from '../../foundation/store/chat.ts';
import type { ChatContent, ChatEntry, ChatFile } from '../../foundation/store/chat-log.ts';
import { Couriers } from './couriers.ts';
import { applyChange, newStream } from './exchange.ts';
import { accept, block, type Change, expire, refuse, remove, request } from './relationship.ts';
import type { ChatDependencies, ChatObjects, Contact, ConversationPage, MessageDraft, SentEntry } from './types.ts';
import { isFileName, isNote } from './wire.ts';

/** Limit for each of: friends and requests of one agent, blocked peers of one agent. */
export const MAX_CONTACTS = 5000;
/** Limit of queued entries of one conversation. */
export const MAX_QUEUED = 200_000;
/** Limit of queued entries of one conversation, bytes. */
const MAX_QUEUED_BYTES: number = 256 * 1024 * 1024;
/**
 * If the peer may be reachable, `send` waits this long for delivery to return `sent` instead of `queued`, milliseconds.
 */
const ARRIVAL_WAIT_MS = 500;
/** Limit of the entries in one page, bytes. */
const MAX_PAGE_BYTES: number = 1024 * 1024;
/** Interval of the check for expired requests, milliseconds. */
const EXPIRY_CHECK_MS = 60_000;
/** Pairs that are read from the database in one step. */
const BATCH = 200;
/** After a start, queued entries are sent over this time, milliseconds. */
const START_SPREAD_MS = 3000;
/** After a network change, up to this many friends are contacted: those with recent entries, the latest first. */
const MAX_CONTACTED_FRIENDS = 200;
const RECENT_FRIENDS_MS: number = 7 * 24 * 3600 * 1000;
/** They are contacted over this time, milliseconds. */
const CONTACT_SPREAD_MS = 20_000;

export class Chat implements Component {
  readonly #deps: ChatDependencies;
  readonly #couriers: Couriers;
  readonly #arrivals: DeliveryWaits;
  #unsubscribe: () => void = () => {};
  #expiry: RepeatingTask | null = null;
  #ready = false;

  constructor(dependencies: ChatDependencies) {
    const deps = { ...dependencies, log: dependencies.log.child('chat') };
    this.#deps = deps;
    this.#arrivals = new DeliveryWaits(deps.clock);
    this.#couriers = new Couriers(deps, (aid, peer, upTo) => this.#arrivals.arrived(aid, peer, upTo));
  }

  async start(): Promise<void> {
    this.#couriers.start();
    this.#unsubscribe = this.#deps.network.onReachability(() => this.#networkChanged());
    this.#resume();
    this.#networkChanged();
    const onError = (error: unknown): void =>
      this.#deps.log.error({ error }, 'expired chat requests could not be removed');
    this.#expiry = every(this.#deps.clock, { firstMs: 0, periodMs: EXPIRY_CHECK_MS, onError }, () =>
      this.#expire() < BATCH ? EXPIRY_CHECK_MS : 0,
    );
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#expiry?.stop();
    this.#arrivals.stop();
    await this.#couriers.stop();
  }

  /**
   * Sends a chat request to a peer. If the peer has already sent one, they become friends.
   * @throws SvcError `not_found`, `self`, `too_large`, `wrong_state`, `quota_exceeded`
   */
  request(aid: Aid, peer: Aid, note: string): PairState {
    this.#check(aid, peer);
    if (!isNote(note) || !note.isWellFormed())
      throw new SvcError('too_large', { message: `A note can have at most ${MAX_REQUEST_NOTE_CHARS} characters.` });
    this.#requireQuota(aid);
    return this.#change(aid, peer, (pair, now) => request(pair, note, newStream(), now)).state;
  }

  /** @throws SvcError `not_found`, `self`, `wrong_state`, `quota_exceeded` */
  accept(aid: Aid, peer: Aid): PairState {
    this.#check(aid, peer);
    if (this.#deps.store.pair(aid, peer)?.state === 'in_pending') this.#requireQuota(aid);
    return this.#change(aid, peer, (pair, now) => accept(pair, newStream(), now)).state;
  }

  /** @throws SvcError `not_found`, `self`, `wrong_state` */
  refuse(aid: Aid, peer: Aid): void {
    this.#check(aid, peer);
    this.#change(aid, peer, refuse);
  }

  /** Ends a friendship, or withdraws a request. @throws SvcError `not_found`, `self`, `wrong_state` */
  remove(aid: Aid, peer: Aid): void {
    this.#check(aid, peer);
    this.#change(aid, peer, remove);
  }

  /** @throws SvcError `not_found`, `self`, `quota_exceeded` */
  block(aid: Aid, peer: Aid): void {
    this.#check(aid, peer);
    if (this.#deps.store.count(aid, 'blocked') >= MAX_CONTACTS)
      throw new SvcError('quota_exceeded', { message: `An agent can block at most ${MAX_CONTACTS} peers.` });
    this.#change(aid, peer, block);
  }

  /** Whether an agent has blocked a peer. */
  isBlocked(aid: Aid, peer: Aid): boolean {
    return this.#deps.store.pair(aid, peer)?.state === 'blocked';
  }

  /**
   * Sends a text or a file. The entry is on disk when this resolves. If the flush fails, the entry stays in the log,
   * and is sent after it has reached the disk.
   * @param alongside runs in the transaction that stores the entry
   * @throws SvcError `not_found`, `self`, `not_friends`, `invalid_request`, `too_large`, `quota_exceeded`,
   *   `not_writable`, and the errors of registering a file
   */
  async send(aid: Aid, peer: Aid, draft: MessageDraft, alongside?: (place: number) => void): Promise<SentEntry> {
    this.#check(aid, peer);
    // Files are registered only for friends. For texts, the transaction checks this.
    if (draft.path !== undefined || draft.objectId !== undefined)
      this.#requireFriends(this.#deps.store.pair(aid, peer));
    const { text, file } = await draftContent(this.#deps.objects, aid, draft);
    const id = new Uint8Array(randomBytes(ENTRY_ID_BYTES));
    const content = { id, at: this.#deps.clock.now(), text, file };
    const seq = await this.#deps.store.commit(() => {
      const place = this.#queue(aid, peer, content);
      this.#couriers.hold(aid, peer, place);
      alongside?.(place);
      return place;
    }, 'now');
    const mayArrive = this.#couriers.mayArriveNow(aid, peer);
    const arrival = mayArrive ? this.#arrivals.wait(aid, peer, seq, ARRIVAL_WAIT_MS) : false;
    this.#couriers.written(aid, peer, seq);
    return { seq, status: (await arrival) ? 'sent' : 'queued' };
  }

  /**
   * Returns the entries after a position. Empty if there is no conversation.
   * @throws SvcError `not_found`, `self`
   */
  read(aid: Aid, peer: Aid, afterSeq: number, limit: number): ConversationPage {
    this.#check(aid, peer);
    const pair = this.#deps.store.pair(aid, peer);
    if (pair === null) return { entries: [], scannedTo: 0, hasMore: false, readCursor: 0, unread: 0 };
    const { entries, more } = this.#deps.entries.page(pair.id, afterSeq, limit, MAX_PAGE_BYTES);
    // After a restore from a backup, an old cursor can be ahead of the log. Limit it, so that new entries are not
    // skipped.
    const scannedTo = entries.at(-1)?.seq ?? Math.min(afterSeq, pair.lastSeq);
    return { entries, scannedTo, hasMore: more, readCursor: pair.readCursor, unread: pair.unread };
  }

  /**
   * Returns the newest entries before a position, oldest first. Does not mark them as read.
   * @throws SvcError `not_found`, `self`
   */
  readBefore(aid: Aid, peer: Aid, beforeSeq: number, limit: number): ConversationPage {
    this.#check(aid, peer);
    const pair = this.#deps.store.pair(aid, peer);
    if (pair === null) return { entries: [], scannedTo: 0, hasMore: false, readCursor: 0, unread: 0 };
    const { entries, more } = this.#deps.entries.pageBefore(pair.id, beforeSeq, limit, MAX_PAGE_BYTES);
    const scannedTo = entries.at(-1)?.seq ?? 0;
    return { entries, scannedTo, hasMore: more, readCursor: pair.readCursor, unread: pair.unread };
  }

  /** The entry at a position; null if there is none. */
  entry(aid: Aid, peer: Aid, seq: number): ChatEntry | null {
    const pair = this.#deps.store.pair(aid, peer);
    return pair === null ? null : this.#deps.entries.entry(pair.id, seq);
  }

  /**
   * Marks a conversation as read up to a position, or completely if it is 0. The cursor never moves back.
   * @throws SvcError `not_found`, `self`
   */
  markRead(aid: Aid, peer: Aid, scannedTo: number): ReadState {
    this.#check(aid, peer);
    const pair = this.#deps.store.pair(aid, peer);
    if (pair === null) return { readCursor: 0, unread: 0 };
    return this.#deps.entries.markRead(pair.id, scannedTo === 0 ? pair.lastSeq : scannedTo);
  }

  /** @throws SvcError `not_found` */
  contacts(aid: Aid, state: Contact['state']): Contact[] {
    this.#requireLocal(aid);
    return this.#deps.store.inState(aid, state).map((pair) => {
      const { peer, since, note, unread, lastAt, lastSeq } = pair;
      const last = this.#deps.entries.entry(pair.id, lastSeq);
      return { peer, state, since, note, unread, lastAt, lastSeq, last };
    });
  }

  /** All pending chat requests of the local agents. */
  invitations(): PairRow[] {
    return [...this.pending()]
      .filter(([, { invites }]) => invites > 0)
      .flatMap(([aid]) => this.#deps.store.inState(aid, 'in_pending'));
  }

  /** The chat counters of the local agents by AID, without agents that have only zeros. */
  pending(): ReadonlyMap<Aid, ChatCounters> {
    return this.#deps.store.counters();
  }

  /** Handles a change of an agent. Deleting an agent deletes its conversations. */
  agentChanged({ aid, kind }: AgentChange): void {
    if (kind === 'deleted') this.#couriers.forget(aid);
    // After a move to this node, sending continues immediately and friends learn the new location.
    if (kind !== 'registered') return;
    const { store } = this.#deps;
    for (const { peer } of store.pendingPairsOf(aid)) this.#couriers.wakeRandomly(aid, peer, START_SPREAD_MS);
    for (const { peer } of store.inState(aid, 'friends').slice(-MAX_CONTACTED_FRIENDS))
      this.#couriers.wakeRandomly(aid, peer, CONTACT_SPREAD_MS);
  }

  #check(aid: Aid, peer: Aid): void {
    this.#requireLocal(aid);
    if (aid === peer) throw new SvcError('self');
  }

  #requireLocal(aid: Aid): void {
    if (this.#deps.identity(aid) === null) throw noSuchAgent(aid);
  }

  #requireQuota(aid: Aid): void {
    const { store } = this.#deps;
    if (store.count(aid, 'out_pending') + store.count(aid, 'friends') >= MAX_CONTACTS)
      throw new SvcError('quota_exceeded', {
        message: `An agent can have at most ${MAX_CONTACTS} friends and requests.`,
      });
  }

  #requireFriends(pair: PairRow | null): PairRow {
    if (pair?.state === 'friends' || pair?.state === 'out_pending') return pair;
    throw new SvcError('not_friends', {
      ...(pair?.state === 'in_pending' ? { message: 'The peer has sent a request. Accept it first.' } : {}),
      ...(pair?.state === 'blocked' ? { message: 'The peer is blocked. Send it a request to unblock it.' } : {}),
    });
  }

  /** Runs in a transaction, because the pair may have changed since it was read. */
  #queue(aid: Aid, peer: Aid, content: ChatContent): number {
    const pair = this.#requireFriends(this.#deps.store.pair(aid, peer));
    if (pair.queued >= MAX_QUEUED || pair.queuedBytes >= MAX_QUEUED_BYTES)
      throw new SvcError('quota_exceeded', {
        message: `${pair.queued} entries are queued for this peer, which is unreachable. Wait until they are delivered.`,
      });
    return this.#deps.entries.queue(pair.id, content);
  }

  #change(aid: Aid, peer: Aid, decide: (pair: PairRow, now: number) => Change): PairRow {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const changed = store.transaction(() => {
      const pair = store.open(aid, peer, now);
      if (pair === null) throw noSuchAgent(aid);
      return this.#apply(pair, decide(pair, now));
    });
    if (changed.control === null && (changed.state === 'none' || changed.state === 'blocked'))
      this.#couriers.closeLinks(aid, peer);
    else this.#couriers.wake(aid, peer);
    return changed;
  }

  #apply(pair: PairRow, change: Change): PairRow {
    const changed = applyChange(this.#deps, pair, change);
    this.#deps.store.deleteIfEmpty(pair.id);
    return changed;
  }

  /** Sends the entries that were queued before the restart, spread over some time. */
  #resume(): void {
    for (let after = 0, count = BATCH; count === BATCH; ) {
      const pairs = this.#deps.store.pendingPairs(after, BATCH);
      for (const { aid, peer } of pairs) this.#couriers.wakeRandomly(aid, peer, START_SPREAD_MS);
      after = pairs.at(-1)?.id ?? after;
      count = pairs.length;
    }
  }

  /** Friends may have queued entries for this node, and retry when it contacts them. */
  #networkChanged(): void {
    const { network, store, clock, log } = this.#deps;
    const { ready } = network.reachability();
    const isNew = ready && !this.#ready;
    this.#ready = ready;
    if (!isNew) return;
    try {
      this.#resume();
      for (const { aid, peer } of store.recentFriends(clock.now() - RECENT_FRIENDS_MS, MAX_CONTACTED_FRIENDS))
        this.#couriers.wakeRandomly(aid, peer, CONTACT_SPREAD_MS);
    } catch (error) {
      log.error({ error }, 'queued chat entries cannot be read');
    }
  }

  #expire(): number {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const overdue = store.overdue(now, BATCH);
    if (overdue.length > 0)
      store.transaction(() => {
        for (const pair of overdue) this.#apply(pair, expire(pair, now));
      });
    return overdue.length;
  }
}

// Waits for the delivery of entries to the peer.

interface Waiting {
  readonly seq: number;
  readonly timer: Timer;
  settle(arrived: boolean): void;
}

class DeliveryWaits {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting>>();
  #isStopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns true when the entry at `seq` is delivered, or false after `ms`. */
  async wait(aid: Aid, peer: Aid, seq: number, ms: number): Promise<boolean> {
    if (this.#isStopped) return false;
    const name = `${aid} ${peer}`;
    return await new Promise((resolve) => {
      const all = this.#waiting.get(name) ?? new Set();
      this.#waiting.set(name, all);
      const one: Waiting = {
        seq,
        timer: this.#clock.after(ms, () => one.settle(false)),
        settle: (arrived) => {
          one.timer.cancel();
          all.delete(one);
          if (all.size === 0 && this.#waiting.get(name) === all) this.#waiting.delete(name);
          resolve(arrived);
        },
      };
      all.add(one);
    });
  }

  /** Reports that all entries up to `upTo` are delivered. */
  arrived(aid: Aid, peer: Aid, upTo: number): void {
    for (const one of this.#waiting.get(`${aid} ${peer}`) ?? []) if (one.seq <= upTo) one.settle(true);
  }

  /** Ends all waits with false. */
  stop(): void {
    this.#isStopped = true;
    for (const all of this.#waiting.values()) for (const one of all) one.settle(false);
  }
}

// Checks the content of a new message and registers its file.

type DraftContent = Pick<ChatContent, 'text' | 'file'>;

function invalid(message: string, path: string): SvcError {
  return new SvcError('invalid_request', { message, details: { in: 'body', path } });
}

/**
 * Converts a draft to the content of an entry.
 * @throws SvcError `invalid_request`, `too_large`, `not_found` if the agent has no such object, and the errors of
 *   registering a file
 */
async function draftContent(objects: ChatObjects, aid: Aid, draft: MessageDraft): Promise<DraftContent> {
  const { path, objectId } = draft;
  if (path !== undefined && objectId !== undefined) throw invalid('Give path or object_id, not both.', '/object_id');
  checkText(draft.text ?? '');
  const text = draft.text === '' ? null : (draft.text ?? null);
  if (path !== undefined) return { text, file: named(await objects.put(aid, path), path) };
  if (objectId === undefined) {
    if (text === null) throw invalid('The message is empty. Give text, path or object_id.', '/text');
    return { text, file: null };
  }
  if (!isSha256(objectId)) throw invalid('object_id must be a SHA-256 in lower-case hex.', '/object_id');
  const known = await objects.has(aid, objectId);
  if (known === null) throw new SvcError('not_found', { thing: 'object', message: 'This agent has no such object.' });
  return { text, file: named({ objectId, ...known }, objectId) };
}

function checkText(text: string): void {
  const size = Buffer.byteLength(text);
  if (size > MAX_TEXT_BYTES)
    throw new SvcError('too_large', {
      message: `The text has ${size} bytes. The limit is ${MAX_TEXT_BYTES}.`,
      details: { size, limit: MAX_TEXT_BYTES },
    });
  if (!text.isWellFormed()) throw invalid('The text is not well-formed Unicode.', '/text');
}

/** Returns the file with a name that the peer accepts. Invalid characters are replaced. */
function named(file: ChatFile, otherwise: string): ChatFile {
  const name = file.name.toWellFormed();
  if (name !== '' && isFileName(name)) return { ...file, name };
  const plain = basename(otherwise)
    .toWellFormed()
    .replaceAll(/[/\\\p{Cc}]/gu, '_');
  return { ...file, name: isFileName(plain) && plain !== '' ? plain : file.objectId };
}
