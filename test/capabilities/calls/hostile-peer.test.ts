import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { Body } from '../../../src/capabilities/calls/exchange.ts';
import { HttpCaller, MAX_EVENT_STREAMS_PER_TARGET } from '../../../src/capabilities/calls/http-caller.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { textOf } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { LinkWorld } from '../../support/link-world.ts';

/** A caller, and a called node that runs `behave` on each stream. */
async function hostile(t: TestContext, behave: (link: LinkStream, n: number) => void) {
  const world = new LinkWorld(systemClock);
  const near = await world.node();
  const far = await world.node();
  const [local, remote] = [near.host().aid, far.host().aid];
  let streams = 0;
  far.links.accept('http', (link) => {
    link.on('error', () => {});
    behave(link, ++streams);
  });
  const caller = new HttpCaller(near.links, systemClock);
  t.after(async () => {
    caller.stop();
    await world[Symbol.asyncDispose]();
  });
  const call = (method = 'GET', signal?: AbortSignal, body: Body = null) =>
    caller.request(local, remote, {
      method,
      path: '/',
      headers: [],
      body,
      ...(signal === undefined ? {} : { signal }),
    });
  return { call, streams: () => streams };
}

const answering = (text: string) => (link: LinkStream) => void link.once('data', () => link.write(text, 'latin1'));

const BROKEN: Readonly<Record<string, string>> = {
  nonsense: 'SSH-2.0-OpenSSH_9.6\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  'both lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a line break in a value': 'HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n',
  'a head without end': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(40_000)}`,
  'too many headers': `HTTP/1.1 200 OK\r\n${'X: 1\r\n'.repeat(200)}\r\n`,
  'too many interim responses': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50),
  'an unrequested switch': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
  'the status of a switch without one': 'HTTP/1.1 101 X\r\nContent-Length: 0\r\n\r\n',
  'no status': 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n',
  'an unknown error': 'HTTP/1.1 500 X\r\nSvc-Error: store_corrupt\r\nContent-Length: 0\r\n\r\n',
  'a local-only error': 'HTTP/1.1 500 X\r\nSvc-Error: unauthorized\r\nContent-Length: 0\r\n\r\n',
};

for (const [name, bytes] of Object.entries(BROKEN)) {
  test(`an invalid response of a daemon is a protocol error: ${name}`, async (t) => {
    const { call, streams } = await hostile(t, answering(bytes));
    await assert.rejects(call(), { code: 'protocol_error' });
    assert.equal(streams(), 1);
  });
}

test('an error of the called daemon gets our message and a valid Retry-After', async (t) => {
  const answer = (retry: string) =>
    `HTTP/1.1 429 X\r\nSvc-Error: rate_limited\r\nRetry-After: ${retry}\r\nContent-Length: 4\r\n\r\nevil`;
  const retries = ['7', '0', '-1', '1e9', 'soon', '2.5'];
  const { call } = await hostile(t, (link, n) => answering(answer(retries[n - 1] ?? ''))(link));
  for (const expected of [7, undefined, undefined, undefined, undefined, 3]) {
    await assert.rejects(call(), (error: Error & { details?: { retry_after_s?: number } }) => {
      assert.match(error.message, /^Too many requests/);
      assert.equal(error.details?.retry_after_s, expected);
      return true;
    });
  }
});

test('an invalid status text of a remote node is removed', async (t) => {
  const { call } = await hostile(t, answering('HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nhi'));
  const answer = await call();
  assert.deepEqual([answer.status, answer.statusText, await textOf(answer)], [200, '', 'hi']);
});

/**
 * Responds to the first request of each stream and resets the stream at the second. Streams selected by `fresh` always
 * respond.
 */
function dyingStreams(fresh: (n: number) => boolean) {
  const asked: string[] = [];
  const behave = (link: LinkStream, n: number): void => {
    let requests = 0;
    link.on('data', (data: Buffer) => {
      const [method = ''] = data.toString().split(' ', 1);
      asked.push(`${method} ${n}`);
      if (++requests > 1 && !fresh(n)) link.destroy();
      else link.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  };
  return { asked, behave };
}

test('an idempotent call on a dead stream is repeated once, on a new stream', async (t) => {
  const { asked, behave } = dyingStreams((n) => n > 2);
  const { call, streams } = await hostile(t, behave);
  await Promise.all([call(), call()].map(async (answer) => textOf(await answer)));
  assert.equal(streams(), 2);
  asked.length = 0;
  assert.equal(await textOf(await call('PUT', undefined, Buffer.from('x'))), 'ok');
  assert.equal(asked.length, 2);
  assert.equal(asked[1], 'PUT 3');
});

test('a POST and a call with a streamed body are never repeated', async (t) => {
  for (const [method, body] of [
    ['POST', Buffer.from('pay')],
    ['POST', null],
    ['PUT', Readable.from(['once'])],
  ] as const) {
    const { asked, behave } = dyingStreams(() => false);
    const { call } = await hostile(t, behave);
    await textOf(await call());
    await assert.rejects(call(method, undefined, body), { code: 'connect_failed' });
    assert.deepEqual(asked, ['GET 1', `${method} 1`]);
  }
});

test('a stream that ends or is reset before a response is a lost connection', async (t) => {
  const { call } = await hostile(t, (link, n) => {
    link.once('data', () => (n === 1 ? link.end() : link.destroy()));
  });
  await assert.rejects(call(), { code: 'connect_failed' });
  await assert.rejects(call(), { code: 'connect_failed' });
});

test('unrequested bytes on an idle stream are never used as the next response', async (t) => {
  const spoilt = Promise.withResolvers<void>();
  const { call, streams } = await hostile(t, (link, n) => {
    link.on('data', () => {
      link.write(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nreal${n}`);
      if (n > 1) return;
      setImmediate(() => link.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse'));
      link.once('close', () => spoilt.resolve());
    });
  });
  assert.equal(await textOf(await call()), 'real1');
  await spoilt.promise;
  assert.equal(await textOf(await call()), 'real2');
  assert.equal(streams(), 2);
});

