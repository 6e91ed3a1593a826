/** A tunnel connection that outlives its links: cut anywhere, its bytes come once and in order, or both ends see a reset. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  ACK_DELAY_MS,
  type ConnectionSide,
  HELD_MS,
  MAX_ACKS_WHEN_FULL,
  SLOW_PATH_BYTES,
  TunnelConnection,
} from '../../../src/capabilities/tunnels/connection.ts';
import {
  FrameReader,
  framedData,
  lastFrame,
  lossyFrame,
  receivedFrame,
  writeData,
} from '../../../src/capabilities/tunnels/frames.ts';
import {
  KeptBytes,
  keptQuota,
  MAX_KEPT_ALL_BYTES,
  MAX_KEPT_BYTES,
  MAX_KEPT_PER_NODE_BYTES,
  MAX_KEPT_PER_SOURCE_BYTES,
  RESERVED_KEPT_BYTES,
} from '../../../src/capabilities/tunnels/kept-bytes.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { Quota, QuotaHolder } from '../../../src/foundation/quota.ts';
import { StreamError } from '../../../src/network/transport/stream.ts';
import { eventually } from '../../support/eventually.ts';
import { linkEnds } from '../../support/link-ends.ts';
import { readAll, settle } from '../../support/link-world.ts';
import { Random } from '../../support/random.ts';
import { endOf } from '../../support/tcp.ts';
import { TestClock } from '../../support/test-clock.ts';
import { TunnelPair, tcpPair, testSide } from '../../support/tunnel-pair.ts';

const MIB = 1024 * 1024;
const PEER: QuotaHolder = { node: 'peer', source: null, named: true };

function sample(length: number, seed = length): Buffer {
  const random = new Random(seed);
  return Buffer.from(Uint8Array.from({ length }, () => random.below(256)));
}

/** Sends in both directions, ends each separately, and checks the received bytes. Returns the number of pieces received over links. */
async function exchange(cutAt: readonly number[], size: number): Promise<{ arrivals: number; resumptions: number }> {
  await using pair = await TunnelPair.open(cutAt);
  const [up, down] = [sample(size, 1), sample(size, 2)];
  const [there, back] = [readAll(pair.service), readAll(pair.client)];
  pair.client.write(up.subarray(0, 10));
  pair.service.write(down.subarray(0, size / 2));
  pair.client.end(up.subarray(10));
  assert.deepEqual(await there, up, `up, cut at ${cutAt.join()}`);
  pair.service.end(down.subarray(size / 2));
  assert.deepEqual(await back, down, `down, cut at ${cutAt.join()}`);
  await eventually('both ends are over', () => pair.near.destroyed && pair.far.destroyed);
  assert.equal(pair.kept.used, 0);
  return { arrivals: pair.arrivals, resumptions: pair.resumptions };
}

test('a service that reads only after its whole response is sent, does not stall', async () => {
  await using pair = await TunnelPair.open();
  const [up, down] = [Buffer.alloc(24 * MIB, 1), Buffer.alloc(24 * MIB, 2)];
  const [written, back] = [Promise.withResolvers<void>(), readAll(pair.client)];
  // The client reads, so its acknowledgements must pass its own bytes, which the service does not read yet.
  pair.client.end(up);
  pair.service.pause();
  pair.service.write(down, () => written.resolve());
  await written.promise;
  const there = readAll(pair.service);
  pair.service.end();
  assert.ok(up.equals(await there) && down.equals(await back));
});

test('cut after any frame, all bytes arrive once and in order, and both directions end', async () => {
  const { arrivals } = await exchange([], 100_000);
  assert.ok(arrivals >= 6, `${arrivals} arrivals`);
  let resumed = 0;
  for (let cut = 1; cut <= arrivals; cut++) resumed += (await exchange([cut], 100_000)).resumptions;
  // Behind the last frames there is nothing to resume.
  assert.ok(resumed >= arrivals / 2, `${resumed} of ${arrivals}`);
});

test('cut again and again, also while it is being resumed', async () => {
  const random = new Random(20_261);
  for (let round = 0; round < 10; round++) {
    const cuts = Array.from({ length: 12 }, () => 1 + random.below(60));
    assert.ok((await exchange([...cuts, 2, 3, 4], 300_000)).resumptions > 0);
  }
});

