/**
 * Updates `test/vectors/cli-json.json`, the recorded `--json` members and exit codes of `svc`, and `cli-text.txt`, the
 * requests and the text of every command. Run it after a release that may break the JSON, or when a command, a member or
 * a text is new.
 */
import { spawnSync } from 'node:child_process';

const TESTS = [
  'test/e2e/commands.test.ts',
  'test/surfaces/cli/promise.test.ts',
  'test/surfaces/cli/transcript.test.ts',
];

const { status } = spawnSync(process.execPath, ['tools/run-tests.ts', ...TESTS], {
  stdio: 'inherit',
  env: { ...process.env, SVC_RECORD_JSON: '1' },
});
process.exitCode = status ?? 1;
