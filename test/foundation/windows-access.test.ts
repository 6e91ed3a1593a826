import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessList, isInProfile, keepFromOthers } from '../../src/foundation/windows-access.ts';

test('the folder of the user is private by itself', () => {
  const environment = { UserProfile: 'C:\\Users\\Jürgen' };
  for (const inside of ['C:\\Users\\Jürgen\\AppData\\Roaming\\svcd', 'c:/users/jürgen/x', 'C:\\Users\\Jürgen\\..x'])
    assert.equal(isInProfile(inside, environment), true, inside);
  for (const outside of ['C:\\Users\\Other', 'D:\\svcd', 'C:\\Users\\Jürgens', 'C:\\Users\\Jürgen\\..\\Public'])
    assert.equal(isInProfile(outside, environment), false, outside);
  assert.equal(isInProfile('C:\\x', {}), false);
});

test('elsewhere, only the user, the system and administrators get access', () => {
  const runs: string[][] = [];
  keepFromOthers('D:\\svcd', true, 'win32', (name, args) => {
    runs.push([name, ...args]);
    return name === 'whoami.exe' ? 'HOST\\me S-1-5-21-1-2-3-1001\r\n' : '';
  });
  assert.deepEqual(runs, [
    ['whoami.exe', '/user'],
    ['icacls.exe', ...accessList('D:\\svcd', 'S-1-5-21-1-2-3-1001', true)],
  ]);
  assert.deepEqual(accessList('D:\\a', 'S-1-2', false).slice(0, 6), [
    'D:\\a',
    '/inheritance:r',
    '/grant:r',
    '*S-1-2:F',
    '*S-1-5-18:F',
    '*S-1-5-32-544:F',
  ]);
  assert.ok(accessList('D:\\a', 'S-1-2', true).includes('*S-1-2:(OI)(CI)F'));
});

test('a place whose access cannot be set is refused', () => {
  const failing = (): string => {
    throw new Error('no icacls');
  };
  assert.throws(() => keepFromOthers('D:\\svcd', true, 'win32', failing), { code: 'key_exposed', message: /D:\\svcd/ });
  assert.throws(() => keepFromOthers('D:\\svcd', true, 'win32', () => ''), { code: 'key_exposed' });
  keepFromOthers('/data', true, 'linux', failing);
});