test('a stream that the remote side ends while idle is not reused, even for a POST', async (t) => {
  const dropped = Promise.withResolvers<void>();
  const { call, streams } = await hostile(t, (link) => {
    link.once('close', () => dropped.resolve());
    link.on('data', () => {
      link.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      setImmediate(() => link.end());
    });
  });
  assert.equal(await textOf(await call()), 'ok');
  await dropped.promise;
  assert.equal(await textOf(await call('POST')), 'ok');
  assert.equal(streams(), 2);
});

test('an endless response is reset when its reader stops', async (t) => {
  const gone = Promise.withResolvers<void>();
  const { call } = await hostile(t, (link) => {
    link.once('close', () => gone.resolve());
    link.once('data', () => {
      link.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const more = (): void => {
        while (!link.destroyed && link.write(`4000\r\n${'x'.repeat(0x4000)}\r\n`));
        link.once('drain', more);
      };
      more();
    });
  });
  const { body } = await call();
  await once(body, 'data');
  body.destroy();
  await gone.promise;
});

test('if a daemon never responds, all its calls time out, including queued calls', async (t) => {
  let closed = 0;
  let asked = 0;
  const { call } = await hostile(t, (link) => {
    link.once('data', () => asked++).once('close', () => closed++);
  });
  const abort = new AbortController();
  const outcomes = Promise.allSettled(Array.from({ length: 100 }, () => call('GET', abort.signal)));
  await eventually('all streams are in use', () => asked === 64);
  abort.abort();
  for (const outcome of await outcomes) assert.ok(outcome.status === 'rejected' && outcome.reason.code === 'cancelled');
  await eventually('all streams are closed', () => closed === 64);
});

test('a caller limits the event streams that a daemon can start', async (t) => {
  const { call } = await hostile(t, answering('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n'));
  const streams = await Promise.all(Array.from({ length: MAX_EVENT_STREAMS_PER_TARGET }, () => call()));
  const refused = { code: 'rate_limited', details: { limit: MAX_EVENT_STREAMS_PER_TARGET } };
  await assert.rejects(call(), refused);
  streams[0]?.body.destroy();
  await eventually('one stream is closed', () => streams[0]?.body.closed === true);
  (await call()).body.destroy();
});
