/** The called side of wide connections: brings their lanes together, and asks for a lane for bulk. */
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { answerForBulkLink } from '../../../network/links/bulk-links.ts';
import { type HolderRequest, type LinkEnds, pairHolder, requestHolder } from '../../../network/links/holder.ts';
import { drainAndDestroy } from '../../../network/links/lingering.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import type { BulkStreams } from '../../../network/transport/types.ts';
import type { LastingCalled } from '../lasting/called.ts';
import { countsOf, LossWatch } from './loss-watch.ts';
import { LossyNodes } from './lossy-nodes.ts';
import { peerOf, readTicket, TICKET_TIMEOUT_MS } from './ticket.ts';
import { WideStream } from './wide-stream.ts';
import { WindowBudget, WindowShare } from './window-budget.ts';

export interface WideCalledDependencies {
  readonly clock: Clock;
  readonly lanes: BulkStreams;
  isNamed(link: Pick<LinkEnds, 'caller' | 'called'>): boolean;
}

export class WideCalled {
  readonly #clock: Clock;
  readonly #lasting: LastingCalled;
  readonly #lanes: WideCalledDependencies['lanes'];
  readonly #isNamed: WideCalledDependencies['isNamed'];
  readonly #budget = new WindowBudget();
  readonly #lossy: LossyNodes;
  readonly #streams = new Map<string, WideStream>();

  /** @param lasting where connections wait whose lanes are lost */
  constructor(lasting: LastingCalled, dependencies: WideCalledDependencies) {
    this.#lasting = lasting;
    this.#lanes = dependencies.lanes;
    this.#clock = dependencies.clock;
    this.#isNamed = (link) => dependencies.isNamed(link);
    this.#lossy = new LossyNodes(dependencies);
  }

  /** Whether a caller may begin another wide connection. */
  hasRoom(request: HolderRequest): boolean {
    return this.#budget.hasRoom(requestHolder(request, this.#isNamed(request)));
  }

  /**
   * Makes a wide connection of a link of purpose `tcp-wide`.
   * @throws SvcError `rate_limited` if its node, source or network holds too much already, `protocol_error`, `timeout`
   */
  async accept(link: LinkStream): Promise<WideStream> {
    const share = new WindowShare(this.#budget, pairHolder(link, this.#isNamed(link)));
    if (!share.begin()) throw new SvcError('rate_limited');
    let ticket: string;
    try {
      ticket = await this.#ticket(link);
      if (this.#lasting.isUsed(ticket)) throw new SvcError('protocol_error');
    } catch (error) {
      share.giveAll();
      throw error;
    }
    const node = peerOf(link.nodeKey);
    const watch = new LossWatch({ counts: () => countsOf(link), node, lossy: this.#lossy }, { clock: this.#clock });
    let asked = false;
    const stream: WideStream = new WideStream(link, {
      clock: this.#clock,
      widen: (bytes) => share.grow(bytes),
      onLost: () => this.#lasting.lost(stream, link),
      onResumed: () => this.#lasting.resumed(stream),
      onProgress: () => {
        if (asked || !watch.isLossy(stream.moved, stream.waits)) return;
        asked = true;
        stream.askWider();
      },
    });
    this.#streams.set(ticket, stream);
    this.#lasting.know(ticket, stream);
    stream.once('close', () => {
      this.#streams.delete(ticket);
      this.#lasting.forget(ticket, stream);
      share.giveAll();
    });
    return stream;
  }

  /** Agrees on a lane for the connection that a link of purpose `tcp-lane` names; cuts the link off where there is none. */
  async join(link: LinkStream): Promise<void> {
    const stream = this.#streams.get(await this.#ticket(link));
    if (stream === undefined) return void link.destroy();
    using limit = awakeTimeout(this.#clock, TICKET_TIMEOUT_MS);
    try {
      const lane = await answerForBulkLink(link, this.#lanes, limit.signal);
      if (lane !== null) stream.add(lane, { isBulk: true });
    } finally {
      link.end();
      drainAndDestroy(link, this.#clock);
    }
  }

  async #ticket(link: LinkStream): Promise<string> {
    using limit = awakeTimeout(this.#clock, TICKET_TIMEOUT_MS);
    return await readTicket(link, limit.signal);
  }
}
