import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  formatTraceparent,
  isTracestate,
  MAX_TRACESTATE_CHARS,
  parseTraceparent,
  traceHeadersIn,
} from '../../../src/foundation/traces/trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test('valid traceparent headers are read, also those of later versions', () => {
  const parsed = { traceId: TRACE, parentId: SPAN };
  for (const [text, isSampled] of [
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    // Unknown flags are ignored.
    [`00-${TRACE}-${SPAN}-02`, false],
    [`00-${TRACE}-${SPAN}-ff`, true],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, true],
  ] as const)
    assert.deepEqual(parseTraceparent(text), { ...parsed, isSampled }, text);
});

test('invalid traceparent headers are ignored', () => {
  for (const text of [
    '',
    'x',
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `.0-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN.toUpperCase()}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-0x`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-01-extra`,
    `cc-${TRACE}-${SPAN}-01.extra`,
    `00_${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
  ])
    assert.equal(parseTraceparent(text), null, JSON.stringify(text));
});

test('every valid context survives, and nothing else is accepted', () => {
  const hex = (length: number) =>
    fc
      .array(fc.integer({ min: 0, max: 15 }), { minLength: length, maxLength: length })
      .map((digits) => digits.map((digit) => digit.toString(16)).join(''));
  fc.assert(
    fc.property(hex(32), hex(16), fc.boolean(), (traceId, parentId, isSampled) => {
      const isValid = /[^0]/.test(traceId) && /[^0]/.test(parentId);
      const context = { traceId, parentId, isSampled };
      assert.deepEqual(parseTraceparent(formatTraceparent(context)), isValid ? context : null);
    }),
  );
  const near = fc.tuple(fc.nat(54), fc.string({ unit: 'binary', minLength: 0, maxLength: 2 })).map(([at, text]) => {
    const whole = `00-${TRACE}-${SPAN}-01`;
    return whole.slice(0, at) + text + whole.slice(at + 1);
  });
  fc.assert(
    fc.property(near, (text) => {
      const context = parseTraceparent(text);
      if (context === null) return;
      assert.ok(text.length === 55 || !text.startsWith('00'));
      assert.equal(formatTraceparent(context).slice(3, 52), text.slice(3, 52));
    }),
  );
});

test('a tracestate is valid within the limits of the recommendation', () => {
  const members = (count: number): string => Array.from({ length: count }, (_, i) => `k${i}=v`).join(',');
  for (const text of [
    '',
    'a=1',
    'a=1,b=2',
    'a=1 , \tb=2',
    'a=1,,b=2',
    'tenant0@vendor=x y!',
    '0tenant@vendor=1',
    'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
    'a/b_c-d*e=1',
    members(32),
  ])
    assert.ok(isTracestate(text), text);
  for (const text of [
    'a',
    '=1',
    'a=',
    'A=1',
    '0a=1',
    'a=1=2',
    'a =1',
    'a=é',
    'a=\u0000',
    'a=1,a=2',
    'a@b@c=1',
    'a@0b=1',
    `${'a'.repeat(257)}=1`,
    `a=${'1'.repeat(257)}`,
    members(33),
    `a=${'x'.repeat(250)},b=${'x'.repeat(250)},c=123456789`,
  ])
    assert.ok(!isTracestate(text), text);
  assert.equal(MAX_TRACESTATE_CHARS, 512);
});

test('the trace headers among other values are taken only if they are valid', () => {
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  assert.deepEqual(traceHeadersIn({ traceparent, tracestate: 'a=1', other: 1 }), { traceparent, tracestate: 'a=1' });
  assert.deepEqual(traceHeadersIn({ traceparent, tracestate: 'a' }), { traceparent });
  assert.deepEqual(traceHeadersIn({ traceparent: `cc-${TRACE}-${SPAN}-01-\r\nx: y` }), { traceparent });
  for (const values of [
    undefined,
    null,
    'x',
    {},
    { traceparent: 'x' },
    { traceparent: [traceparent] },
    { tracestate: 'a=1' },
  ])
    assert.equal(traceHeadersIn(values), undefined);
});
