/**
 * A link that is open before a connection needs it, so that the next connection begins with the client's own bytes. It
 * exists only on transports that report a lost link immediately, and not longer than the called side waits for a ticket.
 */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Time from the start of a connection to the opening of the next link, which must not delay it: milliseconds. */
const OPEN_AFTER_MS = 2;
/** How long the link is kept, milliseconds: less than the called side waits for a ticket. */
export const KEPT_MS = 8_000;

export class LinkAhead {
  readonly #clock: Clock;
  readonly #open: () => Promise<LinkStream>;
  #link: LinkStream | null = null;
  #timer: Timer | null = null;
  #isOpening = false;
  /** Increases when a link that is being opened is no longer wanted. */
  #round = 0;

  constructor(clock: Clock, open: () => Promise<LinkStream>) {
    this.#open = open;
    this.#clock = clock;
  }

  /** The link, for one connection. Null if there is none. */
  take(): LinkStream | null {
    const link = this.#link;
    this.#link = null;
    if (link === null) return null;
    this.#timer?.cancel();
    this.#timer = null;
    return link.destroyed || link.readableEnded ? null : link;
  }

  /** Called when a connection has begun: another one may follow soon. */
  prepare(): void {
    if (this.#link !== null || this.#timer !== null || this.#isOpening) return;
    this.#timer = this.#clock.after(OPEN_AFTER_MS, () => {
      this.#timer = null;
      detach(this.#make());
    });
  }

  /** Ends the link, also while it is being opened. */
  drop(): void {
    this.#round++;
    this.#timer?.cancel();
    this.#timer = null;
    this.#link?.destroy();
    this.#link = null;
  }

  async #make(): Promise<void> {
    const round = this.#round;
    this.#isOpening = true;
    const link = await this.#open().catch(() => null);
    this.#isOpening = false;
    if (link === null) return;
    link.on('error', () => {});
    if (round !== this.#round || link.path().isUpgraded !== true) return void link.destroy();
    this.#link = link;
    this.#timer = this.#clock.after(KEPT_MS, () => this.drop());
    link.once('close', () => {
      if (this.#link === link) this.drop();
    });
  }
}
