/** How a link of a tunnel begins: its first message, the ticket that names the connection, and the client's first bytes. */
import { randomFillSync } from 'node:crypto';
import type { Readable } from 'node:stream';
import { SvcError } from '../../foundation/errors.ts';
import type { FirstBytes, FirstPlace } from '../../network/links/types.ts';
import { framedData } from './frames.ts';

/** The first byte of a link: its use. */
export const OPENING = { connect: 1, resume: 2, lane: 3 } as const;
type Opening = (typeof OPENING)[keyof typeof OPENING];

export const TICKET_BYTES = 16;
export const OPENING_BYTES: number = 1 + TICKET_BYTES;

/** Most client bytes that are sent before the link is answered: the start of a request or a handshake. */
export const MAX_EARLY_BYTES: number = 16 * 1024;

/** Random bytes for many tickets: one draw costs almost as much as one ticket. */
const POOL_BYTES = 256 * TICKET_BYTES;
const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;

/** An unguessable ticket. It is used once, and no copy of it stays here. */
export function drawTicket(): Uint8Array {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const from = used;
  used += TICKET_BYTES;
  const ticket = pool.slice(from, used);
  pool.fill(0, from, used);
  return ticket;
}

/** The first message of a link. */
export function openingOf(what: Opening, ticket: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(what), ticket]);
}

/** The bytes of a client that are read before its connection is joined. */
export class EarlyBytes {
  readonly #client: Readable;
  readonly #taken: (bytes: number) => void;
  #left = MAX_EARLY_BYTES;
  /** Called when more bytes can be taken. */
  onMore: (() => void) | null = null;

  /** @param taken receives the number of bytes taken */
  constructor(client: Readable, taken: (bytes: number) => void) {
    this.#client = client;
    this.#taken = taken;
    client.on('readable', this.#readable);
  }

  readonly #readable = (): void => this.onMore?.();

  /** The bytes received so far. Null if there are none, or if the limit is reached. */
  take(): Buffer | null {
    const length = Math.min(this.#client.readableLength, this.#left);
    const bytes: unknown = length > 0 ? this.#client.read(length) : null;
    if (!(bytes instanceof Buffer)) return null;
    this.#left -= bytes.length;
    this.#taken(bytes.length);
    return bytes;
  }

  /** Stops reading the client. */
  stop(): void {
    this.onMore = null;
    this.#client.off('readable', this.#readable);
  }
}

/**
 * The bytes of a new connection that are sent before its link is answered: its ticket and the client's first bytes, which
 * saves the client a round trip. The service must not receive them twice. An attempt that may have arrived is therefore
 * only repeated with the same ticket, at the same process of the called node.
 */
export class FirstWords implements FirstBytes {
  readonly #client: EarlyBytes | null;
  #ticket: Uint8Array = new Uint8Array();
  /** The bytes taken from the client. */
  readonly #chunks: Buffer[] = [];
  /** True if the current attempt sends them before it is answered. */
  #isEarly = false;
  /** The process that may have received them. */
  #instance = '';
  /** Attempts at that process that were not refused. */
  #attempts = 0;

  /** @param client null if none of its bytes may be sent early */
  constructor(client: EarlyBytes | null) {
    this.#client = client;
  }

  /** The ticket of the last attempt. */
  get ticket(): Uint8Array {
    return this.#ticket;
  }

  /** The bytes taken from the client. They are the first bytes of the connection. */
  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  /** True if the last attempt has sent all of them. */
  get isEarly(): boolean {
    return this.#isEarly;
  }

  bytes({ instance, isFresh }: FirstPlace): Uint8Array {
    // protocol-tunnels.md, steps 3 to 5
    this.follow(null);
    if (this.#chunks.length === 0) this.#attempts = 0;
    if (this.#attempts > 0 && this.#instance !== instance)
      throw new SvcError('connect_failed', {
        message:
          'The connection was lost while it began, and the service may have received its first bytes. Connect again.',
      });
    if (this.#attempts === 0) {
      this.#ticket = drawTicket();
      // If no answer is likely, nothing is sent whose arrival would be unknown.
      this.#isEarly = isFresh;
      this.#instance = instance;
      if (isFresh) this.#take();
    }
    const opening = openingOf(OPENING.connect, this.#ticket);
    if (!this.#isEarly) return opening;
    this.#attempts++;
    return Buffer.concat([opening, ...this.#chunks.map(framedData)]);
  }

  /** Two attempts must send the same bytes, so only the first attempt sends more. */
  follow(write: ((bytes: Uint8Array) => void) | null): void {
    const client = this.#client;
    if (client === null) return;
    client.onMore = null;
    if (write === null || !this.#isEarly || this.#attempts !== 1) return;
    client.onMore = () => {
      const more = this.#take();
      if (more !== null) write(framedData(more));
    };
  }

  refused(): void {
    if (this.#attempts > 0) this.#attempts--;
  }

  #take(): Buffer | null {
    const chunk = this.#client?.take() ?? null;
    if (chunk !== null) this.#chunks.push(chunk);
    return chunk;
  }
}
