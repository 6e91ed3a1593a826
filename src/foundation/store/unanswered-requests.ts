/** Effects of requests whose response no client has received yet. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { orNull, textOf } from './row.ts';
import type { Store } from './store.ts';

export class UnansweredRequestStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** What the same request did between `since` and `until`. Null if a client has received the response. */
  find(aid: Aid, fingerprint: Uint8Array, since: number, until: number): string | null {
    const row = this.#store.one`
      SELECT effect FROM unanswered_requests
      WHERE aid = ${aid} AND fingerprint = ${fingerprint} AND at BETWEEN ${since} AND ${until}`;
    return orNull(textOf, row ?? { effect: null }, 'effect');
  }

  /** Stores what a request does, and forgets requests from before `since`. Call in the transaction that does it. */
  put(aid: Aid, fingerprint: Uint8Array, effect: string, at: number, since: number): void {
    this.#store.run`DELETE FROM unanswered_requests WHERE at < ${since}`;
    this.#store.run`
      INSERT OR REPLACE INTO unanswered_requests (aid, fingerprint, effect, at) VALUES (${aid}, ${fingerprint}, ${effect}, ${at})`;
  }

  /** A client has received the response: the same request is a new one. */
  end(aid: Aid, fingerprint: Uint8Array): void {
    this.#store.commit(
      () => this.#store.run`DELETE FROM unanswered_requests WHERE aid = ${aid} AND fingerprint = ${fingerprint}`,
      'soon',
    );
  }
}