test('a connection with a working link moves to another one, under load', async () => {
  await using pair = await TunnelPair.open();
  const up = sample(3_000_000);
  const there = readAll(pair.service);
  pair.client.end(up);
  for (let i = 0; i < 5; i++) {
    await settle(5);
    const [before] = pair.link;
    pair.resume();
    await eventually('the old link has closed', () => before.destroyed || pair.near.destroyed);
  }
  assert.deepEqual(await there, up);
});

test('a new link that is lost before the other side uses it does not end the old one, which the other side still uses', async () => {
  const side = { ...testSide(new TestClock()), lost: () => true };
  const [old] = linkEnds();
  const connection = new TunnelConnection(old, PEER, side);
  connection.resume();
  const [lost] = linkEnds();
  connection.attach(lost);
  lost.destroy(new StreamError('connection_lost'));
  await eventually('the loss is seen', () => !connection.isCarried);
  const [next, there] = linkEnds();
  connection.attach(next);
  await settle(5);
  assert.equal(old.destroyed, false);
  there.write(receivedFrame(0));
  await eventually('the old link has closed', () => old.destroyed);
  assert.equal(connection.destroyed, false);
  connection.destroy();
});

test('a new link does not bring bytes for a TCP connection that does not read', async () => {
  const side = { ...testSide(new TestClock()), lost: () => true };
  let [link, caller] = linkEnds();
  const connection = new TunnelConnection(link, PEER, side);
  const [service, end, server] = await tcpPair();
  service.pause();
  connection.join(end, {});
  for (let piece = 0; piece < 100 && !end.writableNeedDrain; piece++) {
    writeData(caller, Buffer.alloc(MIB));
    await settle(5);
  }
  const waiting = end.writableLength;
  for (let i = 0; i < 20; i++) {
    [link, caller] = linkEnds();
    connection.attach(link);
    caller.write(receivedFrame(0));
    writeData(caller, Buffer.alloc(MIB));
    await settle(5);
  }
  const later = end.writableLength;
  // The bytes on the last link follow when the TCP connection takes its bytes again.
  service.resume();
  await settle(50);
  const left = caller.writableLength;
  connection.destroy();
  service.destroy();
  await server[Symbol.asyncDispose]();
  assert.ok(waiting > 0 && later <= waiting, `${later} bytes wait, before ${waiting}`);
  assert.equal(left, 0);
});

test('a full connection reads acknowledgements from a new link, also if the service reads only after its response', async () => {
  const side = { ...testSide(new TestClock()), lost: () => true };
  let [link, caller] = linkEnds();
  caller.resume();
  const connection = new TunnelConnection(link, PEER, side);
  const [service, end, server] = await tcpPair();
  service.pause();
  let sent = 0;
  connection.join(end, {
    sent: (bytes) => {
      sent += bytes;
    },
  });
  service.write(Buffer.alloc(2 * MAX_KEPT_BYTES));
  await eventually('it is full', () => sent >= MAX_KEPT_BYTES - MIB && end.isPaused());
  for (let piece = 0; piece < 100 && !end.writableNeedDrain; piece++) {
    writeData(caller, Buffer.alloc(MIB));
    await settle(5);
  }
  assert.ok(end.writableNeedDrain);
  [link, caller] = linkEnds();
  caller.resume();
  connection.attach(link);
  caller.write(receivedFrame(0));
  await settle(20);
  const before = sent;
  caller.write(receivedFrame(before));
  await settle(50);
  const after = sent;
  connection.destroy();
  service.destroy();
  await server[Symbol.asyncDispose]();
  assert.ok(after > before, `${before} bytes`);
});

test('an echo service that gets more than its caller has window for does not stall', async () => {
  await using pair = await TunnelPair.open([], systemClock, true);
  pair.service.pipe(pair.service);
  const total = 64 * MIB;
  pair.client.end(Buffer.alloc(total));
  let received = 0;
  pair.client.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  await eventually('everything is back', () => received === total);
});

