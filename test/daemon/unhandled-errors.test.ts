import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

/** Runs a script with an unhandled failure. */
function fate(failure: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const script = `
    import { SvcError } from './src/foundation/errors.ts';
    import { detach } from './src/foundation/detached.ts';
    import { handleUnhandledErrors } from './src/daemon/crash.ts';
    handleUnhandledErrors(process, { error: (_fields, message) => console.log(message) });
    setImmediate(() => console.log('continues'));
    ${failure}`;
  return spawnSync(process.execPath, ['--input-type=module-typescript', '--eval', script], { encoding: 'utf8' });
}

test('an unhandled SvcError is logged, and the process continues', () => {
  for (const failure of [
    "queueMicrotask(() => { throw new SvcError('not_writable'); });",
    "void Promise.reject(new SvcError('not_writable'));",
    "detach(Promise.reject(new TypeError('a bug')));",
    "setImmediate(() => { throw Object.assign(new Error('no descriptor'), { code: 'EMFILE' }); });",
    "setImmediate(() => { throw Object.assign(new Error('address lost'), { code: 'EADDRNOTAVAIL' }); });",
  ]) {
    const { status, stdout, stderr } = fate(failure);
    assert.equal(status, 0, stderr);
    assert.deepEqual(stdout.trim().split('\n').toSorted(), ['background work failed', 'continues']);
  }
});

test('a bug ends the process with a stack trace', () => {
  const { status, stdout, stderr } = fate("void Promise.reject(new TypeError('a bug'));");
  assert.equal(status, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /^svcd: TypeError: a bug\n {4}at /);
});
