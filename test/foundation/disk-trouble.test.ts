import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diskTrouble } from '../../src/foundation/disk-trouble.ts';

test('what a disk refuses is said with what to do, and with its code where nothing is known', () => {
  const said = (code: string): string => diskTrouble(Object.assign(new Error('no'), { code }));
  assert.equal(said('ENOSPC'), ' (ENOSPC): the disk is full, free some room.');
  assert.equal(said('EROFS'), ' (EROFS): the disk is mounted read-only.');
  assert.equal(said('EACCES'), ' (EACCES): its permissions forbid it.');
  assert.equal(said('EIO'), ' (EIO).');
});
