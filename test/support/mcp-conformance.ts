/** Runs the conformance suite of the protocol against an address. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './programs.ts';

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface Verdict {
  /** Number of passed checks by scenario. */
  readonly passed: ReadonlyMap<string, number>;
  /** `scenario: check` → why it failed. Informational checks are omitted. */
  readonly others: ReadonlyMap<string, string>;
}

/** Deadline of a scenario on a busy machine. */
const SCENARIO_TIMEOUT_MS = 120_000;
/** Result folders are named `server-<scenario>-<time>`. */
const RESULT_FOLDER = /^server-(.+)-\d{4}-\d\d-\d\dT/;

function read(directory: string): Verdict {
  const passed = new Map<string, number>();
  const others = new Map<string, string>();
  for (const folder of readdirSync(directory)) {
    const scenario = RESULT_FOLDER.exec(folder)?.[1] ?? folder;
    const checks = JSON.parse(readFileSync(join(directory, folder, 'checks.json'), 'utf8')) as Check[];
    passed.set(scenario, checks.filter(({ status }) => status === 'SUCCESS').length);
    for (const { id, status, errorMessage = '' } of checks)
      if (status !== 'SUCCESS' && status !== 'INFO') others.set(`${scenario}: ${id}`, `${status} ${errorMessage}`);
  }
  return { passed, others };
}

/**
 * Runs all scenarios of a revision, or one.
 * @param directory an empty directory for the results
 */
export async function conformance(
  url: string,
  revision: string,
  directory: string,
  scenario?: string,
): Promise<Verdict> {
  const which = scenario === undefined ? ['--suite', 'all'] : ['--scenario', scenario];
  const limit = ['--timeout', String(SCENARIO_TIMEOUT_MS)];
  const args = ['server', '--url', url, '--spec-version', revision, '--output-dir', directory, ...limit, ...which];
  const { stdout, stderr } = await run(process.execPath, ['node_modules/.bin/conformance', ...args]);
  const verdict = read(directory);
  if (verdict.passed.size === 0) throw new Error(`the conformance suite ran nothing:\n${stdout}\n${stderr}`);
  return verdict;
}
