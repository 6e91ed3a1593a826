/** Which files of the checkout were changed. Without Git or history, none are known. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

function git(...args: readonly string[]): string[] | null {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter(Boolean) : null;
}

/** Existing files that differ from the last commit, or from where this branch left `main`. New files included. */
export function changedFiles(): string[] {
  const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main') ?? [];
  const files = [
    ...(git('diff', '--name-only', base) ?? []),
    ...(git('ls-files', '--others', '--exclude-standard') ?? []),
  ];
  return [...new Set(files)].filter((file) => existsSync(file)).sort();
}

/** Files that the last commits and the working tree changed, and still exist. Null without history. */
export function recentlyChangedFiles(commits: number): string[] | null {
  const log = git('log', '--format=', '--name-only', `-${commits}`);
  if (log === null) return null;
  return [...new Set([...log, ...(git('diff', '--name-only', 'HEAD') ?? [])])]
    .filter((file) => existsSync(file))
    .sort();
}

/** A number that is equal for equal commits; 1 without history. */
export function commitSeed(): number {
  const [commit] = git('rev-parse', 'HEAD') ?? [];
  return commit === undefined ? 1 : Number.parseInt(commit.slice(0, 7), 16);
}
