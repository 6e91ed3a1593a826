import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../../src/foundation/errors.ts';
import { type Path, plainPath } from '../../../../src/network/transport/path.ts';
import { LANE_IDLE_MS, SealedLane } from '../../../../src/network/transport/sealed-lane.ts';
import {
  BULK_SECRET_BYTES,
  decodeLaneAnswer,
  decodeLaneOffer,
  encodeLaneAnswer,
  encodeLaneOffer,
  type LaneAnswer,
  type LaneOffer,
} from '../../../../src/network/transport/sealed-records.ts';
import { MAX_PACKETS_AHEAD } from '../../../../src/network/transport/udp-lane/lane-entrance.ts';
import {
  MAX_BULK_LANES,
  MAX_BULK_LANES_PER_NETWORK,
  MAX_BULK_LANES_PER_SOURCE,
  MAX_LANE_UNREAD_PER_SOURCE_BYTES,
  RESERVED_BULK_LANES,
} from '../../../../src/network/transport/udp-lane/udp-lanes.ts';
import { TestLanes } from '../../../support/bulk.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestClock } from '../../../support/test-clock.ts';

const HOST = '127.0.0.1';
const MIB = 1024 * 1024;
const HERE: Path = { ...plainPath('direct', { host: HOST, port: 4000 }), source: 'them' };
const NEVER = new AbortController().signal;

/** The lanes of a node over a real local socket. */
async function side(t: TestContext, knownPort = true): Promise<TestLanes> {
  const lanes = await TestLanes.open(knownPort);
  t.after(async () => await lanes[Symbol.asyncDispose]());
  return lanes;
}

/** A lane between two sides. The offer and the answer may be changed in transit. */
async function join(
  a: TestLanes,
  b: TestLanes,
  change: { readonly offer?: Partial<LaneOffer>; readonly answer?: Partial<LaneAnswer> } = {},
): Promise<[SealedLane, SealedLane]> {
  const offered = a.lanes.offer(HERE);
  assert(offered !== null);
  const offer = encodeLaneOffer({ ...decodeLaneOffer(offered.offer), ...change.offer });
  const taken = b.lanes.take(offer, HERE, NEVER);
  assert(taken !== null);
  const answer = encodeLaneAnswer({ ...decodeLaneAnswer(taken.answer), ...change.answer });
  const [from, to] = await Promise.all([offered.answered(answer, NEVER), taken.stream]);
  assert(from instanceof SealedLane && to instanceof SealedLane);
  return [from, to];
}

async function hashOf(lane: SealedLane): Promise<string> {
  const hash = createHash('sha256');
  lane.on('data', (chunk: Buffer) => hash.update(chunk));
  await once(lane, 'end');
  return hash.digest('hex');
}

test('bytes flow both ways, in order, and end', async (t) => {
  const [a, b] = await join(await side(t), await side(t));
  const [there, back] = [randomBytes(5 * 1024 * 1024 + 7), randomBytes(3 * 1024 * 1024)];
  const hashes = Promise.all([hashOf(b), hashOf(a)]);
  a.end(there);
  b.end(back);
  const expected = [there, back].map((bytes) => createHash('sha256').update(bytes).digest('hex'));
  assert.deepEqual(await hashes, expected);
});

test('a lane counts its bytes, and is not listed after its end', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  const [a, b] = await join(from, to);
  assert.equal(from.lanes.stats().lanes, 1);
  b.resume();
  a.resume();
  const closed = Promise.all([once(a, 'close'), once(b, 'close')]);
  a.end(Buffer.alloc(100_000));
  b.end();
  await closed;
  assert.equal(from.lanes.stats().lanes, 0);
  assert(from.lanes.stats().sent > 100_000);
  assert(to.lanes.stats().received > 100_000);
});

for (const [who, knows] of [
  ['the offering side', [false, true]],
  ['the accepting side', [true, false]],
] as const)
  test(`if the port of ${who} is unknown, it sends first`, async (t) => {
    const [a, b] = await join(await side(t, knows[0]), await side(t, knows[1]));
    const received = once(b, 'data');
    a.write('over');
    assert.equal(String((await received)[0]), 'over');
  });

test('over IPv6 a lane uses its own ports', async (t) => {
  const path: Path = { ...plainPath('direct', { host: '::1', port: 4000 }), source: 'them' };
  // Unknown IPv4 ports do not matter over IPv6.
  const [from, to] = [await side(t, false), await side(t, false)];
  const offered = from.lanes.offer(path);
  assert(offered !== null);
  const { answer, stream } = to.lanes.take(offered.offer, path, NEVER) ?? assert.fail();
  const [a, b] = await Promise.all([offered.answered(answer, NEVER), stream]);
  const received = once(b, 'data');
  a.write('over');
  assert.equal(String((await received)[0]), 'over');
});

