/**
 * The couriers of all pairs with queued work or an open link. An unresponsive peer is retried with growing delays, and
 * immediately when it opens a link.
 */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { Semaphore } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { CONTROLS } from '../../foundation/domain/chat.ts';
import { DueNames } from '../../foundation/due-names.ts';
import { DueQueue } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { RateQuota, type RateQuotaLimits } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { Courier } from './courier.ts';
import { processFrames } from './exchange.ts';
import { ChatSession, type PendingControl, type SessionEvents } from './session.ts';
import type { ChatDependencies } from './types.ts';
import type { Frame } from './wire.ts';

/** Milliseconds between retries for an unresponsive peer. */
const RETRY: JitteredBackoff = { firstMs: 2000, maxMs: 60_000, jitter: 0.5 };
/** Longest delay for a peer that has been unreachable for many attempts, milliseconds. */
const RETRY_UNREACHABLE_MS = 300_000;
/** After this many failed attempts, `RETRY_UNREACHABLE_MS` applies. */
const UNREACHABLE_AFTER_ATTEMPTS = 30;
/** Delay before a link that broke after it made progress is reopened, milliseconds. */
const REOPEN_MS = 200;
/** A peer that answered `busy` is not contacted for this time, milliseconds. */
const BUSY_MS = 30_000;
/** Timeout for connecting to a peer, milliseconds. */
const OPEN_TIMEOUT_MS = 10_000;
/** Limit of links that are opened concurrently. */
const MAX_OPENING = 16;
/** Interval of the check of all links, milliseconds. */
const SWEEP_MS = 5000;
/** An outbound link is closed after this idle time, milliseconds. */
const IDLE_MS = 60_000;
/** An inbound link of a friend is closed after this idle time, milliseconds. */
const PEER_IDLE_MS = 150_000;
/** An inbound link of another peer is closed after this idle time, milliseconds. */
const STRANGER_IDLE_MS = 15_000;
/** Shortest interval between attempts to switch one pair to a faster path, milliseconds. */
const PATH_RETRY_MS = 60_000;
/** A link without an acknowledgment for this time is closed, milliseconds. */
const ANSWER_TIMEOUT_MS = 20_000;
/**
 * Limits of links of peers that are not friends: in total, of one pair, of one IPv4 address or IPv6 /64, and of one
 * IPv4 /24 or IPv6 /48.
 */
const MAX_STRANGERS = 512;
const MAX_STRANGERS_PER_PAIR = 4;
const MAX_STRANGERS_PER_SOURCE = 16;
const MAX_STRANGERS_PER_NETWORK = 64;
/** Links reserved for agents that the owner knows. */
const RESERVED_STRANGERS = 128;
/** Rates of received requests, acceptances and ends. Each one is written to disk and may cause an event. */
const CONTROL_RATES: RateQuotaLimits = {
  perKey: { perSecond: 2, burst: 60 },
  perSource: { perSecond: 10, burst: 300 },
  perNetwork: { perSecond: 20, burst: 600 },
  strangers: { perSecond: 50, burst: 1000 },
};
const CONTROL_FRAMES: ReadonlySet<Frame['kind']> = new Set<Frame['kind']>(CONTROLS);

type CourierParts = Pick<
  ChatDependencies,
  'store' | 'entries' | 'events' | 'clock' | 'isKnown' | 'links' | 'log' | 'random'
>;

function nameOf(aid: Aid, peer: Aid): string {
  return `${aid} ${peer}`;
}

interface Adoption {
  readonly outbound: boolean;
  /** The control message that was sent with the header. */
  readonly first?: PendingControl | null;
  /** The share of a stranger. */
  readonly place?: QuotaShare | null;
}