test('the status byte goes with the first bytes of a request, or a moment later', async () => {
  for (const [words, output] of [
    ['yes', '\0yes'],
    ['', '\0'],
  ] as const) {
    const clock = new TestClock();
    const [near, far] = linkEnds();
    near.write(framedData(Buffer.from('are you there?')));
    await eventually('the request has arrived', () => far.readableLength > 0);
    const connection = new TunnelConnection(far, PEER, testSide(clock));
    connection.write(Uint8Array.of(0));
    const [service, end, server] = await tcpPair();
    connection.join(end, {});
    await once(service, 'data');
    assert.equal(near.readableLength, 0);
    if (words === '') clock.advance(HELD_MS);
    else service.write(words);
    const [chunk]: unknown[] = await once(near, 'data');
    assert.deepEqual(chunk, framedData(Buffer.from(output)));
    connection.destroy();
    service.destroy();
    assert.equal(clock.timers, 0);
    await server[Symbol.asyncDispose]();
  }
});

test('later bytes follow a waiting status byte', async () => {
  const clock = new TestClock();
  const [near, far] = linkEnds();
  near.write(framedData(Buffer.from('are you there?')));
  await eventually('the request has arrived', () => far.readableLength > 0);
  const connection = new TunnelConnection(far, PEER, testSide(clock));
  connection.write(Uint8Array.of(1));
  connection.write(Uint8Array.of(2));
  const [chunk]: unknown[] = await once(near, 'data');
  assert.deepEqual(chunk, framedData(Buffer.of(1, 2)));
  connection.destroy();
  assert.equal(clock.timers, 0);
});

test('an end goes out together with the acknowledgement', async () => {
  const clock = new TestClock();
  await using pair = await TunnelPair.open([], clock);
  const [near] = pair.link;
  const chunks: Buffer[] = [];
  near.on('data', (chunk: Buffer) => chunks.push(chunk));
  pair.service.on('data', () => {}).on('end', () => pair.service.end());
  pair.client.end('bye');
  await eventually('both ends are over', () => pair.near.destroyed && pair.far.destroyed);
  assert.deepEqual(Buffer.concat(chunks), Buffer.concat([receivedFrame(4), lastFrame()]));
  assert.equal(chunks.length, 1);
});

test('a side that reads nothing gets a limited number of acknowledgements, and the last one when it reads', async () => {
  const clock = new TestClock();
  const [link, caller] = linkEnds();
  const connection = new TunnelConnection(link, PEER, testSide(clock));
  const [service, end, server] = await tcpPair();
  service.resume();
  connection.join(end, {});
  service.write(Buffer.alloc(MIB));
  await eventually('the link is full', () => link.writableNeedDrain);
  const before = link.writableLength;
  const count = 2 * MAX_ACKS_WHEN_FULL;
  for (let i = 0; i < count; i++) {
    writeData(caller, Buffer.alloc(1));
    await settle(1);
    clock.advance(ACK_DELAY_MS);
  }
  const added = link.writableLength - before;
  let acknowledged = 0;
  const reader = new FrameReader({
    onData: () => {},
    onEnd: () => {},
    onLossy: () => {},
    onAck: (received) => {
      acknowledged = received;
    },
  });
  caller.on('data', (chunk: Buffer) => reader.feed(chunk));
  await settle(20);
  clock.advance(ACK_DELAY_MS);
  await settle(5);
  connection.destroy();
  service.destroy();
  await server[Symbol.asyncDispose]();
  assert.ok(added > 0 && added <= MAX_ACKS_WHEN_FULL * receivedFrame(count).length, `${added} bytes`);
  assert.equal(acknowledged, count);
});

test('a reset of either end resets the other one, and is no lost path', async () => {
  for (const [cause, effect] of [
    ['client', 'service'],
    ['service', 'client'],
  ] as const) {
    await using pair = await TunnelPair.open();
    pair.client.write('x');
    await once(pair.service, 'data');
    const ended = endOf(pair[effect]);
    pair[cause].resetAndDestroy();
    assert.equal(await ended, 'ECONNRESET');
    assert.ok(pair.near.destroyed && pair.far.destroyed);
    assert.equal(pair.resumptions, 0);
  }
});

test('an acknowledgement of unsent bytes, or a smaller one, resets the connection', async () => {
  for (const received of [1000, 3]) {
    await using pair = await TunnelPair.open();
    pair.client.write('hello');
    await once(pair.service, 'data');
    await eventually('all is acknowledged', () => pair.kept.used === 0);
    const ended = endOf(pair.client);
    pair.link[1].write(receivedFrame(received));
    assert.equal(await ended, 'ECONNRESET');
  }
});

