import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { KnownNodes } from '../../../src/network/known-nodes.ts';
import {
  DIAL_BACKS_PER_NETWORK,
  DIAL_BACKS_PER_NODE,
  DIAL_BACKS_PER_SOURCE,
  Helper,
  INTRODUCTIONS_PER_NODE,
  INTRODUCTIONS_PER_SOURCE,
  INTRODUCTIONS_TO_NODE,
  INTRODUCTIONS_TO_NODE_PER_NETWORK,
  INTRODUCTIONS_TO_NODE_PER_SOURCE,
  type ObservedNode,
} from '../../../src/network/reachability/helper.ts';
import { Relay } from '../../../src/network/reachability/relay.ts';
import {
  ATTEMPT_BYTES,
  decodeHelperReply,
  decodeIntroduction,
  encodeHelperRequest,
  encodeIntroductionAnswer,
  type HelperReply,
  type Introduction,
  type IntroductionAnswer,
  type Means,
} from '../../../src/network/reachability/signals.ts';
import { TestClock } from '../../support/test-clock.ts';

const node = (n: number): Uint8Array => new Uint8Array(32).fill(n);
const CALLER = { nodeKey: node(1), address: { host: '203.0.113.7', port: 5000 } };
const CALLED_AT = { host: '198.51.100.7', port: 6000 };
const READY: IntroductionAnswer = { outcome: 'ready', mapping: 'cone', listensAt: CALLED_AT, isSprayed: false };

const REACHED_PORT = 40_000;

function world({
  relays = true,
  isReached = true,
  answer = READY,
}: {
  readonly relays?: boolean;
  readonly isReached?: boolean;
  readonly answer?: IntroductionAnswer;
} = {}) {
  const clock = new TestClock();
  let lastPort = 30_000;
  const createSocket = () => {
    const port = ++lastPort;
    const address = (): Address => ({ host: '0.0.0.0', port });
    return { on: () => {}, bind: () => {}, address, trySend: () => {}, close: async () => {} };
  };
  const relay = relays ? new Relay({}, { clock, log: silentLog, createSocket }) : null;
  const introductions: Introduction[] = [];
  const connected = new Map([2, 3, 4, 5, 6, 7, 8].map((n) => [toHex(node(n)), CALLED_AT]));
  const dialed: ObservedNode[] = [];
  const known = new KnownNodes();
  const helper = new Helper({
    clock,
    known,
    canReach: async (back) => {
      dialed.push(back);
      return back.address.port === REACHED_PORT;
    },
    relay,
    isReached: () => isReached,
    tlsPorts: () => [443, 4121, 1, 2, 3],
    observedAddress: (nodeKey) => connected.get(toHex(nodeKey)) ?? null,
    request: async (_nodeKey, body) => {
      const introduction = decodeIntroduction(body);
      assert.ok(introduction);
      introductions.push(introduction);
      return encodeIntroductionAnswer(answer);
    },
  });
  const introduce = async (
    to: Uint8Array,
    { means = 'punch', from = CALLER }: { readonly means?: Means; readonly from?: ObservedNode } = {},
  ): Promise<HelperReply> => {
    const attempt = new Uint8Array(ATTEMPT_BYTES);
    const listensAt = means === 'listening' ? { host: '192.0.2.99', port: 7000 } : null;
    const asked = { kind: 'introduce', to, attempt, means, mapping: 'cone', listensAt, needsFullHops: false } as const;
    const reply = decodeHelperReply(await helper.answer(encodeHelperRequest(asked), from));
    assert.ok(reply);
    return reply;
  };
  return { clock, known, helper, relay, introductions, introduce, dialed };
}

test('a node learns its observed address, whether the helper relays, and its TLS ports', async () => {
  const hello = encodeHelperRequest({ kind: 'hello' });
  for (const relays of [true, false]) {
    const reply = decodeHelperReply(await world({ relays }).helper.answer(hello, CALLER));
    const tlsPorts = [443, 4121, 1, 2];
    assert.deepEqual(reply, {
      seenAt: CALLER.address,
      relays,
      reached: false,
      called: null,
      relayPort: null,
      tlsPorts,
    });
  }
});

