import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isFirstValueOver, withTexts } from '../../../src/surfaces/origin/webhook-requests.ts';

test('replaces strings and keeps every other byte', () => {
  const json =
    '{ "n": 12345678901234567890.10, "a" : {"url":"x\\u0041", "list":["url",{"url":"y"}]},"url":"z","url":"z2"}';
  const seen: string[] = [];
  const after = withTexts(json, (path, value) => {
    seen.push(`${path}=${value}`);
    return path === 'a/url' || path === 'a/list/[]/url' ? `<${value}"` : null;
  });
  assert.deepEqual(seen, ['a/url=xA', 'a/list/[]=url', 'a/list/[]/url=y', 'url=z', 'url=z2']);
  assert.equal(
    after,
    '{ "n": 12345678901234567890.10, "a" : {"url":"<xA\\"", "list":["url",{"url":"<y\\""}]},"url":"z","url":"z2"}',
  );
  assert.equal(
    withTexts('"alone"', (path) => (path === '' ? 'changed' : null)),
    '"changed"',
  );
});

test('does not report paths longer than any relevant path', () => {
  const long = 'n'.repeat(300);
  const seen: string[] = [];
  withTexts(JSON.stringify({ [long]: { url: 'a', list: ['b'] }, url: 'c' }), (path, value) => {
    seen.push(`${path}=${value}`);
    return null;
  });
  assert.deepEqual(seen, ['…=a', '…=b', 'url=c']);
});

test('sees the same strings as JSON.parse, and changes nothing by default', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(0, 2), (json, indent) => {
      const value: unknown = JSON.parse(json);
      const text = JSON.stringify(value, null, indent);
      const seen: string[] = [];
      assert.equal(
        withTexts(text, (_, one) => {
          seen.push(one);
          return null;
        }),
        text,
      );
      const texts: string[] = [];
      JSON.stringify(value, (_, one: unknown) => {
        if (typeof one === 'string') texts.push(one);
        return one;
      });
      assert.deepEqual(seen, texts);
      const changed: unknown = JSON.parse(withTexts(text, (_, one) => `${one}!`));
      const expected: unknown = JSON.parse(text, (_, one: unknown) => (typeof one === 'string' ? `${one}!` : one));
      assert.deepEqual(changed, expected);
    }),
  );
});

test('finds the end of a list or an object in any chunks', () => {
  fc.assert(
    fc.property(fc.oneof(fc.array(fc.json()), fc.dictionary(fc.string(), fc.json())), fc.nat(), (value, cut) => {
      const text = Buffer.from(JSON.stringify(value));
      const at = cut % text.length;
      const isOver = isFirstValueOver();
      assert.deepEqual([isOver(text.subarray(0, at)), isOver(text.subarray(at))], [false, true]);
    }),
  );
  for (const other of ['1', '"{"', 'null', ' ]', '}'])
    assert.ok(isFirstValueOver()(Buffer.from(other)), `${other} is no list and no object`);
  assert.ok(!isFirstValueOver()(Buffer.from(' \n')));
});
