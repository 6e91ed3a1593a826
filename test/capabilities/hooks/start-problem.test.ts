import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isShortage, startProblem } from '../../../src/capabilities/hooks/start-problem.ts';

function error(code: string): Error {
  return Object.assign(new Error('failed'), { code });
}

test('each error of a start has its cause, and the ones that pass are retried without counting', () => {
  const shortages: Readonly<Record<string, RegExp>> = {
    EAGAIN: /no more processes/,
    ENOMEM: /memory .* full/,
    EMFILE: /svcd has no free file descriptors/,
    ENFILE: /machine has no free file descriptors/,
    ENOSPC: /disk .* full/,
    EDQUOT: /quota/,
    EROFS: /read-only/,
    EIO: /disk .* fails/,
  };
  for (const [code, text] of Object.entries(shortages)) {
    assert.match(startProblem(error(code)), text);
    assert.ok(startProblem(error(code)).includes(`(${code})`));
    assert.ok(isShortage(error(code)), code);
  }
  const faults: Readonly<Record<string, RegExp>> = {
    ENOENT: /folder .* does not exist/,
    ENOTDIR: /no folder/,
    EACCES: /may not enter/,
    EPERM: /not permit/,
    ELOOP: /Check its folder/,
  };
  for (const [code, text] of Object.entries(faults)) {
    assert.match(startProblem(error(code)), text);
    assert.ok(!isShortage(error(code)), code);
  }
});
