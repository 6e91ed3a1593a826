/**
 * Who may hold how many streams of events open. Such a stream may be silent for a day and costs memory and a connection
 * to the service all the while, so it does not count among the calls in work: many idle streams of one caller keep none
 * of its calls out, and those of strangers nobody's. Where a share is used up, a stream of the stranger makes room who
 * holds most of it, for whomever the owner has let in by name, and for strangers who hold less.
 */
import { SvcError } from '../../foundation/errors.ts';
import { Tally } from '../../foundation/tally.ts';
import { SharedQuota } from '../../network/links/shared-quota.ts';
import { sourceOfLink } from '../../network/links/source.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BUSY_RETRY_S } from './caller-limits.ts';

/** Streams of events to all agents of one node at once. */
export const MAX_EVENT_STREAMS_PER_NODE = 1024;
/** Streams of events to all nodes on one IPv4 address or IPv6 /64 at once. */
export const MAX_EVENT_STREAMS_PER_SOURCE = 1536;
/** Streams of events that this daemon forwards at once. */
export const MAX_EVENT_STREAMS = 2048;

export interface StreamPlacesDependencies {
  /** True where the owner of the called agent has let this caller in by name: strangers make room for it. */
  isNamed(link: Pick<LinkStream, 'caller' | 'called'>): boolean;
}

/** A stream that stands open, and to whom it counts. */
interface Held {
  readonly pair: string;
  readonly node: string;
  readonly source: string | null;
  readonly cut: () => void;
  leave: () => void;
}

interface Share {
  /** True for a stream that counts against the same share as a new one. */
  readonly counts: (one: Held, other: Held) => boolean;
  /** Among whom it is shared. */
  readonly holder: (one: Held) => string;
}

const SHARES: Readonly<Record<NonNullable<ReturnType<SharedQuota['lacking']>>, Share>> = {
  all: { counts: () => true, holder: ({ source, node }) => source ?? node },
  source: { counts: (one, other) => one.source === other.source, holder: ({ node }) => node },
  node: { counts: (one, other) => one.node === other.node, holder: ({ pair }) => pair },
};

export class StreamPlaces {
  readonly #deps: StreamPlacesDependencies;
  readonly #quota = new SharedQuota({
    perNode: MAX_EVENT_STREAMS_PER_NODE,
    perSource: MAX_EVENT_STREAMS_PER_SOURCE,
    all: MAX_EVENT_STREAMS,
  });
  /** Those of callers that no access list names, the oldest first. */
  readonly #strangers = new Set<Held>();

  constructor(dependencies: StreamPlacesDependencies) {
    this.#deps = dependencies;
  }

  /** Streams that stand open. */
  get taken(): number {
    return this.#quota.taken;
  }

  /**
   * Counts a stream in; returns how to count it out, once.
   * @param cut ends the stream; called where it has to make room, when it no longer counts
   * @throws SvcError `rate_limited`
   */
  take(link: LinkStream, cut: () => void): () => void {
    const node = link.nodeKey === null ? 'here' : Buffer.from(link.nodeKey).toString('hex');
    const pair = `${link.caller} ${link.called}`;
    const held: Held = { pair, node, source: sourceOfLink(link), cut, leave: () => {} };
    const isNamed = link.nodeKey === null || this.#deps.isNamed(link);
    this.#makeRoom(held, isNamed);
    const giveBack = this.#quota.take(node, held.source);
    if (giveBack === null)
      throw new SvcError('rate_limited', {
        message: 'Too many streams of events at once.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    held.leave = () => {
      held.leave = () => {};
      this.#strangers.delete(held);
      giveBack();
    };
    if (!isNamed) this.#strangers.add(held);
    return () => held.leave();
  }

  /** Where a share is used up: ends the oldest stream of the stranger who holds most of it, if that is more than the new one would. */
  #makeRoom(held: Held, isNamed: boolean): void {
    const lacking = this.#quota.lacking(held.node, held.source);
    if (lacking === null) return;
    const { counts, holder } = SHARES[lacking];
    const sharing = [...this.#strangers].filter((one) => counts(one, held));
    const heldBy = new Tally();
    for (const one of sharing) heldBy.add(holder(one));
    const most = Math.max(0, ...[...heldBy].map(([, count]) => count));
    if (!isNamed && heldBy.of(holder(held)) + 1 >= most) return;
    const oldest = sharing.find((one) => heldBy.of(holder(one)) === most);
    oldest?.leave();
    oldest?.cut();
  }
}