test('on a new link, an acknowledgement of unsent bytes, or a smaller one, resets the connection', async () => {
  for (const received of [1000, 3]) {
    await using pair = await TunnelPair.open();
    pair.client.write('hello');
    await once(pair.service, 'data');
    await eventually('all is acknowledged', () => pair.kept.used === 0);
    const ended = endOf(pair.client);
    const [near, far] = linkEnds();
    pair.near.attach(near);
    far.write(receivedFrame(received));
    assert.equal(await ended, 'ECONNRESET');
  }
});

test('data or a second end after the end resets the connection', async () => {
  for (const frame of [lastFrame(), Buffer.from([1, 0, 0, 1, 7])]) {
    await using pair = await TunnelPair.open();
    const ended = endOf(pair.client);
    pair.link[1].write(Buffer.concat([lastFrame(), frame]));
    assert.equal(await ended, 'ECONNRESET');
  }
});

test('while there is no link, a writer is held back and nothing is lost', async () => {
  await using pair = await TunnelPair.open();
  pair.client.write('x');
  await once(pair.service, 'data');
  pair.lose();
  const up = sample(12 * 1024 * 1024);
  pair.client.end(up);
  await settle(100);
  assert.ok(pair.kept.used <= MAX_KEPT_BYTES + 1024 * 1024, `${pair.kept.used} bytes`);
  const there = readAll(pair.service);
  pair.resume();
  assert.deepEqual(await there, up);
});

test('a connection that keeps nothing still waits for acknowledgements', async () => {
  await using pair = await TunnelPair.open();
  for (let i = 0; pair.kept.used < MAX_KEPT_ALL_BYTES - MIB; i++) fill(pair.kept, { ...PEER, node: `named ${i}` });
  fill(pair.kept, { ...PEER, node: 'last' });
  pair.far.destroy();
  const [near, far] = linkEnds();
  const [client, end, server] = await tcpPair();
  const connection = new TunnelConnection(near, PEER, { ...testSide(new TestClock()), kept: pair.kept });
  connection.join(end, {});
  let received = 0;
  far.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  client.write(sample(4 * MIB));
  client.write(Buffer.alloc(12 * MIB));
  await eventually('it is held back', () => end.isPaused() && received >= MAX_KEPT_BYTES);
  await settle(50);
  assert.equal(connection.mayMove, false);
  assert.ok(received <= MAX_KEPT_BYTES + MIB, `${received} bytes`);
  connection.destroy();
  client.destroy();
  await server[Symbol.asyncDispose]();
});

test('on a known lossy path, the report of loss precedes the bulk data', async () => {
  const [near, far] = linkEnds();
  const path = near.path();
  Object.assign(near, { packets: () => ({ sent: 0, lost: 0 }), path: () => ({ ...path, rttMs: 40 }) });
  const side = { ...testSide(new TestClock()), slowed: (one: TunnelConnection) => one.reportLoss() };
  side.lossy.set(Buffer.from(near.nodeKey ?? []).toString('hex'), true);
  const connection = new TunnelConnection(near, PEER, side);
  connection.write(Buffer.alloc(1000));
  connection.write(Buffer.alloc(100_000));
  const output: (number | string)[] = [];
  const reader = new FrameReader({
    onData: (piece) => void output.push(piece.length),
    onAck: () => {},
    onEnd: () => {},
    onLossy: () => void output.push('lossy'),
  });
  far.on('data', (chunk: Buffer) => reader.feed(chunk));
  await eventually('everything has arrived', () => output.includes(100_000));
  assert.deepEqual(output, [1000, 'lossy', 100_000]);
  connection.destroy();
});

test('on a path that is slow for bulk data, a lane is requested after each mebibyte', async () => {
  const [near, far] = linkEnds();
  const path = near.path();
  let isSlowForBulk = false;
  Object.assign(near, { path: () => ({ ...path, isSlowForBulk }) });
  const requests: string[] = [];
  const slowed: ConnectionSide['slowed'] = (_one, direction) => void requests.push(direction);
  const connection = new TunnelConnection(near, PEER, { ...testSide(new TestClock()), slowed });
  connection.resume();
  for (const [isSlow, expected] of [
    [false, 0],
    [true, 1],
    [true, 2],
  ] as const) {
    isSlowForBulk = isSlow;
    const acknowledged = once(far, 'data');
    far.write(framedData(Buffer.alloc(SLOW_PATH_BYTES)));
    await acknowledged;
    await settle();
    assert.equal(requests.length, expected);
  }
  connection.destroy();
});

