import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calledName, callsItself, isCalledName, MAX_CALLED_CHARS } from '../../src/foundation/called-name.ts';

test('a name is one line without invisible characters and look-alikes', () => {
  assert.equal(calledName('  Dora \n Maier '), 'Dora Maier');
  assert.equal(calledName('a\u200bb'), 'ab');
  assert.equal(calledName('e\u0301'), '\u00e9');
  assert.equal(calledName('\u0414\u043e\u0440\u0430'), '\u0414\u043e\u0440\u0430', 'another script alone');
  assert.equal(calledName('x'.repeat(MAX_CALLED_CHARS)), 'x'.repeat(MAX_CALLED_CHARS));
  const none = [
    '',
    ' ',
    'x'.repeat(MAX_CALLED_CHARS + 1),
    'D\u043era',
    'aid1qqqq',
    'a/b',
    '127.0.0.1',
    '\ud800',
    7,
    null,
  ];
  for (const one of none) assert.equal(calledName(one), undefined, String(one));
  assert.ok(isCalledName('Dora') && !isCalledName(' Dora') && !isCalledName(undefined));
  assert.equal(callsItself('Dora'), 'calls itself Dora');
});
