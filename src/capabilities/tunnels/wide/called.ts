/** The called side of wide connections: brings their lanes together, and asks for more of them. */
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { patience } from '../../../foundation/stall.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import type { LastingCalled } from '../lasting/called.ts';
import { countsOf, LossWatch } from './loss-watch.ts';
import { peerOf, readTicket, TICKET_TIMEOUT_MS } from './ticket.ts';
import { FIRST_WINDOW_BYTES, WideStream } from './wide-stream.ts';
import { WindowBudget, WindowShare } from './window-budget.ts';

/** What a new connection may keep, of both directions, bytes. */
const NEW_BYTES = 2 * FIRST_WINDOW_BYTES;

export class WideCalled {
  readonly #clock: Clock;
  readonly #lasting: LastingCalled;
  readonly #budget = new WindowBudget();
  readonly #streams = new Map<string, WideStream>();

  /** @param lasting where connections wait whose lanes are lost */
  constructor(lasting: LastingCalled, dependencies: { readonly clock: Clock }) {
    this.#lasting = lasting;
    this.#clock = dependencies.clock;
  }

  /** Whether a node may begin another wide connection. */
  hasRoom(nodeKey: Uint8Array | null): boolean {
    return this.#budget.hasRoom(peerOf(nodeKey), NEW_BYTES);
  }

  /**
   * Makes a wide connection of a link of purpose `tcp-wide`.
   * @throws SvcError `rate_limited` where its node holds too much already, `protocol_error`, `timeout`
   */
  async accept(link: LinkStream): Promise<WideStream> {
    const share = new WindowShare(this.#budget, peerOf(link.nodeKey));
    if (!share.begin(NEW_BYTES)) throw new SvcError('rate_limited');
    let ticket: string;
    try {
      ticket = await this.#ticket(link);
      if (this.#streams.has(ticket)) throw new SvcError('protocol_error');
    } catch (error) {
      share.giveAll();
      throw error;
    }
    const watch = new LossWatch(() => countsOf(link), { clock: this.#clock });
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

  /** Adds a link of purpose `tcp-lane` to the connection that it names; cuts it off where there is none. */
  async join(link: LinkStream): Promise<void> {
    const stream = this.#streams.get(await this.#ticket(link));
    if (stream === undefined) link.destroy();
    else stream.add(link);
  }

  async #ticket(link: LinkStream): Promise<string> {
    using limit = patience(this.#clock, TICKET_TIMEOUT_MS);
    return await readTicket(link, limit.signal);
  }
}
