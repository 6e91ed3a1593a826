/**
 * `npm run test:quick`: what to run before each commit. Static checks, with changed files only for format and lint, and
 * the unit tests of the changed folders and of the folders that import them. Simulations and end-to-end tests are left to
 * `npm test`.
 */
import { dirname } from 'node:path';
import { changedFiles } from './changes.ts';
import { runChecks } from './check.ts';
import { type ModuleGraph, readSources } from './module-graph.ts';
import { allTestFiles, planJobs } from './test-run/plan.ts';
import { runJobs } from './test-run/run.ts';

const SIMULATIONS = 'test/sim/';

/** The unit tests to run after a change: changed tests, and all tests of changed folders and of their direct importers. */
export function testsAfter(changed: readonly string[], tests: readonly string[], sources: ModuleGraph): string[] {
  const importers = [...sources].filter(([, { imports }]) => imports.some((one) => changed.includes(one)));
  const files = [...changed, ...importers.map(([file]) => file)].filter((file) => sources.has(file));
  const folders = new Set(
    files.map((file) =>
      dirname(file)
        .replace(/^src\//, 'test/')
        .replace(/^panel\/.*/, 'test/panel'),
    ),
  );
  const tools = changed.some((file) => file.startsWith('tools/')) ? ['test/tools'] : [];
  const isMeant = (test: string): boolean => changed.includes(test) || [...folders, ...tools].includes(dirname(test));
  return tests.filter((test) => isMeant(test) && !test.startsWith(SIMULATIONS));
}

if (import.meta.main) {
  const changed = changedFiles();
  const unit = testsAfter(changed, allTestFiles().unit, readSources());
  console.log(`${changed.length} changed files, ${unit.length} test files`);
  const isChecked = await runChecks(changed);
  const isPassed = unit.length === 0 || (await runJobs(planJobs({ unit, endToEnd: [] })));
  process.exit(isChecked && isPassed ? 0 : 1);
}
