/**
 * The events of the node itself, in memory. Strangers can cause some of them, for example by refused calls or short
 * connections. Each kind has a separate rate and limit, so a flood evicts only events of the same kind.
 */
import { type Clock, isoTime } from '../../foundation/clock.ts';
import type { CloseReason } from '../../foundation/domain/tunnels.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { NODE_EVENT_TYPES, type NodeEventPayloads, type NodeEventType } from '../../foundation/node-events.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { EventBounds, EventFilter, StoredEvent } from '../../foundation/store/events.ts';
import type { EventSource } from './event-streams.ts';

/** Limit of stored events. */
export const MAX_NODE_EVENTS = 1_000;
/** Limit of stored events of one kind. */
export const MAX_NODE_EVENTS_PER_KIND = 200;
/** Limits of events of one kind: in a burst, and in an hour. The events beyond them are only counted. */
export const NODE_EVENTS_BURST = 30;
export const NODE_EVENTS_PER_HOUR = 1_200;

export class NodeEvents implements EventSource {
  readonly #node: Aid;
  readonly #clock: Clock;
  readonly #rate: RateLimiter;
  readonly #appended = new Listeners<[]>();
  /** Events of a kind that were dropped since the last stored one. */
  readonly #dropped = new Map<NodeEventType, number>();
  readonly #counts = new Map<string, number>();
  #events: StoredEvent[] = [];
  #lastSeq: number;
  #prunedSeq: number;

  /**
   * @param node the AID of events that are about no agent
   */
  constructor(node: Aid, clock: Clock) {
    this.#node = node;
    this.#clock = clock;
    const perSecond = NODE_EVENTS_PER_HOUR / 3600;
    const limits = { perSecond, burst: NODE_EVENTS_BURST, maxKeys: NODE_EVENT_TYPES.length };
    this.#rate = new RateLimiter(limits, { clock });
    // Starts after all numbers of the last run, because there is less than one event per millisecond.
    this.#lastSeq = clock.now();
    this.#prunedSeq = this.#lastSeq;
  }

  /** Adds an event. @param aid the local agent that it is about; by default the node */
  emit<T extends NodeEventType>(type: T, data: NodeEventPayloads[T], aid: Aid = this.#node): void {
    const missed = this.#dropped.get(type) ?? 0;
    if (!this.#rate.take(type)) {
      this.#dropped.set(type, missed + 1);
      return;
    }
    this.#dropped.delete(type);
    const text = JSON.stringify(missed === 0 ? data : { ...data, missed });
    this.#events.push({ seq: ++this.#lastSeq, aid, type, at: this.#clock.now(), data: text });
    const ofKind = (this.#counts.get(type) ?? 0) + 1;
    this.#counts.set(type, ofKind);
    if (ofKind > MAX_NODE_EVENTS_PER_KIND) this.#forget(this.#events.findIndex((one) => one.type === type));
    if (this.#events.length > MAX_NODE_EVENTS) this.#forget(0);
    this.#appended.notify();
  }

  onAppended(listener: () => void): () => void {
    return this.#appended.add(listener);
  }

  lastSeq(): number {
    return this.#lastSeq;
  }

  after(seq: number, limit: number, { aid, types }: EventFilter = {}): readonly StoredEvent[] {
    const begin = this.#events.findIndex((one) => one.seq > seq);
    if (begin < 0) return [];
    const wanted = ({ aid: about, type }: StoredEvent): boolean =>
      (aid === undefined || about === aid) && types?.includes(type) !== false;
    return this.#events.slice(begin).filter(wanted).slice(0, limit);
  }

  bounds(): EventBounds {
    return { oldestSeq: this.#events[0]?.seq ?? 0, lastSeq: this.#lastSeq, prunedSeq: this.#prunedSeq };
  }

  misses(afterSeq: number, prunedSeq: number): boolean {
    return (afterSeq !== 0 && afterSeq < prunedSeq) || afterSeq > this.#lastSeq;
  }

  #forget(index: number): void {
    const [gone] = this.#events.splice(index, 1);
    if (gone === undefined) return;
    this.#counts.set(gone.type, (this.#counts.get(gone.type) ?? 1) - 1);
    this.#prunedSeq = Math.max(this.#prunedSeq, gone.seq);
  }
}

// Polls state that has no change notifications, and emits events for its changes.

/** Polling interval, milliseconds. */
export const NODE_WATCH_MS = 2_000;

export interface WatchedTunnel {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  readonly listen: string;
  readonly noPath: { readonly since: number; readonly heldUntil: number; readonly connections: number } | null;
  readonly lastError: { readonly at: number } | null;
}

export interface NodeWatchDependencies extends NodeParts {
  readonly events: Pick<NodeEvents, 'emit'>;
  readonly network: () => NodeEventPayloads['network'];
  readonly update: () => NodeEventPayloads['update'];
  readonly tunnels: {
    list(): readonly WatchedTunnel[];
    closed(): readonly (WatchedTunnel & { readonly reason: CloseReason })[];
  };
}

function tunnelData({ id, remoteAid, listen }: WatchedTunnel): NodeEventPayloads['tunnel.opened'] {
  return { id, remote_aid: remoteAid, listen };
}

export class NodeWatch implements Component {
  readonly #deps: NodeWatchDependencies;
  #ready = false;
  #update: string;
  #tunnels = new Map<string, WatchedTunnel>();
  #looking: RepeatingTask | null = null;

  constructor(dependencies: NodeWatchDependencies) {
    this.#deps = dependencies;
    this.#update = dependencies.update().state;
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.error({ error }, 'the state of the node could not be read');
    this.#looking = every(clock, { periodMs: NODE_WATCH_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#looking?.stop();
  }

  #look(): void {
    const { events, network, update } = this.#deps;
    const reading = network();
    if (reading.ready !== this.#ready) events.emit('network', reading);
    this.#ready = reading.ready;
    const now = update();
    // The result is not available until the check has finished.
    if (now.state !== 'checking') {
      if (now.state !== this.#update) events.emit('update', now);
      this.#update = now.state;
    }
    this.#lookAtTunnels();
  }

  #lookAtTunnels(): void {
    const { events, tunnels } = this.#deps;
    const current = new Map(tunnels.list().map((one) => [one.id, one]));
    for (const [id, one] of current) {
      const before = this.#tunnels.get(id);
      if (before === undefined) events.emit('tunnel.opened', tunnelData(one), one.localAid);
      this.#lookAtPath(one, before?.noPath ?? null);
    }
    const gone = [...this.#tunnels.values()].filter(({ id }) => !current.has(id));
    const ends = gone.length === 0 ? [] : tunnels.closed();
    for (const one of gone) {
      const reason = ends.find(({ id }) => id === one.id)?.reason ?? null;
      events.emit('tunnel.closed', { ...tunnelData(one), reason }, one.localAid);
    }
    this.#tunnels = current;
  }

  #lookAtPath(tunnel: WatchedTunnel, before: WatchedTunnel['noPath']): void {
    const { events } = this.#deps;
    const { noPath, lastError, localAid } = tunnel;
    if (noPath !== null && before === null) {
      const { since, heldUntil, connections } = noPath;
      const data = { since: isoTime(since), held_until: isoTime(heldUntil), connections };
      events.emit('tunnel.no_path', { ...tunnelData(tunnel), ...data }, localAid);
    } else if (noPath === null && before !== null) {
      const state = lastError !== null && lastError.at >= before.since ? 'given_up' : 'back';
      events.emit('tunnel.path', { ...tunnelData(tunnel), state, since: isoTime(before.since) }, localAid);
    }
  }
}
