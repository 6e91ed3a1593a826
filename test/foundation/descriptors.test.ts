import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { descriptorLimit } from '../../src/foundation/descriptors.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MODULE = new URL('../../src/foundation/descriptors.ts', import.meta.url).href;

/** A missing file, so that Node reports the limit. */
const NOWHERE = '/nowhere/limits';

/** The limit that a process reports. */
function limitUnder(files: number): number {
  const script = `import { descriptorLimit } from ${JSON.stringify(MODULE)}; console.log(descriptorLimit())`;
  const command = `ulimit -n ${files}; exec "$0" --input-type=module -e '${script}'`;
  return Number(execFileSync('sh', ['-c', command, process.execPath], { encoding: 'utf8' }));
}

test('the limit is that of this process, at most 65,536', { skip: process.platform === 'win32' }, () => {
  assert.equal(limitUnder(300), 300);
  assert.ok(descriptorLimit() <= 65_536);
});

test('looks nothing up meanwhile, and leaves the report as it was set', (t) => {
  const { report } = process;
  const before: unknown = Reflect.get(report, 'excludeNetwork');
  const looked: unknown[] = [];
  t.mock.method(report, 'getReport', () => {
    looked.push(Reflect.get(report, 'excludeNetwork'));
    return {};
  });
  assert.equal(descriptorLimit(NOWHERE), 65_536, 'without a limit file');
  assert.deepEqual(looked, [true]);
  assert.equal(Reflect.get(report, 'excludeNetwork'), before);
});

test('a limit that is no number counts as none', (t) => {
  const limits: unknown[] = [
    { open_files: { soft: 7 } },
    { open_files: { soft: 'unlimited' } },
    { open_files: null },
    null,
  ];
  const seen = limits.map((userLimits) => {
    const { mock } = t.mock.method(process.report, 'getReport', () => ({ userLimits }));
    const limit = descriptorLimit(NOWHERE);
    mock.restore();
    return limit;
  });
  assert.deepEqual(seen, [7, 65_536, 65_536, 65_536]);
});

test('the limit comes from Linux, or from a Node report if that is not a number', (t) => {
  t.mock.method(process.report, 'getReport', () => ({ userLimits: { open_files: { soft: 9 } } }));
  const file = join(temporaryDirectory(t), 'limits');
  const reported = (soft: string): number => {
    writeFileSync(
      file,
      `Max processes  1 2 processes\nMax open files            ${soft}        20000                files\n`,
    );
    return descriptorLimit(file);
  };
  assert.deepEqual(['1024', '1000000', 'unlimited'].map(reported), [1024, 65_536, 9]);
});
