/** Links over the real engine and a path that loses packets: they continue on lanes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { type LossyNodes, lossyNodes } from '../../support/lossy-nodes.ts';
import { someBytes } from '../../support/object-world.ts';

const MIB = 1024 * 1024;
/** What a link may transfer before it has a lane. */
const BEFORE_LANE_BYTES = 2 * MIB;

/** Opens bulk links and returns both their ends. */
function links({ near, far }: LossyNodes): () => Promise<readonly [LinkStream, LinkStream]> {
  const accepted: ((link: LinkStream) => void)[] = [];
  far.links.accept('object', (link) => accepted.shift()?.(link));
  return async () => {
    const called = new Promise<LinkStream>((resolve) => accepted.push(resolve));
    const link = await near.links.open(near.aid, far.aid, 'object', { bulk: true });
    return [link, await called];
  };
}

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reads a link to its end. */
async function readAll(link: LinkStream): Promise<{ readonly bytes: number; readonly hash: string }> {
  const sum = createHash('sha256');
  let bytes = 0;
  link.on('data', (chunk: Buffer) => {
    sum.update(chunk);
    bytes += chunk.length;
  });
  await once(link, 'end');
  return { bytes, hash: sum.digest('hex') };
}

async function closed(...links: readonly LinkStream[]): Promise<void> {
  await Promise.all(links.map(async (link) => (link.closed ? undefined : await once(link, 'close'))));
}

for (const [name, sends] of [
  ['the caller', 'near'],
  ['the called agent', 'far'],
] as const)
  test(`if packets are lost, what ${name} sends continues on a lane in the middle of the link`, async (t) => {
    const nodes = await lossyNodes(t, { loss: 0.02 });
    const { lanes } = nodes;
    const link = links(nodes);
    const [near, far] = await link();
    const [from, to] = sends === 'near' ? [near, far] : [far, near];
    const bytes = someBytes(12 * MIB);
    const read = readAll(to);
    from.end(bytes);
    assert.deepEqual(await read, { bytes: bytes.length, hash: hash(bytes) });
    const received = lanes[sends === 'near' ? 'far' : 'near'].lanes.stats().received;
    assert(received > bytes.length - BEFORE_LANE_BYTES, `only ${received} bytes used a lane`);
    // The other half continues too.
    const back = readAll(from);
    to.end('thanks');
    assert.equal((await back).hash, hash(Buffer.from('thanks')));
    await closed(near, far);
  });

test('at 20 % loss, both directions still move', async (t) => {
  const link = links(await lossyNodes(t, { loss: 0.2 }));
  const [near, far] = await link();
  const bytes = someBytes(3 * MIB);
  const reads = Promise.all([readAll(near), readAll(far)]);
  near.end(bytes);
  far.end(bytes);
  for (const read of await reads) assert.deepEqual(read, { bytes: bytes.length, hash: hash(bytes) });
  await closed(near, far);
});

test('the narrowest path that carries QUIC carries lanes too', async (t) => {
  const nodes = await lossyNodes(t, { loss: 0.02, maxBytes: 1200 });
  const [near, far] = await links(nodes)();
  const bytes = someBytes(6 * MIB);
  const read = readAll(far);
  near.end(bytes);
  assert.deepEqual(await read, { bytes: bytes.length, hash: hash(bytes) });
  const { received } = nodes.lanes.far.lanes.stats();
  assert(received > bytes.length - BEFORE_LANE_BYTES, `only ${received} bytes used a lane`);
});

test('the next link to the same node uses a lane almost from its start', async (t) => {
  const nodes = await lossyNodes(t, { loss: 0.02 });
  const { lanes } = nodes;
  const link = links(nodes);
  const [first, firstFar] = await link();
  const done = readAll(firstFar);
  first.end(someBytes(4 * MIB));
  await done;
  const before = lanes.far.lanes.stats().received;
  const [second, secondFar] = await link();
  const read = readAll(secondFar);
  second.end(someBytes(2 * MIB));
  await read;
  const received = lanes.far.lanes.stats().received - before;
  assert(received > 2 * MIB - 512 * 1024, `only ${received} bytes used a lane`);
});

for (const [name, options] of [
  ['no room for a lane at the caller', { near: NO_LANES }],
  ['no room for a lane at the called node', { far: NO_LANES }],
] as const)
  test(`${name}: the link stays on its connection`, async (t) => {
    const nodes = await lossyNodes(t, { loss: 0.02, ...options });
    const { lanes } = nodes;
    const link = links(nodes);
    const [near, far] = await link();
    const bytes = someBytes(MIB);
    const read = readAll(far);
    near.end(bytes);
    assert.equal((await read).hash, hash(bytes));
    assert.equal(lanes.far.lanes.stats().received, 0);
    const back = readAll(near);
    far.end('thanks');
    assert.equal((await back).bytes, 6);
    await closed(near, far);
  });

test('a reader that pauses slows the writer down on a lane too', async (t) => {
  const nodes = await lossyNodes(t, { loss: 0.02 });
  const { lanes } = nodes;
  const link = links(nodes);
  const [near, far] = await link();
  const bytes = someBytes(16 * MIB);
  let read = 0;
  const sum = createHash('sha256');
  const paused = Promise.withResolvers<void>();
  far.on('data', (chunk: Buffer) => {
    read += chunk.length;
    sum.update(chunk);
    if (read < 4 * MIB || read - chunk.length >= 4 * MIB) return;
    far.pause();
    paused.resolve();
  });
  near.end(bytes);
  await paused.promise;
  // The writer stops when as much is unread as a lane may send ahead. Then the number of bytes no longer changes.
  let before = -1;
  const watch = Promise.withResolvers<void>();
  const look = setInterval(() => {
    const now = lanes.far.lanes.stats().received;
    if (now === before) watch.resolve();
    before = now;
  }, 500);
  await watch.promise;
  clearInterval(look);
  assert(lanes.far.lanes.unreadBytes <= 3 * MIB, `${lanes.far.lanes.unreadBytes} bytes are unread`);
  far.resume();
  await once(far, 'end');
  assert.equal(sum.digest('hex'), hash(bytes));
});

test('a link on a lane is reset, and lost with its lane', async (t) => {
  const nodes = await lossyNodes(t, { loss: 0.02 });
  const { lanes } = nodes;
  const link = links(nodes);
  const opened = async (): Promise<readonly [LinkStream, LinkStream]> => {
    const [near, far] = await link();
    const enough = lanes.far.lanes.stats().received + MIB;
    far.resume();
    while (lanes.far.lanes.stats().received < enough)
      if (!near.write(Buffer.alloc(256 * 1024))) await once(near, 'drain');
    return [near, far];
  };
  const [first, firstFar] = await opened();
  const broken = once(firstFar, 'error');
  first.destroy();
  assert.equal((await broken)[0].code, 'stream_reset');
  const [second, secondFar] = await opened();
  const lost = Promise.all([once(second, 'error'), once(secondFar, 'error')]);
  lanes.near.opened.at(-1)?.abort();
  for (const [error] of await lost) assert(['connection_lost', 'stream_reset'].includes(error.code));
});