test('every frame of a received chunk reaches the TCP connection, long ones and short ones', async () => {
  for (const length of [10, 8192]) {
    const [near, far] = linkEnds();
    const [client, end, server] = await tcpPair();
    const connection = new TunnelConnection(near, PEER, testSide(new TestClock()));
    connection.join(end, {});
    const pieces = Array.from({ length: 6 }, (_, i) => sample(length, i + 1));
    const received = readAll(client);
    far.write(Buffer.concat([...pieces.map(framedData), lastFrame()]));
    assert.deepEqual(await received, Buffer.concat(pieces));
    connection.destroy();
    client.destroy();
    await server[Symbol.asyncDispose]();
  }
});

test('acknowledged memory is freed, except bytes that an earlier link may still read', async () => {
  for (const isMoved of [false, true]) {
    const [near, far] = linkEnds();
    const connection = new TunnelConnection(
      Object.assign(near, { release: () => {} }),
      PEER,
      testSide(new TestClock()),
    );
    const chunks: Buffer[] = [];
    far.on('data', (chunk: Buffer) => chunks.push(chunk));
    connection.write(Buffer.alloc(64 * 1024));
    await eventually('it has arrived', () => chunks.length === 2);
    const [nextNear, nextFar] = linkEnds();
    if (isMoved) connection.attach(Object.assign(nextNear, { release: () => {} }));
    connection.resume();
    (isMoved ? nextFar : far).write(receivedFrame(64 * 1024));
    await settle(20);
    assert.equal(chunks[1]?.length, isMoved ? 64 * 1024 : 0);
    connection.destroy();
  }
});

test('many short pieces count with the memory that they take', async () => {
  const clock = new TestClock();
  const [near] = linkEnds();
  const [client, end, server] = await tcpPair();
  const side = testSide(clock);
  const connection = new TunnelConnection(near, PEER, side);
  connection.join(end, {});
  let pieces = 0;
  while (!end.isPaused() && pieces < MIB) {
    end.emit('data', Buffer.of(1));
    pieces++;
  }
  assert.ok(pieces < MIB / 32, `${pieces} pieces`);
  assert.ok(side.kept.used <= MAX_KEPT_BYTES + 1024, `${side.kept.used} bytes`);
  connection.destroy();
  client.destroy();
  await server[Symbol.asyncDispose]();
});

test('on a long path, little is sent ahead at first, and more while acknowledgements come quickly', async () => {
  const clock = new TestClock();
  const [near, far] = linkEnds();
  const path = near.path();
  Object.assign(near, { packets: () => ({ sent: 0, lost: 0 }), path: () => ({ ...path, rttMs: 40 }) });
  const [client, end, server] = await tcpPair();
  const connection = new TunnelConnection(near, PEER, testSide(clock));
  connection.join(end, {});
  let bytes = 0;
  const reader = new FrameReader({
    onData: (piece) => {
      bytes += piece.length;
    },
    onAck: () => {},
    onEnd: () => {},
    onLossy: () => {},
  });
  far.on('data', (chunk: Buffer) => reader.feed(chunk));
  client.write(Buffer.alloc(8 * MIB));
  let acknowledged = 0;
  /** How much comes until the sender waits. */
  const ahead = async (): Promise<number> => {
    await eventually('it waits', () => end.isPaused() && bytes > acknowledged);
    await settle(20);
    return bytes - acknowledged;
  };
  const acknowledge = (ms: number): void => {
    clock.advance(ms);
    acknowledged = bytes;
    far.write(receivedFrame(bytes));
  };
  const first = await ahead();
  assert.ok(first >= MIB / 16 && first <= MIB / 4, `${first} bytes`);
  acknowledge(100);
  const second = await ahead();
  assert.ok(second > first && second >= MIB / 8 && second <= MIB / 2, `${second} bytes`);
  acknowledge(2000);
  const third = await ahead();
  assert.ok(third >= MIB / 16 && third <= MIB / 4, `${third} bytes`);
  connection.destroy();
  client.destroy();
  await server[Symbol.asyncDispose]();
});

/** Keeps pieces of 1 MiB until there is no room; how many there are. */
function fill(quota: Quota, holder: QuotaHolder, onEvict = (): void => {}): [KeptBytes, number] {
  const kept = new KeptBytes(quota, holder, onEvict);
  let pieces = 0;
  while (kept.add(Buffer.allocUnsafeSlow(MIB))) pieces++;
  return [kept, pieces];
}

