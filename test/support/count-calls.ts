import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** Counts the calls of a node:crypto function until the test ends, without changing its behavior. */
export function countCrypto(t: TestContext, name: 'verify' | 'createPublicKey'): () => number {
  const work = crypto[name];
  const { mock } = t.mock.method(crypto, name, (...args: unknown[]): unknown => Reflect.apply(work, crypto, args));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return () => mock.callCount();
}
