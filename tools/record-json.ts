/**
 * Records anew what `svc --json` and its exit codes promise to programs, in `test/vectors/cli-json.json`:
 * after a release that was allowed to break some of it, and whenever a command or a member is new.
 */
import { spawnSync } from 'node:child_process';

const TESTS = ['test/e2e/commands.test.ts', 'test/surfaces/cli/promise.test.ts'];

const { status } = spawnSync(process.execPath, ['tools/run-tests.ts', ...TESTS], {
  stdio: 'inherit',
  env: { ...process.env, SVC_RECORD_JSON: '1' },
});
process.exitCode = status ?? 1;