test('kept bytes are limited for each node, and all are released', () => {
  const quota = keptQuota();
  const [kept, pieces] = fill(quota, PEER);
  assert.equal(pieces, MAX_KEPT_PER_NODE_BYTES / MIB - 1);
  const [other] = fill(quota, { ...PEER, node: 'other' });
  other.clear();
  kept.clear();
  assert.equal(quota.used, 0);
});

test('bytes are kept until the last byte of their piece is acknowledged', () => {
  const kept = new KeptBytes(keptQuota(), PEER, () => {});
  for (const text of ['first', 'second']) kept.add(Buffer.from(text));
  const rest = (offset: number): string => Buffer.concat([...kept.after(offset)]).toString();
  const written = { from: 0, to: 0 };
  kept.drop(4, written);
  assert.equal(rest(4), 'tsecond');
  kept.drop(10, written);
  assert.equal(rest(10), 'd');
  kept.drop(11, written);
  assert.equal(rest(11), '');
});

test('strangers of one network keep little together, and the largest is evicted first', () => {
  const quota = keptQuota();
  const stranger = (i: number, source: string) => ({ node: `node ${i}`, source, named: false });
  let evicted = 0;
  for (let i = 0; i < 8; i++) fill(quota, stranger(i, `192.0.2.${i}`), () => evicted++);
  assert.ok(quota.used <= MAX_KEPT_PER_SOURCE_BYTES, `${quota.used} bytes`);
  const before = evicted;
  const [, pieces] = fill(quota, stranger(9, '198.51.100.1'));
  assert.ok(pieces >= (MAX_KEPT_ALL_BYTES - RESERVED_KEPT_BYTES) / MIB / 2 - 1, `${pieces} pieces`);
  assert.ok(evicted > before);
  assert.ok(quota.used <= MAX_KEPT_ALL_BYTES - RESERVED_KEPT_BYTES, `${quota.used} bytes`);
  assert.equal(fill(quota, PEER)[1], MAX_KEPT_PER_NODE_BYTES / MIB - 1, 'a named caller');
});

test('a connection whose kept bytes were evicted continues, and ends with its path', async () => {
  await using pair = await TunnelPair.open();
  const { kept } = pair;
  pair.link[0].cork();
  // The other side acknowledges nothing that it does not get.
  pair.service.write('word');
  await eventually('it is kept', () => kept.used > 0);
  for (let i = 0; kept.used < MAX_KEPT_ALL_BYTES - MIB; i++) fill(kept, { ...PEER, node: `named ${i}` });
  fill(kept, { ...PEER, node: 'last' });
  pair.link[0].uncork();
  pair.client.write('hello');
  const [heard]: unknown[] = await once(pair.service, 'data');
  assert.equal(String(heard), 'hello');
  pair.lose();
  await eventually('the connection has closed', () => pair.far.destroyed);
});

test('frames are the same however their bytes are cut', () => {
  const written: Buffer[] = [];
  const sink = { write: (bytes: Uint8Array) => written.push(Buffer.from(bytes)) > 0, cork: () => {}, uncork: () => {} };
  const [short, long] = [sample(10), sample(10_000)];
  writeData(sink, short);
  sink.write(receivedFrame(2 ** 41 + 3));
  writeData(sink, long);
  sink.write(lossyFrame());
  sink.write(lastFrame());
  const stream = Buffer.concat(written);
  for (const size of [1, 2, 3, 7, 100, stream.length]) {
    const data: Buffer[] = [];
    const output: (number | string)[] = [];
    const reader = new FrameReader({
      onData: (piece) => void data.push(piece),
      onAck: (received) => void output.push(received),
      onEnd: () => void output.push('end'),
      onLossy: () => void output.push('lossy'),
    });
    for (let at = 0; at < stream.length; at += size) reader.feed(stream.subarray(at, at + size));
    assert.deepEqual(Buffer.concat(data), Buffer.concat([short, long]));
    assert.deepEqual(output, [2 ** 41 + 3, 'lossy', 'end']);
  }
  for (const bytes of [[0], [9], [1, 0, 0, 0]])
    assert.throws(
      () => new FrameReader({ onData() {}, onAck() {}, onEnd() {}, onLossy() {} }).feed(Buffer.from(bytes)),
      {
        code: 'protocol_error',
      },
    );
});
