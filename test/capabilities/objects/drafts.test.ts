/** Files that are received while their sender hashes them, and ranges that are verified when they arrive. */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Draft } from '../../../src/capabilities/objects/drafts.ts';
import { offeredKey } from '../../../src/capabilities/objects/object-getter.ts';
import { MAX_READS_PER_CALLER } from '../../../src/capabilities/objects/reader-limits.ts';
import { offeredResource } from '../../../src/capabilities/objects/remote-objects.ts';
import { MAX_RANGE_ATTEMPTS, RANGE_BYTES } from '../../../src/foundation/domain/objects.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { PrefixHash } from '../../../src/foundation/prefix-hashes.ts';
import { eventually } from '../../support/eventually.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { type ObjectNode, ObjectWorld, sha256, someBytes } from '../../support/object-world.ts';

const OFFER = '0123456789abcdef';
const BYTES = someBytes(2 * RANGE_BYTES + 1_000_000);
const SIZE = BYTES.length;
const { signal } = new AbortController();

function receive(near: ObjectNode, holder: Aid, more: object = {}) {
  const request = { local: near.aid, holder, id: OFFER, size: SIZE, objectId: null, dest: 'film.mp4', signal };
  return near.getter.getOffered({ ...request, ...more });
}

/** A source whose bytes arrive when the test sends them. */
function client() {
  const ready = { to: 0, more: Promise.withResolvers<void>(), error: null as Error | null };
  const wake = (): void => {
    ready.more.resolve();
    ready.more = Promise.withResolvers();
  };
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < SIZE; ) {
      if (ready.error !== null) throw ready.error;
      if (ready.to <= at) await ready.more.promise;
      else {
        yield BYTES.subarray(at, Math.min(ready.to, at + 500_000));
        at = Math.min(ready.to, at + 500_000);
      }
    }
  }
  return {
    source: source(),
    send: (to: number): void => {
      ready.to = to;
      wake();
    },
    fail: (error: Error): void => {
      ready.error = error;
      wake();
    },
  };
}

test('a file is received while its client still sends it to the daemon', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  far.offered.begin(far.aid, OFFER, SIZE);
  const receiving = receive(near, far.aid);
  const { source, send } = client();
  const storing = far.offered.store(far.aid, OFFER, source, 'film.mp4');
  send(RANGE_BYTES + 2_000_000);
  const key = offeredKey(near.aid, OFFER);
  await eventually('the first range has arrived', () => (near.getter.progress(key) ?? 0) >= RANGE_BYTES);
  assert.ok((far.offered.hashed(far.aid, OFFER) ?? 0) < SIZE);
  assert.ok(!existsSync(join(near.filesRoot, 'film.mp4')));
  send(SIZE);
  const { objectId, isNew } = await storing;
  assert.deepEqual([objectId, isNew], [sha256(BYTES), true]);
  far.offers.set(OFFER, objectId);
  far.offered.finish(far.aid, OFFER);
  const { path, objectId: got } = await receiving;
  assert.equal(got, objectId);
  assert.ok(readFileSync(path).equals(BYTES));
  assert.deepEqual(readdirSync(join(near.filesRoot, '.svcd', 'parts')), []);
  // Later readers get the stored object.
  const again = await receive(near, far.aid, { dest: 'again' });
  assert.equal(again.objectId, objectId);
});

test('readers that leave while the client sends nothing do not count as readers', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  far.offered.begin(far.aid, OFFER, SIZE);
  const resource = offeredResource(OFFER, 'file');
  for (let i = 0; i < MAX_READS_PER_CALLER + 2; i++) {
    const stop = new AbortController();
    let requests = 0;
    const request = new Promise<void>((resolve) => {
      // The link opens, and then the request is served.
      world.access = () => void (++requests >= (i === 0 ? 2 : 1) && resolve());
    });
    const reading = near.remote.read({
      local: near.aid,
      holder: far.aid,
      resource,
      method: 'GET',
      headers: {},
      signal: stop.signal,
    });
    await request;
    await settle();
    stop.abort();
    await assert.rejects(reading, withCode('cancelled'));
    await settle();
  }
  const { source, send } = client();
  const storing = far.offered.store(far.aid, OFFER, source, 'film.mp4');
  send(SIZE);
  const { path } = await receive(near, far.aid);
  await storing;
  assert.ok(readFileSync(path).equals(BYTES));
});

test('a file that is opened for a reader that leaves is closed', async () => {
  const draft = new Draft(SIZE);
  const hash = new PrefixHash();
  hash.update(BYTES.subarray(0, 4));
  const opening = Promise.withResolvers<FileHandle>();
  draft.grow(4, hash, () => opening.promise);
  const { handle } = draft.open('file', OFFER, 'film.mp4');
  const reading = handle.read(Buffer.alloc(4), 0, 4, 0);
  await settle();
  const leaving = handle[Symbol.asyncDispose]();
  const file = await open(import.meta.filename);
  opening.resolve(file);
  await Promise.allSettled([reading, leaving]);
  assert.equal(file.fd, -1);
});

