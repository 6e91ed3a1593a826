/** Notifies agents when the path to a peer's node has changed. */
import { formatAddress } from '../../foundation/address.ts';
import type { Timer } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { type EventSink, STRANGERS } from '../../foundation/events.ts';
import { type Aid, nativeAid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { KnownAgents, NodeParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import type { AgentPair } from '../../network/links/proven.ts';
import type { PathChange } from '../../network/peers/peer.ts';
import type { Path } from '../../network/transport/path.ts';

/** Minimum time between two events about one path, in milliseconds. Later changes are combined. */
export const PATH_EVENT_INTERVAL_MS = 10_000;
/** Burst and hourly limit of these events for one agent: for each known peer, and for all strangers together. */
export const PATH_EVENTS_BURST = 20;
export const PATH_EVENTS_PER_HOUR = 60;
/** Tracked nodes, and agents with an event count. */
const MAX_WATCHED_PATHS = 1024;

interface PathEventsDependencies extends NodeParts, KnownAgents {
  readonly pairsWith: (nodeKey: Uint8Array) => readonly AgentPair[];
  /** True for agents that are registered here. */
  readonly isAgent: (aid: Aid) => boolean;
  readonly events: EventSink;
}

/** State of the path to a node. */
interface PathState {
  /** The path in the last event, or the first path. */
  reported: Path;
  reportedAt: number;
  now: Path;
  later: Timer | null;
}

/** The remote port is ignored, because each connection may have a different one. */
function isSamePath(one: Path, other: Path): boolean {
  return one.kind === other.kind && one.remote.host === other.remote.host;
}

export class PathEvents {
  readonly #deps: PathEventsDependencies;
  readonly #nodes = new LruCache<Aid, PathState>({ maxEntries: MAX_WATCHED_PATHS });
  readonly #rate: RateLimiter;
  #stopped = false;

  constructor(dependencies: PathEventsDependencies) {
    this.#deps = dependencies;
    const limits = { perSecond: PATH_EVENTS_PER_HOUR / 3600, burst: PATH_EVENTS_BURST, maxKeys: MAX_WATCHED_PATHS };
    this.#rate = new RateLimiter(limits, dependencies);
  }

  stop(): void {
    this.#stopped = true;
    for (const { later } of this.#nodes.values()) later?.cancel();
  }

  /** Called when new streams to a node start to use another path. A lost connection causes no event. */
  onChange({ nodeKey, path }: PathChange): void {
    if (path === null || this.#stopped) return;
    const { clock } = this.#deps;
    const node = nativeAid(nodeKey);
    const known = this.#nodes.get(node);
    if (known === undefined) {
      const first = { reported: path, reportedAt: Number.NEGATIVE_INFINITY, now: path, later: null };
      this.#nodes.set(node, first);
      return;
    }
    known.now = path;
    if (known.later !== null) return;
    const waitMs = known.reportedAt + PATH_EVENT_INTERVAL_MS - clock.monotonic();
    if (waitMs <= 0) this.#report(node, nodeKey, known);
    else
      known.later = clock.after(waitMs, () => {
        known.later = null;
        this.#report(node, nodeKey, known);
      });
  }

  #report(node: Aid, nodeKey: Uint8Array, known: PathState): void {
    const { clock, pairsWith, isAgent, isKnown, events, log } = this.#deps;
    const { reported: before, now: path } = known;
    if (isSamePath(path, before)) return;
    known.reported = path;
    const spoken = Map.groupBy(pairsWith(nodeKey), ({ local }) => local);
    for (const [local, pairs] of spoken) {
      if (!isAgent(local)) continue;
      const agents = pairs.map(({ remote }) => remote);
      const cause = agents.find((remote) => isKnown(local, remote)) ?? STRANGERS;
      if (!this.#rate.take(`${local} ${cause}`)) continue;
      known.reportedAt = clock.monotonic();
      try {
        events.emit(
          local,
          'path.changed',
          {
            node,
            agents,
            path: path.kind,
            before: before.kind,
            address: formatAddress(path.remote),
            is_relayed: isRelayed(path.kind),
          },
          cause,
        );
      } catch (error) {
        log.warn({ error }, 'cannot log a change of path');
      }
    }
  }
}
