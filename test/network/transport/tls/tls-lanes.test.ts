import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { type Path, plainPath } from '../../../../src/network/transport/path.ts';
import { UdpOverTls } from '../../../../src/network/transport/tls/client.ts';
import { PAIR_IDLE_MS, PAIR_UNPAID_MS, PAIR_WAIT_MS } from '../../../../src/network/transport/tls/pairs.ts';
import { Proxies } from '../../../../src/network/transport/tls/proxy.ts';
import { MAX_LANE_ENDS_PER_CLIENT } from '../../../../src/network/transport/tls/server.ts';
import { TlsLanes } from '../../../../src/network/transport/tls/tls-lanes.ts';
import { TLS_PURPOSE, TLS_STATUS } from '../../../../src/network/transport/tls/wire.ts';
import type { BulkStream } from '../../../../src/network/transport/types.ts';
import { TestLanes } from '../../../support/bulk.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestClock } from '../../../support/test-clock.ts';
import { borrow, lendingHelper, TAG } from './borrower.ts';

const HOST = '127.0.0.1';
const MIB = 1024 * 1024;
const NEVER = new AbortController().signal;

interface Node {
  readonly lanes: TlsLanes;
  readonly tls: UdpOverTls;
}

/** The lanes of a node. */
async function node(t: TestContext, isAllowed = true): Promise<Node> {
  const settings = { proxy: 'none', proxy_command: '', tls_ca: '' };
  const tls = new UdpOverTls({
    clock: systemClock,
    log: silentLog,
    identity: { key: KeyPair.generate(), tag: TAG },
    proxies: new Proxies(() => settings, {}),
    ca: () => '',
  });
  const udp = await TestLanes.open();
  t.after(async () => {
    await udp[Symbol.asyncDispose]();
    tls.disconnect();
  });
  const lanes = new TlsLanes({
    clock: systemClock,
    udp: udp.lanes,
    tls,
    isAllowed: () => isAllowed,
    localLent: (address) => address,
  });
  return { lanes, tls };
}

/** The paths of a node that borrows a port, and of the node at the other end. */
const BORROWED: Path = { kind: 'tls', remote: { host: HOST, port: 4000 }, source: 'them' };
const PLAIN: Path = { ...plainPath('direct', { host: HOST, port: 4001 }), source: 'them' };

interface End {
  readonly node: Node;
  readonly path: Path;
}

async function join(caller: End, called: End): Promise<[BulkStream, BulkStream]> {
  const offered = caller.node.lanes.offer(caller.path) ?? assert.fail();
  assert.equal(offered.offer.length, called.node.lanes.offerBytes);
  const taken = called.node.lanes.take(offered.offer, called.path, NEVER) ?? assert.fail();
  assert.equal(taken.answer.length, called.node.lanes.answerBytes);
  return await Promise.all([offered.answered(taken.answer, NEVER), taken.stream]);
}

async function hashOf(lane: BulkStream): Promise<string> {
  const hash = createHash('sha256');
  lane.on('data', (chunk: Buffer) => hash.update(chunk));
  await once(lane, 'end');
  return hash.digest('hex');
}

/** A helper, a node that borrows its ports, and one that does not. */
async function world(t: TestContext, settings: Parameters<typeof lendingHelper>[1] = {}) {
  const helper = await lendingHelper(t, settings);
  const [inside, outside] = [await node(t), await node(t)];
  inside.tls.use(await inside.tls.open({ host: HOST, port: helper.port }, NEVER));
  return { helper, inside, outside };
}

for (const who of ['calling', 'called'] as const)
  test(`if the ${who} side borrows its port, bytes flow both ways over the helper, in order, and end`, async (t) => {
    const { helper, inside, outside } = await world(t);
    const ends: readonly [End, End] = [
      { node: inside, path: BORROWED },
      { node: outside, path: PLAIN },
    ];
    const [a, b] = await join(ends[who === 'calling' ? 0 : 1], ends[who === 'calling' ? 1 : 0]);
    const [there, back] = [randomBytes(5 * MIB + 7), randomBytes(3 * MIB)];
    const hashes = Promise.all([hashOf(b), hashOf(a)]);
    const closed = Promise.all([once(a, 'close'), once(b, 'close')]);
    a.end(there);
    b.end(back);
    const expected = [there, back].map((bytes) => createHash('sha256').update(bytes).digest('hex'));
    assert.deepEqual(await hashes, expected);
    assert.ok(helper.server.usage.bytes > 8 * MIB, 'the helper counts the bytes');
    await closed;
    assert.equal(inside.lanes.stats().lanes + outside.lanes.stats().lanes, 0);
  });

