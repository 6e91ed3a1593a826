/**
 * The channel: items that arrive for the agents of this node, for one running session of an assistant at a time. Each
 * item is handed to a session in the order of the events, and counts as read when the session has taken it.
 */
import type { HookKind } from '../../foundation/domain/hooks.ts';
import { EVENT_TYPES, type EventPayloads, type EventType } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { memberOf } from '../../foundation/json.ts';
import type { KnownAgents, NodeParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import type { StoredEvent } from '../../foundation/store/events.ts';
import { type Arrival, type ArrivalDetails, arrivalsIn, type ItemRef } from './arrivals.ts';

/** Longest text of an item, bytes. A longer one is cut, and the item stays unread. */
export const MAX_CHANNEL_TEXT_BYTES: number = 16 * 1024;
/** Burst of items, and further items per minute. */
export const CHANNEL_BURST = 100;
export const CHANNEL_ITEMS_PER_MINUTE = 60;
/** Interval of the counts of items of strangers, milliseconds: each starts a turn of the session. */
export const STRANGERS_COUNT_MS: number = 10 * 60_000;
/** How long a request waits for an item, milliseconds. */
const WAIT_MS = 50_000;
/** When a session that is not the current one should ask again, milliseconds. */
const OTHER_SESSION_MS = 5000;
/** Time for a session to take an item and ask for the next one, milliseconds. Then another session can have it. */
const LEASE_MS = 30_000;
/** Events that are read in one step. */
const PAGE = 100;
const STRANGERS = 'strangers';
const KEY = 'channel';
const POSITION = /^(\d{1,15})\.(\d{1,6})$/;
const TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => type !== 'path.changed');

/** Events before `seq`, and the first `done` items of event `seq`, are handed over. */
interface Cursor {
  readonly seq: number;
  readonly done: number;
}

interface Progress extends Cursor {
  /** Items of strangers that no count has included yet. */
  readonly strangers: number;
}

interface Found {
  readonly at: Cursor;
  readonly arrival: Arrival;
  readonly item: Readonly<Record<string, unknown>>;
}

/** An item for a session. */
export interface ChannelItem {
  /** Names the item, also after a restart. */
  readonly position: string;
  readonly kind: HookKind | typeof STRANGERS;
  /** The local agent and the sender; null for a count. */
  readonly aid: Aid | null;
  readonly peer: Aid | null;
  /** Written by the sender. */
  readonly text: string;
  /** The text is cut. */
  readonly isCut: boolean;
  /** The item as the API returns it. */
  readonly item: Readonly<Record<string, unknown>>;
}

/** A request of a session for its next item. */
export interface ChannelRequest {
  /** Random name of the session. */
  readonly session: string;
  /** When the session started, Unix milliseconds: the newest one gets the items. */
  readonly started: number;
  /** Position of the last item that it has taken. */
  readonly taken?: string | undefined;
  /** The session ends: it wants no further item. */
  readonly isLast?: boolean | undefined;
}

/** No item. `again_ms`: when to ask again. */
export type ChannelAnswer = { readonly item: ChannelItem } | { readonly item: null; readonly again_ms: number };

export interface ChannelItems extends ArrivalDetails {
  load(aid: Aid, peer: Aid, ref: ItemRef): Readonly<Record<string, unknown>> | null;
  /** True for an item that was read before. */
  isRead(aid: Aid, peer: Aid, ref: ItemRef): boolean;
  markRead(aid: Aid, peer: Aid, ref: ItemRef): void;
}

export interface ChannelDependencies extends NodeParts, KnownAgents {
  readonly items: ChannelItems;
  readonly events: {
    after(seq: number, limit: number, filter: { readonly types: readonly EventType[] }): readonly StoredEvent[];
  };
  /** Repeats a read after each event. */
  readonly waits: {
    until<T>(
      wait: { readonly aid: null; readonly wait_s: number; readonly client: { readonly signal: AbortSignal } },
      read: () => T,
      isEmpty: (value: T) => boolean,
    ): Promise<T>;
  };
  /** A hook must still handle the item, and marks it as read. */
  readonly isHooked: (arrival: Arrival) => boolean;
  readonly storage: { get(key: string): unknown; set(key: string, value: Record<keyof Progress, number>): void };
  readonly commit: (work: () => void) => Promise<void>;
}

/** The session that gets the items. */
interface Holder {
  readonly session: string;
  readonly started: number;
  /** Aborts when another session replaces it. */
  readonly replaced: AbortController;
  /** Requests that wait. */
  asking: number;
  /** Without a request, another session may replace it after this, monotonic milliseconds. */
  until: number;
}

