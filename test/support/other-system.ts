import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** Has no mode change until the test ends, as on a file system that knows none. */
export function ignoreModes(t: TestContext): void {
  for (const name of ['chmodSync', 'fchmodSync'] as const) t.mock.method(fs, name, () => {});
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

/** Has this process be another user's until the test ends, as far as it asks. What it returns makes it that of yet another one. */
export function beUser(t: TestContext, first: number): (uid: number) => void {
  let uid = first;
  const { getuid } = process;
  process.getuid = () => uid;
  t.after(() => Object.assign(process, { getuid }));
  return (next) => {
    uid = next;
  };
}
