/**
 * Safe retries: a client that received no response sends its request again, and the same content then is the same
 * request. Used where acting twice would show, as with chat messages. Notes have their own records of attempts.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { toHex } from '../../foundation/bytes.ts';
import { type CborValue, encodeCbor } from '../../foundation/cbor.ts';
import type { Clock } from '../../foundation/clock.ts';
import { REPEAT_MS } from '../../foundation/domain/time.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { JoinedRequests } from '../../foundation/joined-requests.ts';
import type { Log } from '../../foundation/log.ts';
import type { UnansweredRequestStore } from '../../foundation/store/unanswered-requests.ts';
import type { CallContext } from '../operation.ts';

interface RepeatableRequest<R> {
  readonly aid: Aid;
  /** Two requests of the agent with equal content are the same. */
  readonly content: Readonly<Record<string, CborValue | undefined>>;
  /** Acts, and calls `keep` with the name of the effect in the same transaction. */
  readonly act: (keep: (effect: string) => void) => R | Promise<R>;
  /** The result of an earlier effect. Null if it was undone. */
  readonly again: (effect: string) => R | null;
}

export class Repeats {
  readonly #store: UnansweredRequestStore;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #requests = new JoinedRequests<unknown>();

  constructor(store: UnansweredRequestStore, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Acts, unless the same request is under way, or no client received its response within the last hour.
   * @throws the errors of `act`
   */
  async run<R>(request: RepeatableRequest<R>, context: CallContext): Promise<R> {
    const { aid } = request;
    const fingerprint = new Uint8Array(createHash('sha256').update(encodeCbor(request.content)).digest());
    const name = `${aid} ${toHex(fingerprint)}`;
    const { result, settle } = await this.#requests.join(
      name,
      () => this.#once(request, fingerprint),
      () => this.#heard(aid, fingerprint),
    );
    if (context.onAnswered === undefined) settle(true);
    else {
      context.onAnswered(settle);
      await noticeEnds();
    }
    // The same content has the same type of result.
    return result as R;
  }

  async #once<R>({ aid, act, again }: RepeatableRequest<R>, fingerprint: Uint8Array): Promise<R> {
    const now = this.#clock.now();
    const effect = this.#store.find(aid, fingerprint, now - REPEAT_MS, now + REPEAT_MS);
    const before = effect === null ? null : again(effect);
    if (before !== null) return before;
    return await act((done) => this.#store.put(aid, fingerprint, done, now, now - REPEAT_MS));
  }

  #heard(aid: Aid, fingerprint: Uint8Array): void {
    try {
      this.#store.end(aid, fingerprint);
    } catch (error) {
      this.#log.warn({ aid, error }, 'the end of a request cannot be stored');
    }
  }
}

/** Lets the event loop read the end of a connection whose client gave up while the daemon was busy. */
async function noticeEnds(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
