import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { MAX_READS_PER_CALLER } from '../../../src/capabilities/objects/reader-limits.ts';
import { PROGRESS_MS } from '../../../src/capabilities/objects/transfer.ts';
import { TRANSFER_SILENT_MS } from '../../../src/foundation/domain/objects.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { NEXT_REQUEST_MS } from '../../../src/network/links/http-server.ts';
import { headerOf, textOf } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { readAll, settle, withCode } from '../../support/link-world.ts';
import { ObjectWorld, sha256, someBytes } from '../../support/object-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const TEXT = 'the quick brown fox';
const ID = sha256(TEXT);

/** Sends raw requests from one node to the objects of another. */
async function pair(t: import('node:test').TestContext, clock?: TestClock) {
  const world = new ObjectWorld(t, ...(clock === undefined ? [] : [clock]));
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: Buffer.from(TEXT) }, 'füchse "1".txt');
  const caller = new HttpCaller(near.node.links, world.links.clock, { purpose: 'object' });
  t.after(() => caller.stop());
  const ask = (headers: Record<string, string> = {}, path = `/cas/${ID}`, method = 'GET') =>
    caller.request(near.aid, far.aid, { method, path, headers: Object.entries(headers).flat(), body: null });
  return { world, near, far, caller, ask };
}

test('an object has its hash as its tag, and browsers save it', async (t) => {
  const { ask } = await pair(t);
  const answer = await ask();
  assert.equal(answer.status, 200);
  const names = ['etag', 'accept-ranges', 'content-type', 'content-length', 'x-content-type-options'];
  assert.deepEqual(
    names.map((name) => headerOf(answer.headers, name)),
    [`"${ID}"`, 'bytes', 'application/octet-stream', String(TEXT.length), 'nosniff'],
  );
  const name = "attachment; filename*=UTF-8''f%C3%BCchse%20%221%22.txt";
  assert.equal(headerOf(answer.headers, 'content-disposition'), name);
  assert.match(headerOf(answer.headers, 'content-security-policy') ?? '', /^sandbox/);
  assert.equal(await textOf(answer), TEXT);
  const head = await ask({}, undefined, 'HEAD');
  assert.equal(headerOf(head.headers, 'content-length'), String(TEXT.length));
  assert.equal(await textOf(head), '');
});

test('ranges and conditions', async (t) => {
  const { ask } = await pair(t);
  const size = TEXT.length;
  const cases: [Record<string, string>, number, string, string | undefined][] = [
    [{ range: 'bytes=4-8' }, 206, 'quick', `bytes 4-8/${size}`],
    [{ range: 'bytes=-3' }, 206, 'fox', `bytes ${size - 3}-${size - 1}/${size}`],
    [{ range: `bytes=${size}-` }, 416, '', `bytes */${size}`],
    [{ range: 'bytes=0-1,3-4' }, 200, TEXT, undefined],
    [{ range: 'bytes=4-8', 'if-range': `"${ID}"` }, 206, 'quick', `bytes 4-8/${size}`],
    [{ range: 'bytes=4-8', 'if-range': '"other"' }, 200, TEXT, undefined],
    [{ 'if-none-match': `"other", W/"${ID}"` }, 304, '', undefined],
    [{ 'if-none-match': '"other"' }, 200, TEXT, undefined],
  ];
  for (const [headers, status, text, range] of cases) {
    const answer = await ask(headers);
    assert.equal(answer.status, status, JSON.stringify(headers));
    assert.equal(await textOf(answer), text, JSON.stringify(headers));
    assert.equal(headerOf(answer.headers, 'content-range'), range, JSON.stringify(headers));
  }
});

test('only requests for objects are served', async (t) => {
  const { ask, far } = await pair(t);
  for (const path of [
    '/',
    '/cas/',
    `/cas/${ID}/x`,
    `/cas/${ID.toUpperCase()}`,
    `/cas/${'0'.repeat(64)}`,
    `/cas/${ID}?x`,
  ])
    assert.equal((await ask({}, path)).status, 404, path);
  assert.equal((await ask({}, undefined, 'DELETE')).status, 405);
  const refused = await ask({}, '/', 'HEAD');
  assert.deepEqual(
    [headerOf(refused.headers, 'content-length'), headerOf(refused.headers, 'retry-after')],
    ['0', undefined],
  );
  writeFileSync(join(far.filesRoot, 'a'), 'version 1');
  const { objectId } = await far.objects.put(far.aid, { path: 'a' });
  writeFileSync(join(far.filesRoot, 'a'), 'version 2');
  assert.equal((await ask({}, `/cas/${objectId}`)).status, 410);
});

