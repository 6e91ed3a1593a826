/** A public connection at an entry: passes bytes between a client and the agent that holds the name, unread. */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** A direction that the budgets do not permit for this time ends the connection, milliseconds. */
const PASSAGE_UNPAID_MS = 5_000;
/** Interval of attempts to pay, milliseconds. */
const PAY_AGAIN_MS = 20;
/** Bytes that are paid at one time: a small budget never has a whole chunk. */
const PAID_AT_ONCE_BYTES = 4 * 1024;

interface PassageOptions {
  readonly client: Socket;
  readonly link: LinkStream;
  readonly clock: Clock;
  /** Spends bytes of the budgets. */
  readonly spend: (bytes: number) => boolean;
  /** True if a budget of the day is used up. */
  readonly isUsedUp: () => boolean;
  /** Called when the client begins or ceases to read too slowly. */
  readonly onStall: (isStalled: boolean) => void;
  /** Called once. */
  readonly onEnd: () => void;
}

export class Passage {
  readonly #options: PassageOptions;
  readonly #stops: (() => void)[] = [];
  readonly #payments = new Set<Timer>();
  #isEnded = false;
  #wasActive = true;

  constructor(options: PassageOptions) {
    this.#options = options;
    const { client, link } = options;
    const end = (): void => this.end();
    this.#stops.push(listen(client, { error: end, close: end }), listen(link, { error: end, close: end }));
    this.#pass(client, link);
    this.#pass(link, client);
  }

  /** Whether a byte passed since the last call. */
  takeActivity(): boolean {
    const wasActive = this.#wasActive;
    this.#wasActive = false;
    return wasActive;
  }

  /** Closes both sides: cleanly after the end of both, otherwise with a reset. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { client, link, onEnd } = this.#options;
    for (const timer of this.#payments) timer.cancel();
    for (const stop of this.#stops) stop();
    const isClean = client.readableEnded && link.readableEnded && client.writableEnded && link.writableEnded;
    if (!isClean) client.resetAndDestroy();
    link.destroy();
    onEnd();
  }

  #pass(from: Socket | LinkStream, to: Socket | LinkStream): void {
    const isToClient = to === this.#options.client;
    const stalled = (isStalled: boolean): void => {
      if (isToClient) this.#options.onStall(isStalled);
    };
    const free = 'release' in from && from.release !== undefined ? (chunk: Buffer) => from.release?.(chunk) : undefined;
    let isPaying = false;
    const send = (chunk: Buffer): void => {
      this.#wasActive = true;
      const wantsMore = to.write(chunk, (error) => {
        if (!error) free?.(chunk);
      });
      if (wantsMore) return;
      from.pause();
      stalled(true);
    };
    const data = (chunk: Buffer): void => {
      const left = this.#pay(chunk.length);
      if (left === 0) return send(chunk);
      from.pause();
      isPaying = true;
      this.#payLater(left, () => {
        isPaying = false;
        send(chunk);
        if (from.readableEnded) to.end();
        else if (!to.writableNeedDrain) from.resume();
      });
    };
    const drain = (): void => {
      stalled(false);
      if (!isPaying) from.resume();
    };
    // A paused stream may end, too.
    const ended = (): void => {
      if (!isPaying) to.end();
    };
    this.#stops.push(listen(to, { drain }), listen(from, { data, end: ended }));
    // It may be paused, or be at its end.
    if (from.readableEnded) ended();
    else from.resume();
  }

  /** Pays for bytes. Returns the number of unpaid bytes. */
  #pay(bytes: number): number {
    for (let left = bytes; left > 0; ) {
      const part = Math.min(left, PAID_AT_ONCE_BYTES);
      if (!this.#options.spend(part)) return left;
      left -= part;
    }
    return 0;
  }

  #payLater(bytes: number, paid: () => void, unpaidMs = 0): void {
    const timer = this.#options.clock.after(PAY_AGAIN_MS, () => {
      this.#payments.delete(timer);
      const left = this.#pay(bytes);
      const waitedMs = left < bytes ? 0 : unpaidMs + PAY_AGAIN_MS;
      if (left === 0) paid();
      else if (waitedMs >= PASSAGE_UNPAID_MS || this.#options.isUsedUp()) this.end();
      else this.#payLater(left, paid, waitedMs);
    });
    this.#payments.add(timer);
  }
}
