import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import {
  ANSWER_TIMEOUT_MS,
  MAX_NODE_MESSAGE_BYTES,
  MAX_REQUESTS_PER_NODE,
  MAX_REQUESTS_PER_SOURCE,
} from '../../../src/network/links/node-requests.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

function placeOf(node: LinkNode): { nodeKey: Uint8Array; address: LinkNode['endpoint']['address'] } {
  return { nodeKey: node.key.publicKey, address: node.endpoint.address };
}

test('a node answers another node and knows its proven key', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const asked: Uint8Array[] = [];
  b.requests.onRequest('record', async (body, from) => {
    asked.push(from.nodeKey);
    return Buffer.concat([Buffer.from('re: '), body]);
  });
  assert.equal(
    Buffer.from(await a.requests.request('record', placeOf(b), Buffer.from('hello'))).toString(),
    're: hello',
  );
  assert.equal(Buffer.from(await a.requests.request('record', placeOf(b), new Uint8Array(0))).toString(), 're: ');
  assert.deepEqual(asked, [a.key.publicKey, a.key.publicKey]);
  assert.equal(a.pool.stats().connections, 1);
});

test('messages up to the maximum size are sent, and larger ones are rejected before sending', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  b.requests.onRequest('record', async (body) => body);
  const largest = Buffer.alloc(MAX_NODE_MESSAGE_BYTES.record, 7);
  assert.deepEqual(Buffer.from(await a.requests.request('record', placeOf(b), largest)), largest);
  await assert.rejects(
    a.requests.request('record', placeOf(b), Buffer.alloc(MAX_NODE_MESSAGE_BYTES.record + 1)),
    withCode('too_large'),
  );
});

test('an SvcError of the handler arrives as its code, any other error as a protocol error', async () => {
  await using world = new LinkWorld();
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  let fault: Error = new SvcError('rate_limited');
  b.requests.onRequest('record', async () => {
    throw fault;
  });
  await assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x')), withCode('rate_limited'));
  fault = new TypeError('a fault');
  await assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x')), withCode('protocol_error'));
  await assert.rejects(a.requests.request('record', placeOf(c), Buffer.from('x')), withCode('protocol_error'));
  assert.throws(() => b.requests.onRequest('record', async () => new Uint8Array(0)));
});

test('a response that is too large is not sent', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  b.requests.onRequest('record', async () => Buffer.alloc(MAX_NODE_MESSAGE_BYTES.record + 1));
  await assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x')), withCode('too_large'));
});

test('a node has a limited number of requests in progress', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const go = Promise.withResolvers<void>();
  b.requests.onRequest('record', async (body) => {
    await go.promise;
    return body;
  });
  const running = Array.from({ length: MAX_REQUESTS_PER_NODE }, () =>
    a.requests.request('record', placeOf(b), Buffer.from('x')),
  );
  await settle();
  await assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x')), withCode('rate_limited'));
  go.resolve();
  await Promise.all(running);
  await a.requests.request('record', placeOf(b), Buffer.from('x'));
});

test('all nodes at one address share a limit of requests in progress', async () => {
  await using world = new LinkWorld();
  const b = await world.node();
  const go = Promise.withResolvers<void>();
  b.requests.onRequest('record', async (body) => {
    if (body.length > 0) await go.promise;
    return body;
  });
  const running: Promise<Uint8Array>[] = [];
  for (let i = 0; i < MAX_REQUESTS_PER_SOURCE; i += MAX_REQUESTS_PER_NODE) {
    const a = await world.node({ host: '192.0.2.1' });
    for (let n = 0; n < MAX_REQUESTS_PER_NODE; n++)
      running.push(a.requests.request('record', placeOf(b), Buffer.from('x')));
  }
  await settle();
  const [sameAddress, other] = [await world.node({ host: '192.0.2.1' }), await world.node({ host: '192.0.2.2' })];
  await assert.rejects(sameAddress.requests.request('record', placeOf(b), new Uint8Array(0)), withCode('rate_limited'));
  await other.requests.request('record', placeOf(b), new Uint8Array(0));
  go.resolve();
  await Promise.all(running);
  await sameAddress.requests.request('record', placeOf(b), new Uint8Array(0));
});

