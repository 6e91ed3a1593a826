import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeUnsafe, textLine } from '../../src/foundation/display-text.ts';

test('characters that move, turn or hide text are escaped', () => {
  assert.equal(escapeUnsafe('a\u001b[2J\n\u0085\u202e\u2028b'), 'a\\u001b[2J\\u000a\\u0085\\u202e\\u2028b');
  assert.equal(escapeUnsafe('\u{e0001}'), '\\udb40\\udc01', 'both halves');
  assert.equal(escapeUnsafe('Zürich 🙂'), 'Zürich 🙂');
  // A filler, a joiner of graphemes, and bytes that are hidden in variation selectors.
  assert.equal(escapeUnsafe('a\u3164b\u034fc'), 'a\\u3164b\\u034fc');
  assert.equal(escapeUnsafe('🙂\ufe01\u{e0100}'), '🙂\\ufe01\\udb40\\udd00');
  assert.equal(escapeUnsafe('a\ufe0f'), 'a\\ufe0f');
  assert.equal(escapeUnsafe('❤\ufe0f ☎\ufe0e'), '❤\ufe0f ☎\ufe0e');
  assert.equal(escapeUnsafe('❤\ufe0f\ufe0f'), '❤\ufe0f\\ufe0f', 'once');
});

test('a value cannot pass for another pair', () => {
  const line = {
    time: 'T',
    level: 'info',
    msg: 'm',
    'a b': 'x',
    c: 'x y=1',
    d: '',
    e: [1],
    f: 'x"',
    g: 'x,y',
    h: null,
  };
  assert.equal(textLine(JSON.stringify(line)), 'T INFO  m "a b"=x c="x y=1" d="" e=[1] f="x\\"" g="x,y" h=null');
  assert.equal(textLine('{"time":"T","level":"error","component":"dht","msg":"m"}'), 'T ERROR dht: m');
});