test('a file below files_root is received while it is hashed, and is known afterwards', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  writeFileSync(join(far.filesRoot, 'film.mp4'), BYTES);
  assert.deepEqual(await far.offered.find(far.aid, 'film.mp4'), { size: SIZE, name: 'film.mp4', objectId: null });
  far.offered.begin(far.aid, OFFER, SIZE);
  const receiving = receive(near, far.aid);
  const { objectId } = await far.offered.register(far.aid, OFFER, 'film.mp4', 'film.mp4');
  const { path } = await receiving;
  assert.equal(objectId, sha256(BYTES));
  assert.ok(readFileSync(path).equals(BYTES));
});

test('a file that grows while it is hashed fails with this cause, and is not received', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  const file = join(far.filesRoot, 'film.mp4');
  writeFileSync(file, BYTES);
  far.offered.begin(far.aid, OFFER, SIZE);
  appendFileSync(file, 'more');
  const failed = assert.rejects(receive(near, far.aid));
  await assert.rejects(far.offered.register(far.aid, OFFER, 'film.mp4', 'film.mp4'), {
    code: 'wrong_state',
    message: /changed while it was read/,
  });
  far.offered.cancel(far.aid, OFFER, new SvcError('wrong_state'));
  await failed;
  assert.ok(!existsSync(join(near.filesRoot, 'film.mp4')));
});

test('bytes of another size than offered are not stored', async (t) => {
  const world = new ObjectWorld(t);
  const far = await world.node();
  for (const bytes of [BYTES.subarray(1), Buffer.concat([BYTES, BYTES.subarray(0, 1)])]) {
    far.offered.begin(far.aid, OFFER, SIZE);
    const source = (async function* () {
      yield bytes;
    })();
    await assert.rejects(far.offered.store(far.aid, OFFER, source, 'x'), withCode('wrong_state'));
  }
  assert.deepEqual(far.repository.list(far.aid, 10), []);
  assert.deepEqual(readdirSync(join(far.filesRoot, '.svcd', 'incoming')), []);
});

/** A sender whose nth response with bytes, counted from 0, is changed. */
async function sender(world: ObjectWorld, t: TestContext, change: (bytes: Buffer, turn: number) => Buffer) {
  const node = await world.links.node();
  const asked: string[] = [];
  const hash = new PrefixHash();
  hash.update(BYTES);
  const serve: RequestListener = (request, response) => {
    const isFile = request.url === `/offers/${OFFER}`;
    const whole = isFile ? change(Buffer.from(BYTES), asked.length) : hash.list();
    if (isFile) asked.push(request.headers.range ?? 'whole');
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const range = { 'content-range': `bytes ${start}-${whole.length - 1}/${whole.length}` };
    const headers = { etag: isFile ? `"${OFFER}"` : `"${OFFER}-hashes"`, 'content-length': whole.length - start };
    response.writeHead(start > 0 ? 206 : 200, { ...headers, ...(start > 0 ? range : {}) }).end(whole.subarray(start));
  };
  const server = createServer(serve);
  node.links.accept('object', (link) => {
    t.after(() => link.destroy());
    server.emit('connection', link);
  });
  return { aid: node.host().aid, asked };
}

function flipped(bytes: Buffer, at: number): Buffer {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}

test('a wrong range is detected when it arrives, and only it is requested again', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const far = await sender(world, t, (bytes, turn) => (turn === 0 ? flipped(bytes, RANGE_BYTES + 7) : bytes));
  const { path, objectId } = await receive(near, far.aid);
  assert.deepEqual(far.asked, ['whole', `bytes=${RANGE_BYTES}-`]);
  assert.ok(readFileSync(path).equals(BYTES));
  assert.equal(objectId, sha256(BYTES));
});

test('a range that stays wrong ends the download before the rest arrives, and the right part is kept', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const far = await sender(world, t, (bytes) => flipped(bytes, RANGE_BYTES + 7));
  await assert.rejects(receive(near, far.aid), withCode('protocol_error'));
  assert.equal(far.asked.length, MAX_RANGE_ATTEMPTS);
  const part = join(near.filesRoot, '.svcd', 'parts', offeredKey(near.aid, OFFER));
  assert.equal(statSync(part).size, RANGE_BYTES);
  assert.ok(!existsSync(join(near.filesRoot, 'film.mp4')));
  // A damaged part is detected too.
  writeFileSync(part, flipped(Buffer.from(BYTES.subarray(0, RANGE_BYTES)), 3));
  const good = await sender(world, t, (bytes) => bytes);
  const { path } = await receive(near, good.aid);
  assert.ok(readFileSync(path).equals(BYTES));
});

test('a file with another hash than the sender named before is refused', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const far = await sender(world, t, (bytes) => bytes);
  await assert.rejects(receive(near, far.aid, { objectId: 'a1'.repeat(32) }), withCode('protocol_error'));
});