test('an introduction contains the observed address of the caller, independent of its claims', async () => {
  const { introduce, introductions } = world();
  const { called } = await introduce(node(2), { means: 'listening' });
  assert.deepEqual(called, { ...READY, seenAt: CALLED_AT });
  assert.deepEqual(introductions[0]?.seenAt, CALLER.address);
  assert.deepEqual(introductions[0]?.caller, CALLER.nodeKey);
  assert.deepEqual(introductions[0]?.listensAt, { host: '192.0.2.99', port: 7000 });
});

test('a node without a connection to this helper is not looked up', async () => {
  const { introduce, introductions } = world();
  assert.equal((await introduce(node(9))).called, null);
  assert.equal(introductions.length, 0);
});

test('a helper that has just slept introduces nodes, and accepts no new ones', async () => {
  const { helper, introduce } = world({ isReached: false });
  for (const means of ['punch', 'relay'] as const)
    assert.equal((await introduce(node(2), { means })).called?.outcome, 'ready');
  for (const request of [{ kind: 'hello' }, { kind: 'reach', port: REACHED_PORT }] as const)
    await assert.rejects(helper.answer(encodeHelperRequest(request), CALLER), { code: 'access_denied' });
});

test('a relay session opens for both nodes, and closes if the called node refuses', async () => {
  const { introduce, introductions, relay } = world();
  const { relayPort } = await introduce(node(2), { means: 'relay' });
  assert.ok(relayPort !== null && introductions[0]?.relay !== null && introductions[0]?.relay.port !== relayPort);
  assert.equal(relay?.usage.sessions, 1);
  const refusing = world({ answer: { ...READY, outcome: 'refused', listensAt: null } });
  await refusing.introduce(node(2), { means: 'relay' });
  assert.equal(refusing.relay?.usage.sessions, 0);
  await assert.rejects(world({ relays: false }).introduce(node(2), { means: 'relay' }), { code: 'rate_limited' });
});

/** How many of these introductions succeed. */
async function succeeded(times: number, introduce: (i: number) => Promise<unknown>): Promise<number> {
  const outcomes = await Promise.allSettled(Array.from({ length: times }, (_, i) => introduce(i)));
  return outcomes.filter(({ status }) => status === 'fulfilled').length;
}

test('introductions are limited per caller, source and called node', async () => {
  const ofNode = world();
  assert.equal(await succeeded(100, (i) => ofNode.introduce(node(2 + (i % 4)))), INTRODUCTIONS_PER_NODE);
  const ofSource = world();
  const fromOne = (i: number) =>
    ofSource.introduce(node(2 + (i % 7)), {
      from: { nodeKey: node(20 + i), address: { ...CALLER.address, port: 1 + i } },
    });
  assert.equal(await succeeded(200, fromOne), INTRODUCTIONS_PER_SOURCE);
  const toNode = world();
  const fromMany = (i: number) =>
    toNode.introduce(node(2), { from: { nodeKey: node(20 + i), address: { host: `10.${i}.0.1`, port: 5000 } } });
  assert.equal(await succeeded(200, fromMany), INTRODUCTIONS_TO_NODE);
});

test('a source that floods a node with introductions under many keys leaves some for others', async () => {
  const { introduce } = world();
  const flooding = (i: number) => introduce(node(2), { from: { ...CALLER, nodeKey: node(20 + i) } });
  assert.equal(await succeeded(200, flooding), INTRODUCTIONS_TO_NODE_PER_SOURCE);
  const other = { nodeKey: node(9), address: { host: '192.0.2.1', port: 5000 } };
  assert.equal((await introduce(node(2), { from: other })).called?.outcome, 'ready');
});