test('an object of one agent is not one of another on the same node', async (t) => {
  const { far, near, caller } = await pair(t);
  const neighbour = far.node.host().aid;
  const call = { method: 'GET', path: `/cas/${ID}`, headers: [], body: null };
  assert.equal((await caller.request(near.aid, neighbour, call)).status, 404);
});

test('access is checked for each request, and a change of it disconnects readers', async (t) => {
  const { world, far, ask } = await pair(t);
  await far.objects.put(far.aid, { bytes: someBytes(8_000_000) });
  const big = await ask({}, `/cas/${sha256(someBytes(8_000_000))}`);
  world.access = () => {
    throw new SvcError('access_denied');
  };
  await far.server.recheck(far.aid);
  await assert.rejects(readAll(big.body));
  await assert.rejects(ask(), withCode('access_denied'));
});

test('concurrent reads of one caller are limited; further reads get a retry time', async (t) => {
  const { far, ask } = await pair(t);
  const big = someBytes(8_000_000);
  const path = `/cas/${sha256(big)}`;
  await far.objects.put(far.aid, { bytes: big });
  const open = await Promise.all(Array.from({ length: MAX_READS_PER_CALLER }, () => ask({}, path)));
  await assert.rejects(ask(), (error: unknown) => {
    assert.ok(error instanceof SvcError && error.code === 'rate_limited');
    assert.equal(error.details?.['retry_after_s'], 2);
    return true;
  });
  for (const { body } of open) body.destroy();
  for (;;) {
    const answer = await ask().catch(() => null);
    if (answer?.status === 200) break;
    await settle(1);
  }
});

test('a link without requests is closed', async (t) => {
  const clock = new TestClock();
  const { near, far } = await pair(t, clock);
  const link = await near.node.links.open(near.aid, far.aid, 'object');
  link.on('error', () => {});
  link.resume();
  await settle();
  assert.ok(!link.destroyed);
  clock.advance(NEXT_REQUEST_MS);
  await settle();
  assert.ok(link.closed || link.readableEnded || link.destroyed);

  const asked = await near.node.links.open(near.aid, far.aid, 'object');
  asked.on('error', () => {});
  let text = '';
  asked.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  clock.advance(NEXT_REQUEST_MS - 1);
  asked.write(`GET /cas/${ID} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await eventually('the answer', () => text.endsWith(TEXT));
  clock.advance(NEXT_REQUEST_MS - 1);
  await settle();
  assert.ok(!asked.destroyed);
  clock.advance(1);
  await settle();
  assert.ok(asked.closed || asked.readableEnded || asked.destroyed);
});

test('one node can hold 128 object links, and another one is closed immediately', async (t) => {
  const { near, far } = await pair(t, new TestClock());
  const open = async () => {
    const link = await near.node.links.open(near.aid, far.aid, 'object');
    return link.on('error', () => {}).resume();
  };
  const links = [];
  for (let i = 0; i < 128; i++) links.push(await open());
  const another = await open();
  await eventually('it is closed', () => another.destroyed);
  assert.ok(links.every(({ destroyed }) => !destroyed));
});

test('a malformed HTTP request closes the link and has no other effect', async (t) => {
  const { near, far, ask } = await pair(t);
  for (const noise of ['\0\0\0\0\r\n\r\n', `GET /cas/${ID} HTTP/1.1\r\nHost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`]) {
    const link = await near.node.links.open(near.aid, far.aid, 'object');
    link.on('error', () => {});
    link.resume();
    link.write(noise);
    await new Promise((resolve) => link.once('close', resolve));
  }
  assert.equal((await ask()).status, 200);
});

test('a holder that sends too slowly is dropped', async (t) => {
  const clock = new TestClock();
  const { world, near } = await pair(t, clock);
  const slow = await world.links.node();
  const { aid } = slow.host();
  let asked = (): void => {};
  const begun = new Promise<void>((resolve) => {
    asked = resolve;
  });
  slow.links.accept('object', (link) => {
    link.on('error', () => {});
    link.once('data', () => {
      link.write(`HTTP/1.1 200 OK\r\netag: "${ID}"\r\ncontent-length: ${TEXT.length}\r\n\r\nt`);
      asked();
    });
  });
  const getting = near.getter.get({
    aid: near.aid,
    objectId: ID,
    hint: aid,
    register: false,
    force: false,
    signal: AbortSignal.any([]),
  });
  const failed = assert.rejects(getting, withCode('timeout'));
  await begun;
  await settle();
  const state = { isGiven: false };
  void failed.then(() => {
    state.isGiven = true;
  });
  clock.advance(PROGRESS_MS - 1);
  // While this process stalls, the holder gets no blame.
  clock.jump(60_000);
  clock.advance(0);
  await settle();
  assert.equal(state.isGiven, false);
  while (!state.isGiven) {
    clock.advance(TRANSFER_SILENT_MS);
    await settle();
  }
  await failed;
});
