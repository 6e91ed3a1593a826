/**
 * What a tunnel connection says before its link is answered: its ticket, and what its client says meanwhile, which saves
 * the client a round trip. The service must not get that twice. An attempt of which nobody knows whether it came may only
 * be repeated by its own ticket at the very process that it went to, which takes a ticket once.
 */
import { SvcError } from '../../../foundation/errors.ts';
import type { FirstBytes, FirstPlace } from '../../../network/links/types.ts';
import { drawTicket } from '../wide/ticket.ts';
import type { EarlyBytes } from './early-bytes.ts';

/** Puts a piece of what the client says into a frame, by its offset. */
export type Framing = (piece: Buffer, offset: number) => Buffer;

export class FirstWords implements FirstBytes {
  readonly #client: EarlyBytes | null;
  #ticket: Uint8Array = new Uint8Array();
  /** What was taken off the client. */
  readonly #said: Buffer[] = [];
  #frame: Framing;
  /** Whether the attempt at hand says it before it is answered. */
  #isEarly = false;
  /** The process that may have got it. */
  #instance = '';
  /** Attempts there that were not refused. */
  #attempts = 0;

  /** @param client null where nothing of what it says may go out early */
  constructor(client: EarlyBytes | null, frame: Framing) {
    this.#client = client;
    this.#frame = frame;
  }

  /** Begins anew, in other frames: what asked before was refused. */
  reframe(frame: Framing): this {
    this.#frame = frame;
    return this;
  }

  /** The ticket of the last attempt. */
  get ticket(): Uint8Array {
    return this.#ticket;
  }

  /** What was taken off the client: it comes first on whatever carries the connection in the end. */
  get said(): readonly Buffer[] {
    return this.#said;
  }

  /** Whether the last attempt has carried all of that. */
  get isEarly(): boolean {
    return this.#isEarly;
  }

  bytes({ instance, isFresh }: FirstPlace): Uint8Array {
    // protocol-tunnels.md, steps 3 to 5
    this.follow(null);
    if (this.#said.length === 0) this.#attempts = 0;
    if (this.#attempts > 0 && this.#instance !== instance)
      throw new SvcError('connect_failed', {
        message:
          'The connection was lost while it began, and nobody knows whether the service has got its first bytes.',
      });
    if (this.#attempts === 0) {
      this.#ticket = drawTicket();
      // Where an answer is not to be expected, nobody needs to wonder later what became of them.
      this.#isEarly = isFresh;
      this.#instance = instance;
      if (isFresh) this.#take();
    }
    if (!this.#isEarly) return this.#ticket;
    this.#attempts++;
    let offset = 0;
    const frames = this.#said.map((piece) => {
      offset += piece.length;
      return this.#frame(piece, offset - piece.length);
    });
    return Buffer.concat([this.#ticket, ...frames]);
  }

  /** What two attempts say is the same, so only the first of them is told more. */
  follow(write: ((bytes: Uint8Array) => void) | null): void {
    const client = this.#client;
    if (client === null) return;
    client.onMore = null;
    if (write === null || !this.#isEarly || this.#attempts !== 1) return;
    client.onMore = () => {
      const offset = this.#said.reduce((sum, { length }) => sum + length, 0);
      const more = this.#take();
      if (more !== null) write(this.#frame(more, offset));
    };
  }

  refused(): void {
    if (this.#attempts > 0) this.#attempts--;
  }

  #take(): Buffer | null {
    const said = this.#client?.take() ?? null;
    if (said !== null) this.#said.push(said);
    return said;
  }
}
