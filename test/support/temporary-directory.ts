import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A new directory that is removed after the test. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'svcd-test-'));
  t.after(() => {
    try {
      rmSync(path, { recursive: true, force: true });
    } catch (error) {
      // Windows keeps files that the test closes later.
      if (process.platform !== 'win32') throw error;
    }
  });
  return path;
}