test('a network that floods a node with introductions leaves some for others, and nodes in use have their own rate', async () => {
  const { introduce, known } = world();
  const from = (i: number, host = `192.0.2.${i}`) => ({ nodeKey: node(20 + i), address: { host, port: 5000 } });
  const flooding = (i: number) => introduce(node(2), { from: from(i) });
  assert.equal(await succeeded(200, flooding), INTRODUCTIONS_TO_NODE_PER_NETWORK);
  await introduce(node(2), { from: from(201, '198.51.100.1') });
  await succeeded(200, (i) => introduce(node(2), { from: from(i, `10.${i}.0.1`) }));
  await assert.rejects(introduce(node(2), { from: from(202, '198.51.100.2') }), { code: 'rate_limited' });
  known.note(node(203));
  await introduce(node(2), { from: { ...from(0), nodeKey: node(203) } });
});

test('the IPv6 /64s of a /48 leave introductions and dial-backs for others', async () => {
  const { introduce, helper, dialed } = world();
  const inOne = (i: number): ObservedNode => ({
    nodeKey: node(20 + i),
    address: { host: `2001:db8:1:${(1 + i).toString(16)}::1`, port: 5000 },
  });
  assert.equal(await succeeded(200, (i) => introduce(node(2), { from: inOne(i) })), INTRODUCTIONS_TO_NODE_PER_NETWORK);
  assert.equal((await introduce(node(2))).called?.outcome, 'ready');
  const reach = (from: ObservedNode) => helper.answer(encodeHelperRequest({ kind: 'reach', port: REACHED_PORT }), from);
  assert.equal(await succeeded(200, (i) => reach(inOne(i))), DIAL_BACKS_PER_NETWORK);
  await reach(CALLER);
  assert.equal(dialed.length, DIAL_BACKS_PER_NETWORK + 1);
});

test('an invalid request is rejected', async () => {
  await assert.rejects(world().helper.answer(Uint8Array.of(1, 2, 3), CALLER), { code: 'protocol_error' });
});

test('a dial-back goes only to the observed host of the node, and returns whether it succeeded', async () => {
  const { helper, dialed } = world();
  const reach = async (port: number) =>
    decodeHelperReply(await helper.answer(encodeHelperRequest({ kind: 'reach', port }), CALLER));
  assert.equal((await reach(REACHED_PORT))?.reached, true);
  assert.equal((await reach(REACHED_PORT + 1))?.reached, false);
  await assert.rejects(reach(443), { code: 'access_denied' });
  const at = (port: number) => ({ nodeKey: CALLER.nodeKey, address: { host: CALLER.address.host, port } });
  assert.deepEqual(dialed, [at(REACHED_PORT), at(REACHED_PORT + 1)]);
});

test('dial-backs are limited per node and per host', async () => {
  const { helper, dialed, clock } = world();
  const reach = (nodeKey: Uint8Array) =>
    helper.answer(encodeHelperRequest({ kind: 'reach', port: REACHED_PORT }), { ...CALLER, nodeKey });
  for (let i = 0; i < DIAL_BACKS_PER_NODE; i++) await reach(node(1));
  await assert.rejects(reach(node(1)), { code: 'rate_limited' });
  clock.advance(60_000);
  for (let i = 0; i < DIAL_BACKS_PER_SOURCE; i++) await reach(node(10 + i));
  await assert.rejects(reach(node(9)), { code: 'rate_limited' });
  assert.equal(dialed.length, DIAL_BACKS_PER_NODE + DIAL_BACKS_PER_SOURCE);
});

test('many node keys of a network cause few dial-backs, and a node in use still gets its share', async () => {
  const { helper, known } = world();
  const reach = (n: number, host: string) =>
    helper.answer(encodeHelperRequest({ kind: 'reach', port: REACHED_PORT }), {
      nodeKey: node(n),
      address: { host, port: 5000 },
    });
  assert.equal(await succeeded(100, (i) => reach(i, `192.0.2.${i}`)), DIAL_BACKS_PER_NETWORK);
  await reach(101, '198.51.100.1');
  known.note(node(102));
  await reach(102, '192.0.2.1');
});