export class Channel {
  readonly #deps: ChannelDependencies;
  readonly #rate: RateLimiter;
  #progress: Progress | null = null;
  #holder: Holder | null = null;
  /** The item that the session has and did not confirm. */
  #out: ChannelItem | null = null;
  #countedAt = Number.NEGATIVE_INFINITY;
  /** When something is due without a new event, milliseconds from the last search. */
  #dueMs = WAIT_MS;

  constructor(dependencies: ChannelDependencies) {
    this.#deps = dependencies;
    const rate = { perSecond: CHANNEL_ITEMS_PER_MINUTE / 60, burst: CHANNEL_BURST, maxKeys: 1 };
    this.#rate = new RateLimiter(rate, dependencies);
  }

  /**
   * Confirms the last item of a session, and waits for its next one.
   * @throws SvcError `rate_limited` if too many reads wait, `not_writable`; the reason of `signal`
   */
  async next(request: ChannelRequest, signal: AbortSignal): Promise<ChannelAnswer> {
    const { clock, waits } = this.#deps;
    if (request.taken !== undefined) await this.#settle(request.taken);
    if (request.isLast === true) {
      if (this.#holder?.session === request.session) this.#holder = null;
      return { item: null, again_ms: 0 };
    }
    const holder = this.#hold(request);
    if (holder === null) return { item: null, again_ms: OTHER_SESSION_MS };
    holder.asking++;
    try {
      const item = this.#find() ?? (await this.#wait(waits, AbortSignal.any([signal, holder.replaced.signal])));
      if (holder.replaced.signal.aborted) return { item: null, again_ms: OTHER_SESSION_MS };
      this.#out = item;
      return item === null ? { item, again_ms: 0 } : { item };
    } catch (error) {
      if (!signal.aborted && holder.replaced.signal.aborted) return { item: null, again_ms: OTHER_SESSION_MS };
      if (this.#holder === holder && signal.aborted) this.#holder = null;
      throw error;
    } finally {
      holder.asking--;
      holder.until = clock.monotonic() + LEASE_MS;
    }
  }

  #wait(waits: ChannelDependencies['waits'], signal: AbortSignal): Promise<ChannelItem | null> {
    const wait = { aid: null, wait_s: this.#dueMs / 1000, client: { signal } };
    return waits.until(
      wait,
      () => this.#find(),
      (item) => item === null,
    );
  }

  /** Makes a session the current one if it may be; null otherwise. */
  #hold({ session, started }: ChannelRequest): Holder | null {
    const present = this.#holder;
    if (present?.session === session) return present;
    if (present !== null) {
      const isActive = present.asking > 0 || this.#deps.clock.monotonic() < present.until;
      if (isActive && (started <= present.started || this.#out !== null)) return null;
      present.replaced.abort();
    }
    this.#out = null;
    this.#holder = { session, started, replaced: new AbortController(), asking: 0, until: 0 };
    return this.#holder;
  }

  /** Marks an item as read, and everything before it as handed over. */
  async #settle(taken: string): Promise<void> {
    const { clock, items, isHooked, commit } = this.#deps;
    const out = this.#out;
    if (out?.position === taken) this.#out = null;
    if (taken.startsWith(STRANGERS)) {
      if (out?.position !== taken) return;
      this.#countedAt = clock.monotonic();
      return commit(() => this.#store({ ...this.#load(), strangers: this.#load().strangers - Number(out.text) }));
    }
    const [, seq, done] = POSITION.exec(taken) ?? [];
    const at = { seq: Number(seq), done: Number(done) };
    const before = this.#load();
    const isNew = at.seq > before.seq || (at.seq === before.seq && at.done >= before.done);
    const event = isNew ? this.#after(at.seq - 1, 1)[0] : undefined;
    if (event?.seq !== at.seq) return;
    const arrivals = this.#arrivals(event);
    if (at.done >= arrivals.length) return;
    const arrival = arrivals[at.done];
    const item = arrival === undefined ? null : items.load(arrival.aid, arrival.peer, refOf(arrival));
    await commit(() => {
      if (arrival !== undefined && item !== null && !textOf(arrival.kind, item).isCut && !isHooked(arrival))
        items.markRead(arrival.aid, arrival.peer, refOf(arrival));
      this.#store({ ...before, seq: at.seq, done: at.done + 1 });
    });
  }

  /** The next item; null if there is none now. */
  #find(): ChannelItem | null {
    this.#dueMs = WAIT_MS;
    const found = this.#search();
    if (found !== null) return this.#allowed(viewOf(found));
    const { strangers, ...at } = this.#load();
    if (strangers === 0) return null;
    const waitMs = this.#countedAt + STRANGERS_COUNT_MS - this.#deps.clock.monotonic();
    if (waitMs > 0) this.#dueMs = Math.min(WAIT_MS, waitMs);
    return waitMs > 0 ? null : this.#allowed(countOf(strangers, at));
  }

  #allowed(item: ChannelItem): ChannelItem | null {
    const waitMs = this.#rate.retryAfterMs('');
    if (waitMs === 0) this.#rate.take('');
    else this.#dueMs = Math.min(WAIT_MS, waitMs);
    return waitMs === 0 ? item : null;
  }

  /** Moves on to the next item of an agent that the owner knows. */
  #search(): Found | null {
    const { items, isKnown } = this.#deps;
    for (;;) {
      const { seq } = this.#load();
      const events = this.#after(seq - 1, PAGE);
      for (const event of events) {
        const arrivals = this.#arrivals(event);
        const first = event.seq === seq ? this.#load().done : 0;
        for (let done = first; done < arrivals.length; done++) {
          const arrival = arrivals[done];
          const ref = arrival && refOf(arrival);
          const item = arrival && ref && items.load(arrival.aid, arrival.peer, ref);
          const isNew = ref && item && !items.isRead(arrival.aid, arrival.peer, ref);
          if (isNew && isKnown(arrival.aid, arrival.peer)) return { at: { seq: event.seq, done }, arrival, item };
          this.#progress = { ...this.#load(), seq: event.seq, done: done + 1 };
          if (isNew) this.#progress = { ...this.#progress, strangers: this.#progress.strangers + 1 };
        }
        this.#progress = { ...this.#load(), seq: event.seq, done: Math.max(first, arrivals.length) };
      }
      if (events.length < PAGE) return null;
    }
  }

