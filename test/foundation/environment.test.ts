import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientEnvironment, namedDataDir } from '../../src/foundation/environment.ts';
import { SvcError } from '../../src/foundation/errors.ts';

const invalid =
  (words: RegExp) =>
  (error: unknown): boolean =>
    error instanceof SvcError && error.code === 'config_invalid' && words.test(error.message);

test('a data directory that can only be a mistake is rejected with its cause', () => {
  for (const [value, words] of [
    ['/srv/svcd\r', /carriage return/],
    ['/srv/svcd\n', /control character/],
    ['"/srv/svcd"', /quotes/],
    ["'/srv/svcd'", /quotes/],
    ['~/svcd', /begins with "~"/],
    ['$HOME/svcd', /begins with "~" or a variable/],
    ['%APPDATA%\\svcd', /begins with "~" or a variable/],
  ] as const) {
    assert.throws(() => namedDataDir({ SVCD_DATA_DIR: value }), invalid(words), value);
    assert.throws(() => namedDataDir({}, value), invalid(words), value);
  }
  assert.throws(() => namedDataDir({}, ''), invalid(/--data-dir is empty/));
});

test('an empty variable is not set', () => {
  assert.equal(namedDataDir({ SVCD_DATA_DIR: '' }), undefined);
  assert.equal(namedDataDir({}), undefined);
  assert.equal(namedDataDir({ SVCD_DATA_DIR: '/a' }, './~b'), './~b');
  assert.deepEqual(clientEnvironment({ SVC_API: '', SVC_TOKEN: '', SVC_AID: '', SVCD_DATA_DIR: '', HOME: '' }), {
    HOME: '',
  });
});

test('variables of clients lose line ends, and are rejected in quotes without showing their value', () => {
  for (const name of ['SVC_API', 'SVC_TOKEN', 'SVC_ACCESS_TOKEN', 'SVC_VIA_PASSWORD', 'SVC_AID'])
    assert.deepEqual(clientEnvironment({ [name]: 'value\r\n' }), { [name]: 'value' });
  for (const name of ['SVC_API', 'SVC_TOKEN'])
    assert.throws(
      () => clientEnvironment({ [name]: '"secret-value"' }),
      (error) => invalid(/quotes/)(error) && !String(error).includes('secret-value'),
      name,
    );
  assert.throws(() => clientEnvironment({ SVCD_DATA_DIR: '/a\r' }), invalid(/carriage return/));
  // A password may have quotes, and an AID is cleaned like any other.
  const kept = { SVC_VIA_PASSWORD: '"a"', SVC_AID: '"aid1x"' };
  assert.deepEqual(clientEnvironment(kept), kept);
});