test('a stall of this process does not count as silence of the other node', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const answer = Promise.withResolvers<Uint8Array>();
  b.requests.onRequest('record', () => answer.promise);
  const asked = a.requests.request('record', placeOf(b), Buffer.from('x'), { timeoutMs: 500 });
  await settle();
  clock.advance(499);
  clock.jump(60_000);
  clock.advance(0);
  await settle();
  answer.resolve(Buffer.from('here'));
  assert.equal(Buffer.from(await asked).toString(), 'here');
});

test('a request times out on both sides', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  b.requests.onRequest('record', () => new Promise(() => {}));
  const late = assert.rejects(
    a.requests.request('record', placeOf(b), Buffer.from('x'), { timeoutMs: 500 }),
    withCode('timeout'),
  );
  await settle();
  clock.advance(500);
  await late;
  const stop = new AbortController();
  const options = { timeoutMs: 10 * ANSWER_TIMEOUT_MS, signal: stop.signal };
  const unanswered = assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x'), options), SvcError);
  await settle();
  clock.advance(ANSWER_TIMEOUT_MS);
  await unanswered;
  const cancelled = assert.rejects(
    a.requests.request('record', placeOf(b), Buffer.from('x'), options),
    withCode('cancelled'),
  );
  await settle();
  const pooled = a.pool.current(b.key.publicKey);
  stop.abort();
  await cancelled;
  assert.equal(a.pool.current(b.key.publicKey), pooled, 'an aborted request is no failure of the connection');
  await settle();
  assert.equal(a.pool.stats().streams, 0);
});

test('after a request times out, the next one does not wait on the same connection', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  let mute = true;
  b.requests.onRequest('record', (body) => (mute ? new Promise(() => {}) : Promise.resolve(body)));
  const late = assert.rejects(
    a.requests.request('record', placeOf(b), Buffer.from('x'), { timeoutMs: 500 }),
    withCode('timeout'),
  );
  await settle();
  const silent = a.pool.current(b.key.publicKey);
  clock.advance(500);
  await late;
  mute = false;
  await a.requests.request('record', placeOf(b), Buffer.from('x'));
  assert.notEqual(a.pool.current(b.key.publicKey), silent);
});

test('a request uses a new connection if the pooled one is broken', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  b.requests.onRequest('record', async (body) => body);
  await a.requests.request('record', placeOf(b), Buffer.from('x'));
  b.pool.current(a.key.publicKey)?.connection.close();
  await settle();
  await a.requests.request('record', placeOf(b), Buffer.from('x'));
  const nowhere = { ...placeOf(b), nodeKey: a.key.publicKey };
  await assert.rejects(a.requests.request('record', nowhere, Buffer.from('x')), withCode('connect_failed'));
});

test('each kind of request has its own handler, limit and maximum size', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const answer = Promise.withResolvers<Uint8Array>();
  b.requests.onRequest('record', () => answer.promise);
  await assert.rejects(a.requests.request('signal', placeOf(b), Buffer.from('x')), withCode('protocol_error'));
  b.requests.onRequest('signal', async (body) => Buffer.concat([Buffer.from('signal '), body]));
  const records = Array.from({ length: MAX_REQUESTS_PER_NODE }, () =>
    a.requests.request('record', placeOf(b), Buffer.from('x')),
  );
  await settle();
  await assert.rejects(a.requests.request('record', placeOf(b), Buffer.from('x')), withCode('rate_limited'));
  const response = await a.requests.request('signal', placeOf(b), Buffer.from('x'));
  assert.equal(Buffer.from(response).toString(), 'signal x');
  const tooLong = Buffer.alloc(MAX_NODE_MESSAGE_BYTES.signal + 1);
  await assert.rejects(a.requests.request('signal', placeOf(b), tooLong), withCode('too_large'));
  answer.resolve(Buffer.from('record'));
  for (const one of await Promise.all(records)) assert.equal(Buffer.from(one).toString(), 'record');
});
