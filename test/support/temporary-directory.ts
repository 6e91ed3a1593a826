import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A new directory that is removed after the test. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'svcd-test-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
