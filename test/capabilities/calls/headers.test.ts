import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  endToEnd,
  identityHeaders,
  isSteered,
  pairs,
  withoutDaemonHeaders,
  withoutReservedHeaders,
} from '../../../src/capabilities/calls/headers.ts';
import { testAid } from '../../support/agents.ts';
import { valuesOf } from '../../support/call-world.ts';

const names = (raw: readonly string[]) => [...pairs(raw)].map(([name]) => name);

test('requests that a service could serve as others are recognized', () => {
  const steering = ['X-HTTP-Method-Override', 'x_http_method', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-Url'];
  for (const name of steering) assert.equal(isSteered([name, 'DELETE'], '/'), true, name);
  for (const target of ['/?_method=DELETE', '/?a?&_method=x', '/?a=1;_METHOD=x', '/?x=1&_m%65thod=x'])
    assert.equal(isSteered([], target), true, target);
  assert.equal(isSteered(['Access-Control-Request-Method', 'GET', 'X-Request-ID', '1'], '/method?a=method'), false);
});

test('hop-by-hop headers are removed, including headers that Connection names', () => {
  const raw = ['Connection', 'close, X-Once', 'connection', 'x-twice', 'Keep-Alive', 'timeout=5', 'TE', 'trailers'];
  const more = ['Transfer-Encoding', 'chunked', 'Upgrade', 'h2c', 'Proxy-Authorization', 'Basic x', 'Trailer', 'X-Sum'];
  assert.deepEqual(endToEnd([...raw, ...more, 'X-Once', '1', 'x-twice', '2', 'X-Kept', '3']), [
    'Trailer',
    'X-Sum',
    'X-Kept',
    '3',
  ]);
});

test('Connection cannot remove headers that delimit a message', () => {
  const raw = ['Content-Length', '5', 'Host', 'x', 'Connection', 'content-length, host'];
  assert.deepEqual(endToEnd(raw), ['Host', 'x', 'Content-Length', '5']);
});

test('repeated headers keep their order and spelling', () => {
  const raw = ['Set-Cookie', 'a=1', 'X-b', '2', 'set-cookie', 'c=3'];
  assert.deepEqual(endToEnd(raw), raw);
  assert.deepEqual(valuesOf(raw, 'set-cookie'), ['a=1', 'c=3']);
});

test("callers cannot send svcd's own headers to a service in any spelling", () => {
  const separator = fc.constantFrom('-', '_', '.', '~', '!');
  const cased = (text: string) =>
    fc
      .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
      .map((upper) => text.replaceAll(/./g, (c, i: number) => (upper[i] ? c.toUpperCase() : c)));
  const forged = fc
    .tuple(
      fc.constantFrom(
        'svc caller aid',
        'svc local aid',
        'svc error',
        'forwarded',
        'x forwarded for',
        'x real ip',
        'proxy',
      ),
      separator,
    )
    .chain(([words, mark]) => cased(words.replaceAll(' ', mark)));
  fc.assert(
    fc.property(fc.array(forged, { minLength: 1 }), (list) => {
      assert.deepEqual(withoutReservedHeaders([...list.flatMap((name) => [name, 'evil']), 'X-Svc', '1']), [
        'X-Svc',
        '1',
      ]);
    }),
    { seed: 4 },
  );
});

test('a service cannot send headers of its daemon', () => {
  assert.deepEqual(
    names(withoutDaemonHeaders(['Svc-Error', 'no_inbound', 'svc_error', 'x', 'SVC-Other', 'y', 'Age', '1'])),
    ['Age'],
  );
  assert.deepEqual(names(withoutDaemonHeaders(['Forwarded', 'for=x'])), ['Forwarded']);
});

test('Forwarded names both agents in the form of RFC 7239', () => {
  const [caller, called] = [testAid(1), testAid(2)];
  assert.deepEqual(identityHeaders(caller, called).slice(4), ['Forwarded', `by=_${called};for=_${caller};proto=http`]);
});
