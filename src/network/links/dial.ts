/** Reaching a node under several addresses at once, and sharing one attempt among all who wait for it. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { QuicConnection, QuicEndpoint } from '../quic/types.ts';

/** Head start of each address over the next one, milliseconds. */
export const STAGGER_MS = 150;
/** Addresses of one node that are tried: what an endpoint record holds at most. */
export const MAX_ADDRESSES = 8;

/** Where a node may be reached. */
export interface NodePlace {
  readonly nodeKey: Uint8Array;
  readonly addresses: readonly Address[];
}

/**
 * One way to reach a node: at its addresses, or by another's help.
 * @throws SvcError `connect_failed` where it does not lead there, or the signal's reason
 */
export type DialWay = (place: NodePlace, signal: AbortSignal) => Promise<QuicConnection>;

interface DialDependencies {
  readonly endpoint: Pick<QuicEndpoint, 'dial'>;
  readonly clock: Clock;
}

/**
 * Tries ways to a node in their order, each where those before it do not lead there.
 * @throws SvcError as the last of them
 */
export async function dialBy(ways: readonly DialWay[], place: NodePlace, signal: AbortSignal): Promise<QuicConnection> {
  let failure: unknown = new SvcError('connect_failed', { message: 'There is no way to the node.' });
  for (const way of ways) {
    try {
      return await way(place, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}

/**
 * The way that needs nobody else: dials the node's own addresses in their order, each a little after
 * the one before or as soon as that one has failed; the first connection wins and the others are
 * given up (RFC 8305, section 5).
 */
export function directly({ endpoint, clock }: DialDependencies): DialWay {
  return async ({ addresses, nodeKey }, signal) => {
    const queue = addresses.slice(0, MAX_ADDRESSES);
    const outcome = Promise.withResolvers<QuicConnection>();
    const losers = new AbortController();
    let running = 0;
    let stagger: Timer | undefined;
    const won = (connection: QuicConnection): void => {
      if (losers.signal.aborted) return connection.close();
      losers.abort(new SvcError('cancelled'));
      outcome.resolve(connection);
    };
    const lost = (error: unknown): void => {
      running--;
      next(error);
    };
    const next = (failure: unknown): void => {
      if (losers.signal.aborted) return;
      stagger?.cancel();
      const address = queue.shift();
      if (address !== undefined) {
        running++;
        stagger = clock.after(STAGGER_MS, () => next(failure));
        endpoint.dial(address, nodeKey, { signal: losers.signal }).then(won, lost);
      } else if (running === 0) outcome.reject(connectFailed(failure, addresses));
    };
    if (signal.aborted) throw abortError(signal);
    next(new SvcError('connect_failed', { message: 'The node has no address.' }));
    try {
      return await abortable(outcome.promise, signal);
    } finally {
      stagger?.cancel();
      losers.abort(new SvcError('cancelled'));
    }
  };
}

function connectFailed(cause: unknown, addresses: readonly Address[]): SvcError {
  const details = { addresses: addresses.map(formatAddress) };
  return new SvcError('connect_failed', { cause, details });
}

/** One piece of work that several wait for; it is given up when the last of them stops waiting. */
export class SharedAttempt<T> {
  readonly #result = Promise.withResolvers<T>();
  readonly #controller = new AbortController();
  #waiters = 0;
  #settled = false;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    // Whoever waits sees the failure; with nobody left it is of no interest.
    this.#result.promise.catch(() => {});
    work(this.#controller.signal).then(this.#result.resolve, this.#result.reject);
  }

  /** Waits for the result, as long as the signal allows. */
  async join(signal: AbortSignal): Promise<T> {
    this.#waiters++;
    try {
      return await abortable(this.#result.promise, signal);
    } finally {
      this.#waiters--;
      if (this.#waiters === 0 && !this.#settled) this.#controller.abort(new SvcError('cancelled'));
    }
  }

  /** Gives the waiters a result that came another way; the work itself goes on, though nobody waits for it. */
  settle(result: T): void {
    this.#settled = true;
    this.#result.resolve(result);
  }

  /** Gives up at once. */
  cancel(): void {
    this.#controller.abort(new SvcError('cancelled'));
  }
}
