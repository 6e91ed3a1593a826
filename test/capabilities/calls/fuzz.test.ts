import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { callWorld, textOf, valuesOf, webService } from '../../support/call-world.ts';

/** Fragments that are difficult for parsers. */
const PIECES = [
  ...[
    'GET ',
    'POST ',
    'CONNECT ',
    '/',
    '/a?b',
    '*',
    ' HTTP/1.1',
    ' HTTP/1.0',
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    '\0',
    ' ',
  ],
  ...['Host: x', 'Content-Length: 5', 'Content-Length: 0', 'Transfer-Encoding: chunked', 'Transfer-Encoding: gzip'],
  ...[
    'Svc-Caller-Aid: evil',
    'svc_caller_aid: evil',
    'Forwarded: for=evil',
    'Connection: Svc-Caller-Aid',
    'Connection: host',
  ],
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Expect: 100-continue', 'Trailer: Svc-Caller-Aid', '5\r\nhello\r\n'],
  ...['0\r\n\r\n', '0\r\nSvc-Caller-Aid: evil\r\n\r\n', 'hello', ': ', 'X:', '\t', '\u00ff'],
];
const request = fc
  .array(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...PIECES) }, fc.string({ maxLength: 5 })), { maxLength: 8 })
  .map((lines) => `POST /fuzz HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\n\r\n`);
const bytes = fc.oneof(
  request,
  fc.array(fc.constantFrom(...PIECES), { maxLength: 20 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 200 }),
);

test('with random bytes on a link, a service always gets the true caller, and the daemon survives', async (t) => {
  const world = await callWorld(t);
  let heard = 0;
  let forged: readonly string[] | null = null;
  const service = await webService(t, (request, response) => {
    heard++;
    const callers = valuesOf(request.rawHeaders, 'svc-caller-aid');
    const evil = [...request.rawHeaders, ...request.rawTrailers].filter((text) => text.includes('evil'));
    if (callers.length !== 1 || callers[0] !== world.local || evil.length > 0) forged = request.rawHeaders;
    request.resume().once('end', () => {
      if (request.rawTrailers.length > 0 && /svc/i.test(request.rawTrailers.join())) forged = request.rawTrailers;
      response.end('ok');
    });
  });
  world.bound.set(world.remote, service.bound);
  await fc.assert(
    fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 3 }), async (parts) => {
      const link = await world.near.links.open(world.local, world.remote, 'http');
      const closed = new Promise((resolve) => link.once('close', resolve));
      link.on('error', () => {}).resume();
      for (const part of parts) link.write(Buffer.from(part, 'latin1'));
      link.end();
      // Cut an incomplete request, like a caller that disconnects.
      setImmediate(() => setImmediate(() => link.destroy()));
      await closed;
      assert.equal(forged, null);
    }),
    { seed: 7, numRuns: 400 },
  );
  assert.ok(heard > 20, `only ${heard} requests were valid enough to reach the service`);
  assert.equal(await textOf(await world.call()), 'ok');
});