export class Couriers {
  readonly #deps: CourierParts;
  readonly #onSent: (aid: Aid, peer: Aid, upTo: number) => void;
  readonly #couriers = new Map<string, Courier>();
  /** Positions of the first and the last entry of a pair that are not on disk, by the name of its courier. */
  readonly #held = new Map<string, { readonly first: number; readonly last: number }>();
  readonly #retries = new DueNames();
  readonly #queue: DueQueue<string>;
  readonly #stop = new AbortController();
  readonly #opening = new Semaphore(MAX_OPENING);
  readonly #onError = (error: unknown): void => this.#deps.log.error({ error }, 'a chat task failed');
  readonly #strangers = new Quota(
    {
      perKey: MAX_STRANGERS_PER_PAIR,
      perSource: MAX_STRANGERS_PER_SOURCE,
      perNetwork: MAX_STRANGERS_PER_NETWORK,
      total: MAX_STRANGERS,
      reserved: RESERVED_STRANGERS,
    },
    { ownYields: true },
  );
  readonly #controls: RateQuota;
  #sweep: RepeatingTask | null = null;

  /**
   * Accepts the links of purpose `chat`.
   * @param onSent reports delivery. `upTo` is a position in the log of the conversation
   */
  constructor(dependencies: CourierParts, onSent: (aid: Aid, peer: Aid, upTo: number) => void) {
    this.#deps = dependencies;
    this.#onSent = onSent;
    this.#controls = new RateQuota(CONTROL_RATES, dependencies);
    const { clock, log } = dependencies;
    this.#queue = new DueQueue(
      { name: 'chat retries', retry: { ...RETRY, maxMs: RETRY_UNREACHABLE_MS }, atOnce: { total: MAX_OPENING } },
      {
        clock,
        log,
        random: () => dependencies.random(),
        now: () => clock.monotonic(),
        table: this.#retries,
        work: async (name) => this.#retry(name),
      },
    );
    dependencies.links.accept('chat', (link) => this.#accept(link));
    dependencies.store.onRepair(() => this.#releaseAll());
  }

  start(): void {
    this.#queue.start();
    this.#sweep = every(this.#deps.clock, { periodMs: SWEEP_MS, onError: this.#onError }, () => this.#checkAll());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#sweep?.stop();
    for (const session of this.#sessions()) session.cut();
    await this.#queue.stop();
  }

  /** Sends queued work now if a link is open, otherwise as soon as one can be opened. */
  wake(aid: Aid, peer: Aid): void {
    this.#guard(() => {
      const courier = this.#courier(aid, peer);
      if (courier.current !== null) {
        this.#pump(courier);
        return this.#switchPath(courier, courier.current);
      }
      if (!this.#isBusy(courier) && courier.failures === 0) this.#open(courier);
    });
  }

  /**
   * Holds a newly queued entry back until it is on disk: a peer must not have an entry that this log loses in a power
   * failure. To be called in its transaction. `written`, or the repair of the database after a failed flush, ends it.
   */
  hold(aid: Aid, peer: Aid, seq: number): void {
    const name = nameOf(aid, peer);
    this.#held.set(name, { first: Math.min(this.#held.get(name)?.first ?? seq, seq), last: seq });
  }

  /** A flush covers all earlier entries. */
  #release(name: string, seq: number): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    if (seq >= held.last) this.#held.delete(name);
    else this.#held.set(name, { ...held, first: Math.max(held.first, seq + 1) });
  }

  /** Releases all entries now, because later ones are not on disk. The couriers run when the transaction has ended. */
  #releaseAll(): void {
    const names = [...this.#held.keys()];
    this.#held.clear();
    queueMicrotask(() => {
      if (this.#stop.signal.aborted) return;
      for (const name of names) this.wake(...(name.split(' ') as [Aid, Aid]));
    });
  }

  /** As `wake`, for a newly queued entry that is on disk. */
  written(aid: Aid, peer: Aid, seq: number): void {
    this.#release(nameOf(aid, peer), seq);
    this.wake(aid, peer);
  }

  #mayDeliver(courier: Courier): boolean {
    return !this.#stop.signal.aborted && !this.#isBusy(courier);
  }

  #isBusy({ backoffUntil }: Courier): boolean {
    return backoffUntil > this.#deps.clock.monotonic();
  }

  /** As `wake`, at a random time within `ms`. */
  wakeRandomly(aid: Aid, peer: Aid, ms: number): void {
    this.#retryWithin(nameOf(aid, peer), Math.ceil(this.#deps.random() * ms));
  }

  /** Whether an entry may be delivered immediately: a link is open, or the last attempt did not fail. */
  mayArriveNow(aid: Aid, peer: Aid): boolean {
    const courier = this.#couriers.get(nameOf(aid, peer));
    return courier === undefined || courier.current !== null || courier.failures === 0;
  }

  /** Closes the links of a pair after pending writes. */
  closeLinks(aid: Aid, peer: Aid): void {
    for (const session of this.#couriers.get(nameOf(aid, peer))?.sessions ?? []) session.end();
  }

  /** Closes the links of a deleted agent. */
  forget(aid: Aid): void {
    for (const courier of this.#couriers.values()) {
      if (courier.aid !== aid) continue;
      this.#retries.cancel(courier.name);
      for (const session of courier.sessions) session.cut();
    }
  }

  #courier(aid: Aid, peer: Aid): Courier {
    const name = nameOf(aid, peer);
    const known = this.#couriers.get(name);
    if (known !== undefined) return known;
    const courier = new Courier(name, aid, peer, this.#deps);
    this.#couriers.set(name, courier);
    return courier;
  }

  #sessions(): IteratorObject<ChatSession> {
    return this.#couriers.values().flatMap(({ sessions }) => sessions);
  }

  #accept(link: LinkStream): void {
    const isFriend = this.#deps.store.pair(link.called, link.caller)?.state === 'friends';
    const place = isFriend ? null : this.#strangers.take(this.#holder(link, false), { onEvict: () => link.destroy() });
    if (this.#stop.signal.aborted || (!isFriend && place === null)) {
      place?.release();
      return void link.destroy();
    }
    const courier = this.#courier(link.called, link.caller);
    // A peer that opens a link is reachable.
    courier.failures = 0;
    courier.backoffUntil = 0;
    this.#adopt(courier, link, { outbound: false, place });
  }

  #holder(link: LinkStream, isFriend: boolean) {
    return pairHolder(link, isFriend || this.#deps.isKnown(link.called, link.caller));
  }

  #adopt(courier: Courier, link: LinkStream, { outbound, first = null, place = null }: Adoption): void {
    // protocol-chat.md, steps 1 and 3
    const events: SessionEvents = {
      onFrames: (from, frames) => this.#onFrames(courier, from, frames),
      onArrival: (_, upTo) => this.#onSent(courier.aid, courier.peer, upTo),
      onFailure: (_, error) => this.#onFailure(courier, error),
      onDrain: () => this.#guard(() => this.#pump(courier)),
      onClose: (ended) => this.#guard(() => this.#onClose(courier, ended)),
    };
    const session = new ChatSession(link, outbound, this.#deps.clock, events, first);
    session.place = place;
    session.isFriend = courier.pair?.state === 'friends';
    courier.adopt(session);
    this.#retries.cancel(courier.name);
    courier.check(session);
    this.#pump(courier);
  }

  #onFrames(courier: Courier, session: ChatSession, frames: readonly Frame[]): void {
    // During shutdown, frames are ignored. The peer sends them again later.
    if (this.#stop.signal.aborted) return;
    if (!this.#mayControl(session, frames)) return session.cut();
    const { replies, sentUpTo, isBusy } = processFrames(this.#deps, session, frames);
    if (sentUpTo > 0) this.#onSent(courier.aid, courier.peer, sentUpTo);
    if (isBusy) {
      courier.backoffUntil = this.#deps.clock.monotonic() + BUSY_MS;
      this.#retryWithin(courier.name, BUSY_MS);
    }
    // Events first, then the reply: local subscribers should not wait for it.
    if (replies.length > 0) setImmediate(() => this.#guard(() => this.#sendReplies(courier, session, replies)));
    else this.#sendReplies(courier, session, replies);
  }

  /** A local agent has chosen a peer that this node called, so its control frames are not rate-limited. */
  #mayControl(session: ChatSession, frames: readonly Frame[]): boolean {
    const count = frames.filter(({ kind }) => CONTROL_FRAMES.has(kind)).length;
    if (count === 0) return true;
    return this.#controls.take(this.#holder(session.link, session.outbound || session.isFriend), count);
  }

  #sendReplies(courier: Courier, session: ChatSession, replies: readonly Frame[]): void {
    if (this.#stop.signal.aborted) return;
    session.send(...replies);
    session.isFriend = courier.pair?.state === 'friends';
    if (session.isFriend) session.place?.release();
    this.#pump(courier);
  }

  #pump(courier: Courier): void {
    if (this.#mayDeliver(courier)) courier.pump(this.#held.get(courier.name)?.first);
  }

  /** No caller awaits this work, so a disk error is only logged. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onError(error);
    }
  }

  #onFailure({ aid, peer }: Courier, error: unknown): void {
    const { log } = this.#deps;
    if (error instanceof RangeError) log.debug({ aid, peer, error }, 'a chat peer violated the protocol');
    else log.error({ aid, peer, error }, 'a message of a chat peer could not be stored');
  }

  #onClose(courier: Courier, session: ChatSession): void {
    session.place?.release();
    courier.release(session);
    if (this.#stop.signal.aborted) return;
    if (session.madeProgress) courier.failures = 0;
    else if (session.waitingSince !== null) courier.failures++;
    if (courier.current !== null) return this.#pump(courier);
    this.#scheduleRetry(courier, session.madeProgress ? REOPEN_MS : this.#pause(courier));
  }

  /** Schedules a retry if there is work. Otherwise forgets the courier. */
  #scheduleRetry(courier: Courier, ms: number): void {
    if (courier.hasWork()) this.#retryWithin(courier.name, ms);
    else if (courier.sessions.size === 0 && !courier.isOpening) {
      this.#retries.cancel(courier.name);
      this.#couriers.delete(courier.name);
    }
  }

  #pause({ failures }: Courier): number {
    const maxMs = failures > UNREACHABLE_AFTER_ATTEMPTS ? RETRY_UNREACHABLE_MS : RETRY.maxMs;
    return backoff({ ...RETRY, maxMs }, failures + 1, this.#deps.random());
  }

  /** Plans a retry, or keeps an earlier one. */
  #retryWithin(name: string, ms: number): void {
    this.#retries.plan(name, this.#deps.clock.monotonic() + ms);
    this.#queue.soon(ms);
  }

  #retry(name: string): void {
    this.#retries.cancel(name);
    const [aid, peer] = name.split(' ') as [Aid, Aid];
    const courier = this.#courier(aid, peer);
    courier.backoffUntil = 0;
    if (courier.current === null) this.#open(courier);
    else this.#pump(courier);
  }

  /** Opens a new link if it would use a faster path. Later frames use the new link. */
  #switchPath(courier: Courier, session: ChatSession | null): void {
    const now = this.#deps.clock.monotonic();
    if (session?.link.isOutdated?.() !== true || now - courier.pathTriedAt < PATH_RETRY_MS) return;
    courier.pathTriedAt = now;
    this.#open(courier, session);
  }

  #open(courier: Courier, insteadOf: ChatSession | null = null): void {
    if (courier.isOpening || this.#stop.signal.aborted) return;
    courier.isOpening = true;
    detach(
      this.#opening
        .run(() => this.#tryOpen(courier, insteadOf))
        .finally(() => {
          courier.isOpening = false;
          if (courier.current === null) this.#guard(() => this.#scheduleRetry(courier, this.#pause(courier)));
        }),
    );
  }

  async #tryOpen(courier: Courier, insteadOf: ChatSession | null): Promise<void> {
    const { links, log } = this.#deps;
    if (courier.current !== insteadOf || this.#stop.signal.aborted) return;
    const { aid, peer } = courier;
    try {
      // protocol-chat.md, step 1. A control message may be sent again, so another attempt does no harm.
      let control: PendingControl | null = null;
      const bytes = (): Uint8Array => {
        const first = courier.firstBytes(this.#mayDeliver(courier));
        ({ control } = first);
        return first.bytes;
      };
      const options = { timeoutMs: OPEN_TIMEOUT_MS, signal: this.#stop.signal, first: { bytes } };
      const link = await links.open(aid, peer, 'chat', options);
      if (this.#stop.signal.aborted) link.destroy();
      else this.#adopt(courier, link, { outbound: true, first: control });
      insteadOf?.end();
    } catch (error) {
      if (insteadOf === null) courier.failures++;
      if (this.#stop.signal.aborted) return;
      const code = error instanceof SvcError ? error.code : 'internal';
      log.debug({ aid, peer, code, failures: courier.failures }, 'a chat peer could not be reached');
    }
  }

  #checkAll(): void {
    const now = this.#deps.clock.monotonic();
    for (const session of this.#sessions()) this.#look(session, now);
  }

  #look(session: ChatSession, now: number): void {
    // protocol-chat.md, step 13
    if (session.waitingSince !== null && now - session.waitingSince > ANSWER_TIMEOUT_MS) return session.cut();
    const idle = session.outbound ? IDLE_MS : session.isFriend ? PEER_IDLE_MS : STRANGER_IDLE_MS;
    if (now - session.lastActivity > idle) session.end();
  }
}
