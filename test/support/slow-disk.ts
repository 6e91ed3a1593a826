/** A disk whose background flushes complete when the test lets them. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

interface SlowDisk {
  /** Flushes under way. */
  readonly pending: readonly unknown[];
  /** Ends the oldest flush. */
  complete(error?: Error | null): void;
}

/** Replaces a function of `node:fs` for the rest of the test. */
export function replaceInFs(
  t: TestContext,
  name: 'statfsSync' | 'fdatasync',
  other: (...args: never[]) => unknown,
): void {
  t.mock.method(fs, name, other);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

export function slowDisk(t: TestContext): SlowDisk {
  const pending: ((error: Error | null) => void)[] = [];
  replaceInFs(t, 'fdatasync', (_: number, done: (error: Error | null) => void) => void pending.push(done));
  return { pending, complete: (error = null) => pending.shift()?.(error) };
}
