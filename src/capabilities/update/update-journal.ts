/** State of the updater that survives restarts: the last check, and the last attempt that failed before a switch. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { lazy } from '../../foundation/lazy.ts';

const KEY = 'update';

const Shape = Type.Object({
  /** Time of the last check in Unix milliseconds; null before the first. */
  checkedAt: Type.Union([Type.Number(), Type.Null()]),
  /** The latest version according to the registry; null if not known. */
  latest: Type.Union([Type.String(), Type.Null()]),
  /** Why the last check failed; empty if it succeeded. */
  checkError: Type.String(),
  /** A started update. Its result is in `failed` or comes from the supervisor. */
  begun: Type.Union([Type.Object({ version: Type.String(), at: Type.Number() }), Type.Null()]),
  /** An update that failed before the switch. */
  failed: Type.Union([Type.Object({ version: Type.String(), error: Type.String(), at: Type.Number() }), Type.Null()]),
});
export type JournalState = Static<typeof Shape>;

const EMPTY: JournalState = { checkedAt: null, latest: null, checkError: '', begun: null, failed: null };
const check = lazy(() => Compile(Shape));

/** Storage of the state. */
export interface UpdateStore {
  get(key: string): unknown;
  set(key: string, value: JournalState): void;
}

export class UpdateJournal {
  readonly #store: UpdateStore;

  constructor(store: UpdateStore) {
    this.#store = store;
  }

  get(): JournalState {
    const stored = this.#store.get(KEY);
    // Compiling the schema would take longer than the rest of this function.
    if (stored === null || stored === undefined) return EMPTY;
    return check().Check(stored) ? stored : EMPTY;
  }

  /** Changes some fields. */
  set(changes: Partial<JournalState>): void {
    this.#store.set(KEY, { ...this.get(), ...changes });
  }
}
