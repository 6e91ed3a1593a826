/**
 * Updates `test/vectors/cli-json.json`, the recorded `--json` members and exit codes of `svc`. Run it after a release
 * that may break them, or when a command or member is new.
 */
import { spawnSync } from 'node:child_process';

const TESTS = ['test/e2e/commands.test.ts', 'test/surfaces/cli/promise.test.ts'];

const { status } = spawnSync(process.execPath, ['tools/run-tests.ts', ...TESTS], {
  stdio: 'inherit',
  env: { ...process.env, SVC_RECORD_JSON: '1' },
});
process.exitCode = status ?? 1;
