/** What the updater remembers over restarts: the last look, and the last attempt that came to no switch. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { lazy } from '../../foundation/lazy.ts';

const KEY = 'update';

const Shape = Type.Object({
  /** Unix milliseconds of the last look; null before the first. */
  checkedAt: Type.Union([Type.Number(), Type.Null()]),
  /** What the registry calls the latest; null where that is not known. */
  latest: Type.Union([Type.String(), Type.Null()]),
  /** Why the last look failed; empty where it did not. */
  checkError: Type.String(),
  /** An update that was begun; how it ended is told by `failed`, or by the supervisor. */
  begun: Type.Union([Type.Object({ version: Type.String(), at: Type.Number() }), Type.Null()]),
  /** An update that failed before it came to a switch. */
  failed: Type.Union([Type.Object({ version: Type.String(), error: Type.String(), at: Type.Number() }), Type.Null()]),
});
export type Remembered = Static<typeof Shape>;

const NOTHING: Remembered = { checkedAt: null, latest: null, checkError: '', begun: null, failed: null };
const check = lazy(() => Compile(Shape));

/** Where it is kept. */
export interface UpdateStore {
  get(key: string): unknown;
  set(key: string, value: Remembered): void;
}

export class UpdateMemory {
  readonly #store: UpdateStore;

  constructor(store: UpdateStore) {
    this.#store = store;
  }

  get(): Remembered {
    const stored = this.#store.get(KEY);
    // To make the check takes a start longer than all else here.
    if (stored === null || stored === undefined) return NOTHING;
    return check().Check(stored) ? stored : NOTHING;
  }

  /** Changes some of it. */
  set(changes: Partial<Remembered>): void {
    this.#store.set(KEY, { ...this.get(), ...changes });
  }
}