test('if both ports are unknown, there is no lane', async (t) => {
  await assert.rejects(join(await side(t, false), await side(t, false)), { code: 'connect_failed' });
});

test('a side with a wrong secret gets no lane, and none of its bytes are accepted', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  const offer = { secret: new Uint8Array(32).fill(1) };
  await assert.rejects(join(from, to, { offer }), { code: 'connect_failed' });
  await eventually('no lane is left', () => from.lanes.stats().lanes + to.lanes.stats().lanes === 0);
});

test('no packet is sent to well-known service ports', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  await assert.rejects(join(from, to, { answer: { port: 53 } }), { code: 'connect_failed' });
  await assert.rejects(join(from, to, { answer: { id: 0 } }), { code: 'connect_failed' });
});

test('a reset differs from an end and from a lost lane, and follows the written bytes', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  const [a, b] = await join(from, to);
  const broken = once(b, 'error');
  const read: Buffer[] = [];
  b.on('data', (chunk: Buffer) => read.push(chunk));
  await new Promise<void>((sent) => a.write('some', () => sent()));
  a.destroy();
  const [error] = await broken;
  assert.equal(error.code, 'stream_reset');
  assert.equal(Buffer.concat(read).toString(), 'some');
  assert.equal(b.readableEnded, false);
  await eventually('no lane is left', () => from.lanes.stats().lanes + to.lanes.stats().lanes === 0);
});

test('a lane that receives no packets is lost, even if nothing is in transit', async (t) => {
  const clock = new TestClock();
  const to = await TestLanes.open(true, clock);
  t.after(async () => await to[Symbol.asyncDispose]());
  const [a, b] = await join(await side(t), to);
  // These packets also acknowledge the bytes of b.
  a.write('over');
  await once(b, 'data');
  const lost = once(b, 'error');
  for (let ms = 0; ms < LANE_IDLE_MS / 2; ms += 1000) clock.advance(1000);
  assert.equal(b.destroyed, false);
  for (let ms = 0; ms < LANE_IDLE_MS; ms += 1000) clock.advance(1000);
  const [error] = await lost;
  assert.equal(error.code, 'connection_lost');
});

test('a side that stops tells the other side that the lane is lost', async (t) => {
  const [a, b] = await join(await side(t), await side(t));
  const lost = once(b, 'error');
  b.resume();
  a.abort();
  const [error] = await lost;
  assert.equal(error.code, 'connection_lost');
});

for (const [what, type] of [
  ['resets it', 16],
  ['ends it', 2],
] as const)
  test(`a lane is lost, not cleanly ended, if an attacker ${what}`, async (t) => {
    const [from, to] = [await side(t), await side(t)];
    const offered = from.lanes.offer(HERE);
    assert(offered !== null);
    // An attacker that sees the packets can end the udx stream, but cannot forge the final record.
    const { answer, stream } = to.lanes.take(offered.offer, HERE, NEVER) ?? assert.fail();
    const a = await offered.answered(answer, NEVER);
    const b = await stream;
    const lost = once(b, 'error');
    b.resume();
    const packet = forgedPacket(type, decodeLaneAnswer(answer).id);
    for (let seq = 0; seq < 16; seq++) {
      packet.writeUInt32LE(seq, 12);
      from.socket.trySend(Buffer.from(packet), to.socket.address()?.port ?? 0, HOST);
    }
    const [error] = await lost;
    assert.equal(error.code, 'connection_lost');
    a.destroy();
  });

/** A udx packet for a stream, with these type bits. */
function forgedPacket(type: number, id: number, payloadBytes = 0): Buffer {
  const packet = Buffer.alloc(20 + payloadBytes);
  packet.set([255, 1, type]);
  packet.writeUInt32LE(id, 4);
  return packet;
}

