/** The calling side of wide connections: when they are used, and how their lanes are opened. */
import type { Clock } from '../../../foundation/clock.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import { Refusal, STATUS } from '../../../network/links/status.ts';
import type { LinkStream, Links, OpenOptions } from '../../../network/links/types.ts';
import { countsOf } from './loss-watch.ts';
import { drawTicket } from './ticket.ts';
import { FIRST_WINDOW_BYTES, WideStream } from './wide-stream.ts';
import { Widening } from './widening.ts';
import { WindowBudget, WindowShare } from './window-budget.ts';

/** Round-trip time from which a connection can gain by more lanes, milliseconds. */
export const LONG_PATH_MS = 10;
/** How long an agent whose node does not know wide connections is not asked for one again, milliseconds. */
const ASK_AGAIN_MS = 10 * 60_000;
const MAX_NARROW = 1024;
/** Wide connections at one time, for all of which a called node has room; more are plain ones. */
const MAX_WIDE = 64;

interface WideCallerDependencies {
  readonly clock: Clock;
  readonly links: Links;
}

export class WideCaller {
  readonly #deps: WideCallerDependencies;
  readonly #budget = new WindowBudget();
  /** Agents on nodes that do not know wide connections. */
  readonly #narrow: LruCache<Aid, true>;
  #open = 0;

  constructor(dependencies: WideCallerDependencies) {
    this.#deps = dependencies;
    this.#narrow = new LruCache({ maxEntries: MAX_NARROW, ttlMs: ASK_AGAIN_MS }, dependencies);
  }

  /**
   * Opens a connection to the service of an agent, a wide one where the path is long.
   * @param rttMs of the path to the agent, as last seen
   * @returns the link that names it, and the stream that its bytes go through
   * @throws SvcError as `Links.open`
   */
  async open(local: Aid, remote: Aid, rttMs: number, options: OpenOptions) {
    const share = new WindowShare(this.#budget, remote);
    const mayBeWide = rttMs >= LONG_PATH_MS && this.#open < MAX_WIDE && this.#narrow.get(remote) === undefined;
    if (mayBeWide && share.begin(2 * FIRST_WINDOW_BYTES)) {
      this.#open++;
      const over = (): void => {
        this.#open--;
        share.giveAll();
      };
      try {
        const link = await this.#deps.links.open(local, remote, 'tcp-wide', options);
        return { link, stream: this.#widen(link, share).once('close', over) };
      } catch (error) {
        over();
        if (!(error instanceof Refusal) || error.refusal !== STATUS.unknownPurpose) throw error;
        this.#narrow.set(remote, true);
      }
    }
    const link = await this.#deps.links.open(local, remote, 'tcp', options);
    return { link, stream: link };
  }

  #widen(link: LinkStream, share: WindowShare): WideStream {
    const ticket = drawTicket();
    link.write(ticket);
    const gone = new AbortController();
    const openLane = async (index: number): Promise<void> => {
      const lane = await link.beside?.('tcp-lane', index, gone.signal);
      if (lane === undefined) throw new Error('this link has no other connections beside it');
      lane.write(ticket);
      stream.add(lane);
    };
    const widening = new Widening({ path: () => countsOf(link), openLane }, this.#deps);
    const stream: WideStream = new WideStream(link, {
      clock: this.#deps.clock,
      widen: (bytes) => share.grow(bytes),
      onProgress: () => widening.progress(stream.moved, stream.waits),
      onWider: () => widening.ask(),
    });
    return stream.once('close', () => gone.abort());
  }
}
