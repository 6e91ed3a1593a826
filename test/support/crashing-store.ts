/** A database that fails for good at one of its commits, as the machine does when it loses power. */
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';

export interface CrashPoint {
  /** Which commit, from 1 on; 0 never. */
  readonly commit: number;
  /** Whether what that commit wrote is on disk. */
  readonly kept: boolean;
}

export class Crash extends Error {}

export interface CrashingStore {
  readonly store: Store;
  /** Counts commits from now on. */
  arm(): void;
  /** How many commits there were since then. */
  commits(): number;
  crashed(): boolean;
}

/** Opens a database that crashes at a point. What a call outside of a transaction writes is a commit of its own. */
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
        if (name === 'transaction' || name === 'transactionSoon' || name === 'run') return outermost(call);
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
