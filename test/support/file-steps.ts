/** Records file operations whose order must survive a power cut. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { relative } from 'node:path';
import type { TestContext } from 'node:test';

export interface FileSteps {
  /** `sync a`, `rename a b`: relative paths. */
  readonly steps: readonly string[];
  /** Files that are still open. */
  open(): readonly string[];
}

/** Records every rename and every flush to disk until the test ends. */
export function recordFileSteps(t: TestContext, directory: string): FileSteps {
  const steps: string[] = [];
  const files = new Map<number, string>();
  const { openSync, closeSync, fsyncSync, renameSync } = fs;
  const name = (path: unknown) => relative(directory, String(path)) || '.';
  t.mock.method(fs, 'openSync', (...args: Parameters<typeof openSync>) => {
    const file = openSync(...args);
    files.set(file, name(args[0]));
    return file;
  });
  t.mock.method(fs, 'closeSync', (file: number) => {
    closeSync(file);
    files.delete(file);
  });
  t.mock.method(fs, 'fsyncSync', (file: number) => {
    fsyncSync(file);
    steps.push(`sync ${files.get(file)}`);
  });
  t.mock.method(fs, 'renameSync', (...[from, to]: Parameters<typeof renameSync>) => {
    renameSync(from, to);
    steps.push(`rename ${name(from)} ${name(to)}`);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return { steps, open: () => [...files.values()] };
}
