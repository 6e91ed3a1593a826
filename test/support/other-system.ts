import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** Makes mode changes ineffective until the test ends, like a file system without modes. */
export function ignoreModes(t: TestContext): void {
  for (const name of ['chmodSync', 'fchmodSync'] as const) t.mock.method(fs, name, () => {});
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

/**
 * Makes this process appear to belong to another user until the test ends. The returned function changes the user
 * again.
 */
export function beUser(t: TestContext, first: number): (uid: number) => void {
  let uid = first;
  const { getuid } = process;
  process.getuid = () => uid;
  t.after(() => Object.assign(process, { getuid }));
  return (next) => {
    uid = next;
  };
}
