/**
 * A link that stands before there is a connection for it: the called side waits for its ticket, so that a new connection
 * begins with the client's own bytes. Only where a link that is lost is known at once to be lost, and for as long as the
 * called side waits.
 */
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { LinkStream } from '../../../network/links/types.ts';

/** A link is opened so long after the last connection began, so that it is not in its way: milliseconds. */
const OPEN_AFTER_MS = 2;
/** How long it is kept, milliseconds: less than the called side waits for a ticket. */
export const KEPT_MS = 8_000;

export class LinkAhead {
  readonly #clock: Clock;
  readonly #open: () => Promise<LinkStream>;
  #link: LinkStream | null = null;
  #timer: Timer | null = null;
  #isOpening = false;
  /** Counts what makes a link that is being opened of no use. */
  #round = 0;

  /** @param open opens a link of purpose `tcp-lasting` */
  constructor(open: () => Promise<LinkStream>, { clock }: { readonly clock: Clock }) {
    this.#open = open;
    this.#clock = clock;
  }

  /** The link, for one connection; null where none stands. */
  take(): LinkStream | null {
    const link = this.#link;
    this.#link = null;
    if (link === null) return null;
    this.#timer?.cancel();
    this.#timer = null;
    return link.destroyed || link.readableEnded ? null : link;
  }

  /** A connection has begun: soon there may be another one. */
  prepare(): void {
    if (this.#link !== null || this.#timer !== null || this.#isOpening) return;
    this.#timer = this.#clock.after(OPEN_AFTER_MS, () => {
      this.#timer = null;
      detach(this.#make());
    });
  }

  /** Ends the link that stands, and the one that is being opened. */
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
