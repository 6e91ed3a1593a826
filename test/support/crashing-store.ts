/** A database that fails permanently at one of its commits, like a power cut. */
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';

export interface CrashPoint {
  /** The commit, counted from 1. 0 for never. */
  readonly commit: number;
  /** True if the data of that commit is on disk. */
  readonly kept: boolean;
}

export class Crash extends Error {}

export interface CrashingStore {
  readonly store: Store;
  /** Starts counting commits. */
  arm(): void;
  /** Number of commits since then. */
  commits(): number;
  crashed(): boolean;
}

/** Opens a database that crashes at a given commit. A write outside of a transaction is its own commit. */
export function crashingStore(file: string, point: CrashPoint): CrashingStore {
  const real = Store.open(file, MIGRATIONS, 'normal');
  let commits = 0;
  let depth = 0;
  let armed = false;
  let dead = false;
  const outermost = (work: () => unknown): unknown => {
    if (dead) throw new Crash();
    if (depth > 0) return work();
    depth++;
    try {
      const dies = armed && ++commits === point.commit;
      if (dies && !point.kept) {
        dead = true;
        throw new Crash();
      }
      const result = work();
      if (dies) {
        dead = true;
        throw new Crash();
      }
      return result;
    } finally {
      depth--;
    }
  };
  const store = new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(value, target, args);
        if (name === 'close') return call();
        if (name === 'transaction' || name === 'commit' || name === 'run') return outermost(call);
        if (dead) throw new Crash();
        return call();
      };
    },
  });
  const arm = (): void => {
    armed = true;
  };
  return { store, arm, commits: () => commits, crashed: () => dead };
}