test('packets out of order use bounded memory, independent of their number', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  const offered = from.lanes.offer(HERE);
  assert(offered !== null);
  const { answer, stream } = to.lanes.take(offered.offer, HERE, NEVER) ?? assert.fail();
  const a = await offered.answered(answer, NEVER);
  const b = await stream;
  b.resume();
  const port = to.socket.address()?.port ?? 0;
  const before = process.memoryUsage.rss();
  // The hello used the first number, and the second one never arrives.
  for (let seq = 2; seq < 3 * MAX_PACKETS_AHEAD; seq++) {
    const packet = forgedPacket(1, decodeLaneAnswer(answer).id, 1400);
    packet.writeUInt32LE(seq, 12);
    await from.socket.send(packet, port, HOST);
  }
  await eventually('the flood arrived', () => to.lanes.waitingBytes > MIB);
  assert(to.lanes.waitingBytes <= MAX_PACKETS_AHEAD * 1500, `${to.lanes.waitingBytes} bytes are buffered`);
  assert(process.memoryUsage.rss() - before < 48 * MIB);
  // At this distance the table of udx would grow to gigabytes.
  const waiting = to.lanes.waitingBytes;
  const far = forgedPacket(1, decodeLaneAnswer(answer).id, 1);
  far.writeUInt32LE(2 + 2 ** 30, 12);
  for (let i = 0; i < 10; i++) await from.socket.send(far, port, HOST);
  const received = once(b, 'close');
  b.on('error', () => {});
  a.destroy();
  b.destroy();
  await received;
  assert(waiting <= MAX_PACKETS_AHEAD * 1500);
  assert.equal(to.lanes.waitingBytes, 0);
});

test('relayed paths have no lanes, and lanes are limited in total and per source', async (t) => {
  const { lanes } = await side(t);
  assert.equal(lanes.offer({ ...HERE, kind: 'relay' }), null);
  assert.equal(lanes.offer({ ...HERE, kind: 'turn' }), null);
  const offers = Array.from({ length: MAX_BULK_LANES_PER_SOURCE }, () => lanes.offer(HERE));
  assert(offers.every((one) => one !== null));
  assert.equal(lanes.offer(HERE), null);
  for (let i = MAX_BULK_LANES_PER_SOURCE; i < MAX_BULK_LANES; i++)
    assert(lanes.offer({ ...HERE, source: `${i}` }) !== null);
  assert.equal(lanes.offer({ ...HERE, source: 'one more' }), null);
  offers[0]?.cancel();
  offers[0]?.cancel();
  assert(lanes.offer(HERE) !== null);
  assert.equal(lanes.offer(HERE), null);
});

test('lanes offered by strangers leave room for other networks and for lanes of this node', async (t) => {
  const { lanes } = await side(t);
  const offer = encodeLaneOffer({ id: 1, port: 4000, secret: new Uint8Array(BULK_SECRET_BYTES) });
  const stop = new AbortController();
  const take = (source: string): boolean => {
    const taken = lanes.take(offer, { ...HERE, source }, stop.signal);
    taken?.stream.catch(() => {});
    return taken !== null;
  };
  const ofNetwork = Array.from({ length: MAX_BULK_LANES }, (_, i) => take(`192.0.2.${i}`));
  assert.equal(ofNetwork.filter(Boolean).length, MAX_BULK_LANES_PER_NETWORK);
  const all = Array.from({ length: MAX_BULK_LANES }, (_, i) => take(`10.${i}.0.1`));
  assert.equal(all.filter(Boolean).length, MAX_BULK_LANES - RESERVED_BULK_LANES - MAX_BULK_LANES_PER_NETWORK);
  const own = lanes.offer({ ...HERE, source: '192.0.2.1' });
  assert(own !== null);
  own.cancel();
  stop.abort(new SvcError('cancelled'));
});

test('unread lanes of one source share a budget, and a lane of this node still receives', async (t) => {
  const [from, to] = [await side(t), await side(t)];
  const lanes = [await join(from, to), await join(from, to), await join(from, to)];
  const isLost = (): boolean => lanes.some(([, unread]) => unread.destroyed);
  for (const [lane] of lanes) lane.write(Buffer.alloc(0.7 * MAX_LANE_UNREAD_PER_SOURCE_BYTES));
  await eventually('the budget is used up', () => {
    assert(to.lanes.unreadBytes <= MAX_LANE_UNREAD_PER_SOURCE_BYTES, `${to.lanes.unreadBytes} bytes`);
    return isLost();
  });
  const [asked, other] = await join(to, from);
  const received = once(asked, 'data');
  other.write('over');
  assert.equal(String((await received)[0]), 'over');
  for (const lane of lanes.flat()) lane.destroy();
  await eventually('all bytes are released', () => to.lanes.unreadBytes === 0);
});

test('a stop ends every lane', async (t) => {
  const from = await side(t);
  const [a, b] = await join(from, await side(t));
  const closed = [a, b].map(async (lane) => await new Promise((done) => lane.once('close', done)));
  b.resume();
  await from.lanes.stop();
  await Promise.all(closed);
  assert.equal(from.lanes.offer(HERE), null);
});
