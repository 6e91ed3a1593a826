import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import type { NodeAnswer } from '../../../src/network/records/closest-nodes.ts';
import { decodeNodeRequest, encodePage, type FindReply } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { Quorum } from '../../../src/network/records/quorum.ts';
import { type Collection, RecordSetFetcher } from '../../../src/network/records/record-set-fetcher.ts';
import { newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { serviceRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = serviceKey('lang.translate');
const never = new AbortController().signal;

/** A node that makes these claims about the key. */
function claims(n: number, says: Partial<FindReply>): NodeAnswer {
  return answerOf(nodeAddress(n), nodeId(nodeAddress(n)), says);
}

/** A fetcher among simulated nodes. The test defines their answers over QUIC and in datagrams. */
class World {
  readonly clock = new TestClock();
  readonly fetcher: RecordSetFetcher;
  pages: (body: Uint8Array, host: string) => Promise<Uint8Array> = () => Promise.reject(new Error('closed'));
  parts: () => FindReply | null = () => null;

  constructor() {
    this.fetcher = new RecordSetFetcher(
      this.clock,
      new RecordVerifier({}, { delegations: new DelegationVerifier() }),
      { request: (_kind, { address }, body) => this.pages(body, address.host), onRequest: () => {} },
      new Uint8Array(8),
      { ask: async () => this.parts() },
    );
  }

  record(): Uint8Array {
    return serviceRecord('lang.translate', newIdentity(), { timestamp: unixSeconds(this.clock) }).record.encoded;
  }

  collection(answers: readonly NodeAnswer[], max?: number): Collection {
    const quorum = new Quorum([RECORD.service], () => true);
    return { key: KEY, types: [RECORD.service], answers, quorum, max, known: new Set() };
  }
}

test('a fetch that has enough records requests no further part', async () => {
  const world = new World();
  const node = claims(1, { quicPort: 0, count: 40 });
  let asked = 0;
  world.parts = () => {
    asked++;
    return { ...node.reply, count: 1, records: [world.record()] };
  };
  await world.fetcher.collect(world.collection([node], 1), never);
  assert.equal(asked, 16, '16 of 34 parts in parallel');
});

test('a failed node does not end the fetch while another node is still answering', async () => {
  const world = new World();
  const page = Promise.withResolvers<Uint8Array>();
  const digest = new Uint8Array(8).fill(1);
  const slow = [1, 2].map((n) => claims(n, { count: 1, digest }));
  const wanted = world.collection([...slow, claims(3, { count: 2 })]);
  const asked: string[] = [];
  world.pages = (_, host) => {
    asked.push(host);
    return host === nodeAddress(3).host ? Promise.reject(new Error('closed')) : page.promise;
  };
  let isOver = false;
  const collecting = world.fetcher.collect(wanted, never).then(() => {
    isOver = true;
  });
  await world.clock.run(500);
  await idle();
  assert.deepEqual(
    asked,
    [1, 3].map((n) => nodeAddress(n).host),
  );
  assert.ok(!isOver);
  page.resolve(encodePage({ records: [world.record()], next: 0 }));
  await collecting;
  assert.equal(wanted.quorum.records().length, 1);
});

test('a page request lists the records that the reader has, up to a limit', async () => {
  const world = new World();
  const asked: (number | undefined)[] = [];
  world.pages = async (body) => {
    const request = decodeNodeRequest(body);
    assert.ok(request?.kind === 'page');
    asked.push(request.known?.length);
    return encodePage({ records: [], next: 0 });
  };
  const digests = Array.from({ length: 4001 }, (_, i) => toHex(new Uint8Array(8).fill(i >> 8).fill(i & 255, 4)));
  for (const count of [0, 2, 4001]) {
    const known = new Set(digests.slice(0, count));
    assert.ok(await world.fetcher.page(claims(1, {}), { key: KEY, types: [RECORD.service], known }, 0, never));
  }
  assert.deepEqual(asked, [undefined, 2 * 8, 4000 * 8]);
});

test('a fetch gives up a node that returns the same page again', async () => {
  const world = new World();
  const starts: number[] = [];
  world.pages = async (body) => {
    const request = decodeNodeRequest(body);
    assert.ok(request?.kind === 'page');
    starts.push(request.from);
    return encodePage({ records: [], next: starts.length < 5 ? 1 : 0 });
  };
  await world.fetcher.collect(world.collection([claims(1, { count: 3 })]), never);
  assert.deepEqual(starts, [0, 1]);
});

test('a node that returns less over QUIC than it claims receives requests for parts', async () => {
  for (const [count, isComplete] of [
    [1, true],
    [2, false],
  ] as const) {
    const world = new World();
    const records = [world.record()];
    world.pages = async () => encodePage({ records, next: 0 });
    let parts = 0;
    world.parts = () => {
      parts++;
      return null;
    };
    await world.fetcher.collect(world.collection([claims(1, { count })]), never);
    assert.equal(parts === 0, isComplete, `${parts} parts`);
  }
});

test('a forged record in a page is ignored', async () => {
  const world = new World();
  const { record } = serviceRecord('lang.translate', newIdentity(), { timestamp: unixSeconds(world.clock) });
  const forged = Uint8Array.from(record.encoded);
  const at = Buffer.from(forged).indexOf(record.signature);
  forged.set([(forged[at] ?? 0) ^ 1], at);
  world.pages = async () => encodePage({ records: [forged], next: 0 });
  const wanted = world.collection([claims(1, { count: 1 })]);
  await world.fetcher.collect(wanted, never);
  assert.deepEqual(wanted.quorum.records(), []);
  world.pages = async () => encodePage({ records: [record.encoded], next: 0 });
  await world.fetcher.collect(wanted, never);
  assert.equal(wanted.quorum.records().length, 1);
});

test('a node that returns no parts, or always claims more records, receives a limited number of requests', async () => {
  const world = new World();
  const node = claims(1, { quicPort: 0, count: 1000 });
  const record = world.record();
  let asked = 0;
  world.parts = () => {
    asked++;
    return null;
  };
  await world.fetcher.collect(world.collection([node]), never);
  assert.ok(asked < 2 * 16, `${asked} failed parts`);
  asked = 0;
  world.parts = () => (++asked > 10_000 ? null : { ...node.reply, count: 3, records: [record] });
  await world.fetcher.collect(world.collection([node]), never);
  assert.equal(asked, 8192);
});