  #after(seq: number, limit: number): readonly StoredEvent[] {
    return this.#deps.events.after(Math.max(seq, 0), limit, { types: TYPES });
  }

  /** The items of an event. A deleted item keeps its place, so that positions do not change. */
  #arrivals({ aid, type, data }: StoredEvent): (Arrival | undefined)[] {
    const event = { type, data: JSON.parse(data) } as {
      type: 'mailbox.received';
      data: EventPayloads['mailbox.received'];
    };
    if (event.type !== 'mailbox.received') return arrivalsIn(aid, event, this.#deps.items);
    return event.data.message_ids.map(
      (id) => arrivalsIn(aid, { ...event, data: { count: 1, message_ids: [id] } }, this.#deps.items)[0],
    );
  }

  #load(): Progress {
    if (this.#progress !== null) return this.#progress;
    const stored = this.#deps.storage.get(KEY);
    const [seq = 0, done = 0, strangers = 0] = ['seq', 'done', 'strangers'].map((name) => {
      const value = memberOf(stored, name);
      return typeof value === 'number' ? value : 0;
    });
    this.#progress = { seq, done, strangers };
    return this.#progress;
  }

  #store(progress: Progress): void {
    this.#deps.storage.set(KEY, { ...progress });
    this.#progress = progress;
  }
}

function refOf({ ref }: Arrival): ItemRef {
  return JSON.parse(ref) as ItemRef;
}

/** The text of an item: the text of its sender, or the whole item. */
function textOf(kind: HookKind, item: Found['item']): Pick<ChannelItem, 'text' | 'isCut'> {
  const written = memberOf(item, kind, 'text');
  const text = typeof written === 'string' ? written : JSON.stringify(item[kind]);
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_CHANNEL_TEXT_BYTES) return { text, isCut: false };
  return {
    text: bytes
      .subarray(0, MAX_CHANNEL_TEXT_BYTES)
      .toString()
      .replace(/\ufffd$/, ''),
    isCut: true,
  };
}

function viewOf({ at, arrival, item }: Found): ChannelItem {
  const { kind, aid, peer } = arrival;
  return { position: `${at.seq}.${at.done}`, kind, aid, peer, ...textOf(kind, item), item };
}

function countOf(strangers: number, at: Cursor): ChannelItem {
  const position = `${STRANGERS} ${at.seq}.${at.done}`;
  return { position, kind: STRANGERS, aid: null, peer: null, text: String(strangers), isCut: false, item: {} };
}
