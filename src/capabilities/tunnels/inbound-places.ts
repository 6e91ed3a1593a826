/**
 * Whose connections to bound services are held. Descriptors are few, and an AID, a node key and an idle
 * connection cost a stranger nothing: so a node and a network have their share, and where a share is used up,
 * the connection of a stranger goes that has been still for longest.
 */
import type { Clock } from '../../foundation/clock.ts';
import { Tally } from '../../foundation/tally.ts';
import { SharedQuota } from '../../network/links/shared-quota.ts';
import { sourceOfLink } from '../../network/links/source.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Connections that one calling agent may hold at once to one called agent. */
export const MAX_CONNECTIONS_PER_CALLER = 6000;
/** Milliseconds without a byte after which the connection of a stranger makes room for that of another. */
export const STRANGER_STILL_MS = 60_000;

/** A connection counts as used again where the last time is so long ago, milliseconds. */
const USED_AGAIN_MS = 1000;
/** Connections of strangers that are looked at to find the one that makes room. */
const MAX_LOOKED_AT = 256;

/** Parts of all places that the agents of one node may hold, and those of one IPv4 address or IPv6 /64. */
const NODE_PART = 1 / 2;
const SOURCE_PART = 3 / 4;

/** Who asks for a connection, and from where. */
type Caller = Pick<LinkStream, 'caller' | 'called' | 'nodeKey' | 'path'>;

export interface InboundPlacesDependencies {
  readonly clock: Clock;
  /** Connections to services at one time, of all callers together; the process needs descriptors for more than these. */
  maxConnections(): number;
  /** True where the owner of the called agent has let this caller in by name: strangers make room for it. */
  isNamed(link: Pick<LinkStream, 'caller' | 'called'>): boolean;
}

/** A connection that is held. */
export interface InboundPlace {
  /** A byte has passed. */
  readonly used: () => void;
  /** Gives the place back; again: nothing. */
  readonly leave: () => void;
}

interface Held {
  readonly node: string;
  readonly source: string | null;
  usedAt: number;
  readonly cut: () => void;
  leave: () => void;
}

export class InboundPlaces {
  readonly #deps: InboundPlacesDependencies;
  readonly #quota: SharedQuota;
  readonly #ofPair = new Tally();
  /** Connections of strangers, roughly from the one that was used longest ago. */
  readonly #strangers = new Set<Held>();

  constructor(dependencies: InboundPlacesDependencies) {
    this.#deps = dependencies;
    const part = (of: number): number => Math.ceil(dependencies.maxConnections() * of);
    this.#quota = new SharedQuota({
      get perNode() {
        return part(NODE_PART);
      },
      get perSource() {
        return part(SOURCE_PART);
      },
      get all() {
        return part(1);
      },
    });
  }

  /**
   * A place for a connection; null where none is left for its caller, its node or its network.
   * @param cut ends the connection; called where it has to make room
   */
  take(link: Caller, cut: () => void): InboundPlace | null {
    const { clock } = this.#deps;
    const pair = `${link.caller} ${link.called}`;
    if (this.#ofPair.of(pair) >= MAX_CONNECTIONS_PER_CALLER) return null;
    const node = link.nodeKey === null ? 'here' : Buffer.from(link.nodeKey).toString('hex');
    const held: Held = { node, source: sourceOfLink(link), usedAt: clock.now(), cut, leave: () => {} };
    const isNamed = link.nodeKey === null || this.#deps.isNamed(link);
    this.#makeRoom(held, isNamed ? 0 : STRANGER_STILL_MS);
    const giveBack = this.#quota.take(node, held.source);
    if (giveBack === null) return null;
    this.#ofPair.add(pair);
    held.leave = () => {
      held.leave = () => {};
      this.#strangers.delete(held);
      this.#ofPair.add(pair, -1);
      giveBack();
    };
    if (!isNamed) this.#strangers.add(held);
    return {
      used: () => {
        if (clock.now() - held.usedAt < USED_AGAIN_MS) return;
        held.usedAt = clock.now();
        if (this.#strangers.delete(held)) this.#strangers.add(held);
      },
      leave: () => held.leave(),
    };
  }

  /** Where a share is used up: ends one connection that counts against it, if a stranger's has been still for long enough. */
  #makeRoom({ node, source }: Held, stillMs: number): void {
    const lacking = this.#quota.lacking(node, source);
    if (lacking === null) return;
    const until = this.#deps.clock.now() - stillMs;
    for (const stranger of this.#strangers.values().take(MAX_LOOKED_AT)) {
      if (stranger.usedAt > until) return;
      if (lacking === 'node' && stranger.node !== node) continue;
      if (lacking === 'source' && stranger.source !== source) continue;
      stranger.leave();
      return stranger.cut();
    }
  }
}