test('without a borrowed port on either side, a lane uses UDP', async (t) => {
  const ends = [
    { node: await node(t), path: PLAIN },
    { node: await node(t), path: PLAIN },
  ] as const;
  const [a, b] = await join(...ends);
  const received = once(b, 'data');
  a.write('over');
  assert.equal(String((await received)[0]), 'over');
});

test('a node without relays refuses to meet at a helper, and a port below 1024 is not dialed', async (t) => {
  const { inside } = await world(t);
  const offered = inside.lanes.offer(BORROWED) ?? assert.fail();
  assert.equal((await node(t, false)).lanes.take(offered.offer, PLAIN, NEVER), null);
  const low = Buffer.from(offered.offer);
  low.writeUInt16BE(22, 1);
  assert.equal((await node(t)).lanes.take(low, PLAIN, NEVER), null);
  const zeros = new Uint8Array(inside.lanes.answerBytes);
  await assert.rejects(offered.answered(zeros, NEVER), { code: 'connect_failed' });
  assert.equal(inside.lanes.stats().lanes, 0);
});

test('both ends of a lane notice the loss of the helper', async (t) => {
  const { helper, inside, outside } = await world(t);
  const [a, b] = await join({ node: inside, path: BORROWED }, { node: outside, path: PLAIN });
  const lost = [a, b].map(async (lane) => {
    const [error]: { code?: string }[] = await once(lane, 'error');
    assert.equal(error?.code, 'connection_lost');
  });
  await helper.stop();
  await Promise.all(lost);
});

const TOKEN = new Uint8Array(16).fill(7);
const LANE = { purpose: TLS_PURPOSE.lane, token: TOKEN } as const;

test('an end that meets no other is closed after 10 seconds, and a silent pair after 30', async (t) => {
  const clock = new TestClock();
  const helper = await lendingHelper(t, { clock });
  const alone = await borrow(t, helper.url, LANE);
  assert.equal(alone.reply?.status, TLS_STATUS.ok);
  clock.advance(PAIR_WAIT_MS);
  await alone.closed;
  const pair = [await borrow(t, helper.url, LANE), await borrow(t, helper.url, LANE)];
  clock.advance(PAIR_IDLE_MS);
  await Promise.all(pair.map(({ closed }) => closed));
  assert.equal(clock.timers, 0);
});

test('a token joins exactly two ends', async (t) => {
  const helper = await lendingHelper(t);
  const [first, second] = [await borrow(t, helper.url, LANE), await borrow(t, helper.url, LANE)];
  const third = await borrow(t, helper.url, LANE);
  const heard: string[] = [];
  third.socket.on('message', () => heard.push('third'));
  const arrived = once(second.socket, 'message') as Promise<[Buffer]>;
  first.socket.send(Buffer.from('sealed'));
  assert.equal(String((await arrived)[0]), 'sealed');
  assert.deepEqual(heard, []);
});

test('a message that is no binary one closes both ends', async (t) => {
  const helper = await lendingHelper(t);
  const [first, second] = [await borrow(t, helper.url, LANE), await borrow(t, helper.url, LANE)];
  first.socket.send('text');
  await Promise.all([first.closed, second.closed]);
});

test('the budgets slow a lane down without a loss, and end it if they permit nothing', async (t) => {
  const clock = new TestClock();
  let budget = 0;
  const spend = (bytes: number): boolean => {
    if (budget < bytes) return false;
    budget -= bytes;
    return true;
  };
  const helper = await lendingHelper(t, { clock, spend });
  const [first, second] = [await borrow(t, helper.url, LANE), await borrow(t, helper.url, LANE)];
  const arrived: Buffer[] = [];
  second.socket.on('message', (message: Buffer) => arrived.push(message));
  const sent = randomBytes(10_000);
  first.socket.send(sent);
  await eventually('it waits for the budget', () => clock.timers === 3);
  budget = 8192;
  clock.advance(PAIR_UNPAID_MS - 1);
  budget += 4096;
  clock.advance(20);
  await eventually('the message', () => arrived.length === 1);
  assert.deepEqual(arrived[0], sent);
  budget = 0;
  first.socket.send(sent);
  await eventually('it waits again', () => clock.timers === 3);
  for (let ms = 0; ms <= PAIR_UNPAID_MS; ms += 20) clock.advance(20);
  await Promise.all([first.closed, second.closed]);
});

test('a client has at most 16 ends of lanes', async (t) => {
  const helper = await lendingHelper(t);
  const key = KeyPair.generate();
  for (let i = 0; i < MAX_LANE_ENDS_PER_CLIENT; i++) {
    const { reply } = await borrow(t, helper.url, { ...LANE, key, token: randomBytes(16) });
    assert.equal(reply?.status, TLS_STATUS.ok);
  }
  assert.equal((await borrow(t, helper.url, { ...LANE, key, token: randomBytes(16) })).reply?.status, TLS_STATUS.full);
});
