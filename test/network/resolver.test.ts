import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Address } from '../../src/foundation/address.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { agentKey } from '../../src/foundation/records/keys.ts';
import { type EndpointsPayload, encodeEndpointsPayload } from '../../src/foundation/records/payloads.ts';
import type { SignedRecord } from '../../src/foundation/records/record.ts';
import { RECORD, type RecordType } from '../../src/foundation/records/types.ts';
import type { AgentLocation } from '../../src/network/links/types.ts';
import { Resolver } from '../../src/network/resolver.ts';
import { delegateAnew, newIdentity, type TestIdentity } from '../support/identities.ts';
import { testRecord } from '../support/records.ts';
import { ScriptedRecords } from '../support/scripted-records.ts';
import { TestClock } from '../support/test-clock.ts';

const NODE_KEY = new Uint8Array(32).fill(7);

function world() {
  const clock = new TestClock();
  const network = new ScriptedRecords(clock);
  const lookups: string[] = [];
  const resolver = new Resolver({
    network,
    clock,
    log: silentLog,
    lookupHost: async (host) => {
      lookups.push(host);
      if (host === 'gone.example') throw new Error('ENOTFOUND');
      return ['192.0.2.77', '2001:db8::77', '192.0.2.78'];
    },
  });
  const publish = async (
    owner: TestIdentity,
    seq: number,
    endpoints: readonly string[] = ['quic://192.0.2.1:4122'],
    ttl = 3600,
    more: Partial<EndpointsPayload> = {},
  ): Promise<SignedRecord> => {
    const plain = { endpoints, natType: 1, nodeKey: NODE_KEY, helpers: [], customTypes: [] };
    const payload = encodeEndpointsPayload({ ...plain, ...more });
    const record = testRecord(owner, RECORD.endpoints, { seq, payload, ttl, timestamp: clock.now() / 1000 });
    await network.put(agentKey(owner.aid), record);
    return record;
  };
  return { clock, network, resolver, publish, lookups };
}

describe('the resolver', () => {
  test('addresses and helpers that must not be dialed are removed, including those from names', async () => {
    const { clock, network, publish } = world();
    const owner = newIdentity();
    const at = (host: string) => ({ host, port: 4122 });
    const mayDial = ({ host, port }: Address): boolean => port === 4122 && !['127.0.0.1', '10.0.0.9'].includes(host);
    const lookupHost = async (): Promise<string[]> => ['127.0.0.1', '192.0.2.78'];
    const resolver = new Resolver({ network, clock, log: silentLog, lookupHost, mayDial });
    const endpoints = ['192.0.2.1:4122', '127.0.0.1:4122', '192.0.2.1:22', 'node.example:4122'];
    const helpers = ['10.0.0.9:4122', '192.0.2.9:4122'].map((address) => ({ nodeKey: NODE_KEY, address }));
    await publish(
      owner,
      1,
      endpoints.map((one) => `quic://${one}`),
      3600,
      { helpers },
    );
    const place = await resolver.locate(owner.aid);
    assert.deepEqual(place.addresses, [at('192.0.2.1'), at('192.0.2.78')]);
    assert.deepEqual(place.helpers, [{ nodeKey: NODE_KEY, address: at('192.0.2.9') }]);
  });

  test('concurrent requests share one lookup', async () => {
    const { network, resolver, publish } = world();
    const owner = newIdentity();
    const record = await publish(owner, 1);
    const answers = await Promise.all(Array.from({ length: 50 }, async () => resolver.resolve(owner.aid)));
    assert.ok(answers.every((answer) => answer.record === record));
    assert.equal(network.reads, 1);
    await resolver.resolve(owner.aid);
    assert.equal(network.reads, 1);
  });

  test('a likely location is reported, unless a newer delegation is known', async () => {
    const { clock, network, resolver, publish } = world();
    const owner = newIdentity();
    const first = await publish(owner, 1, ['quic://192.0.2.9:4122']);
    await publish(owner, 2);
    network.first = first;
    const reported: AgentLocation[] = [];
    const onLikely = (place: AgentLocation): void => void reported.push(place);
    const hosts = ({ addresses }: AgentLocation) => addresses.map(({ host }) => host);
    assert.deepEqual(hosts(await resolver.locate(owner.aid, { onLikely })), ['192.0.2.1']);
    await turn();
    assert.deepEqual(reported.map(hosts), [['192.0.2.9']]);
    await resolver.locate(owner.aid, { onLikely });
    const other = newIdentity();
    await publish(other, 1);
    await resolver.locate(other.aid, { onLikely });
    await turn();
    assert.equal(reported.length, 1, 'no report if the location is cached, and no record of another agent');
    await publish(delegateAnew(owner.master, owner.delegation.issuedAt + 1), 1);
    clock.advance(61_000);
    await resolver.locate(owner.aid, { onLikely });
    await turn();
    assert.equal(reported.length, 2);
    clock.advance(61_000);
    await resolver.locate(owner.aid, { onLikely });
    await turn();
    assert.equal(reported.length, 2, 'the newer delegation is known');
  });

  test('an answer is cached for a minute, and refreshed meanwhile', async () => {
    const { clock, network, resolver, publish } = world();
    const owner = newIdentity();
    await publish(owner, 1);
    await resolver.resolve(owner.aid);
    await publish(owner, 2);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
    clock.advance(5000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
    await turn();
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 2);
    assert.equal(network.reads, 2);
    await publish(owner, 3);
    clock.advance(60_000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 3);
  });

  test('an expired record is never returned', async () => {
    const { clock, network, resolver, publish } = world();
    const owner = newIdentity();
    await publish(owner, 1, [], 10);
    await resolver.resolve(owner.aid);
    network.replicas = 0;
    clock.advance(9000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
    await turn();
    clock.advance(1000);
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed', status: 404 });
  });

  test('a record is not returned after the end of its delegation, also if it was known', async () => {
    const { clock, network, resolver, publish } = world();
    const start = clock.now() / 1000;
    const owner = delegateAnew(KeyPair.generate(), start, start + 10);
    await publish(owner, 1, [], 3600);
    await resolver.resolve(owner.aid);
    network.replicas = 0;
    clock.advance(9000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
    await turn();
    network.kept.length = 0;
    clock.advance(1000);
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed', status: 404 });
  });

  test('a short network outage does not lose a signed answer', async () => {
    const { clock, network, resolver, publish } = world();
    const owner = newIdentity();
    await publish(owner, 1);
    await resolver.resolve(owner.aid);
    network.replicas = 0;
    clock.advance(10 * 60_000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
    await assert.rejects(resolver.resolve(owner.aid, { fresh: true }), { code: 'resolve_failed' });
  });

  test('"Not found" is cached for a second', async () => {
    const { clock, network, resolver, publish } = world();
    const owner = newIdentity();
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed' });
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed' });
    assert.equal(network.reads, 1);
    await publish(owner, 1);
    clock.advance(1000);
    assert.equal((await resolver.resolve(owner.aid)).record.seq, 1);
  });

  test('a fresh lookup bypasses the cache', async () => {
    const { resolver, publish } = world();
    const owner = newIdentity();
    await publish(owner, 1);
    await resolver.resolve(owner.aid);
    await publish(owner, 2, ['quic://192.0.2.2:4122']);
    assert.deepEqual((await resolver.locate(owner.aid)).addresses, [{ host: '192.0.2.1', port: 4122 }]);
    assert.deepEqual((await resolver.locate(owner.aid, { fresh: true })).addresses, [
      { host: '192.0.2.2', port: 4122 },
    ]);
    assert.deepEqual((await resolver.locate(owner.aid)).addresses, [{ host: '192.0.2.2', port: 4122 }]);
  });

  test('an older record, or one under an older delegation, does not replace a newer one', async () => {
    const { clock, network, resolver, publish } = world();
    const old = newIdentity();
    const renewed = delegateAnew(old.master, old.delegation.issuedAt + 1);
    clock.advance(2000);
    const replayed = await publish(old, 99);
    await publish(renewed, 1);
    await resolver.resolve(old.aid);
    network.list = async () => [replayed];
    clock.advance(61_000);
    const answer = await resolver.resolve(old.aid);
    assert.deepEqual(answer.record.delegation, renewed.delegation);
    const location = await resolver.locate(old.aid);
    assert.equal(location.delegationIssuedAt, renewed.delegation.issuedAt);
    clock.advance(2 * 3600_000);
    const late = testRecord(old, RECORD.endpoints, {
      seq: 100,
      payload: replayed.payload,
      timestamp: clock.now() / 1000,
    });
    network.list = async () => [late];
    await assert.rejects(resolver.resolve(old.aid), { code: 'resolve_failed' });
  });

  test('an aborted caller is released, and other callers keep waiting', async () => {
    const { network, resolver, publish } = world();
    const owner = newIdentity();
    await publish(owner, 1);
    const gate = Promise.withResolvers<void>();
    const list = network.list.bind(network);
    network.list = async (...args) => {
      await gate.promise;
      return list(...args);
    };
    const controller = new AbortController();
    const aborted = resolver.resolve(owner.aid, { signal: controller.signal });
    const waiting = resolver.resolve(owner.aid);
    controller.abort();
    await assert.rejects(aborted, { code: 'cancelled' });
    gate.resolve();
    assert.equal((await waiting).record.seq, 1);
  });

  test('names in endpoints are resolved, up to a limit', async () => {
    const { resolver, publish, lookups } = world();
    const owner = newIdentity();
    await publish(owner, 1, [
      'quic://[2001:db8::1]:1',
      'quic://gone.example:2',
      'quic://here.example:3',
      'quic://third.example:4',
      'quic://192.0.2.1:5',
    ]);
    assert.deepEqual((await resolver.locate(owner.aid)).addresses, [
      { host: '2001:db8::1', port: 1 },
      { host: '192.0.2.77', port: 3 },
      { host: '2001:db8::77', port: 3 },
      { host: '192.0.2.1', port: 5 },
    ]);
    assert.deepEqual(lookups, ['gone.example', 'here.example']);
  });

  test('names are resolved on each call, and a newer record applies immediately', async () => {
    const { resolver, publish, lookups } = world();
    const owner = newIdentity();
    await publish(owner, 1, ['quic://192.0.2.1:5']);
    const first = await resolver.locate(owner.aid);
    assert.deepEqual(await resolver.locate(owner.aid), first);
    resolver.learn(await publish(owner, 2, ['quic://here.example:3', 'quic://192.0.2.2:5']));
    const hosts = async () => (await resolver.locate(owner.aid)).addresses.map(({ host }) => host);
    assert.deepEqual(await hosts(), ['192.0.2.77', '2001:db8::77', '192.0.2.2']);
    assert.deepEqual(await hosts(), ['192.0.2.77', '2001:db8::77', '192.0.2.2']);
    assert.deepEqual(lookups, ['here.example', 'here.example']);
  });

  test('the location includes the helpers of the node, its NAT type and the ports of its router', async () => {
    const { resolver, publish, lookups } = world();
    const owner = newIdentity();
    const helperKey = new Uint8Array(32).fill(9);
    await publish(owner, 1, ['quic://198.51.100.9:40000', 'quic://here.example:3', 'quic://10.0.0.7:4122'], 3600, {
      mapped: ['quic://198.51.100.9:40000', 'quic://here.example:3'],
      natType: 4,
      helpers: [
        { nodeKey: helperKey, address: '203.0.113.1:4122' },
        { nodeKey: helperKey, address: 'helper.example:4122' },
      ],
    });
    const { addresses, helpers, natType } = await resolver.locate(owner.aid);
    assert.deepEqual(addresses, [
      { host: '198.51.100.9', port: 40_000, isMapped: true },
      { host: '192.0.2.77', port: 3, isMapped: true },
      { host: '2001:db8::77', port: 3, isMapped: true },
      { host: '10.0.0.7', port: 4122 },
    ]);
    assert.deepEqual(helpers, [{ nodeKey: helperKey, address: { host: '203.0.113.1', port: 4122 } }]);
    assert.equal(natType, 4);
    assert.deepEqual(lookups, ['here.example'], 'no lookup for a helper');
  });

  test('a malformed endpoint record counts as not found', async () => {
    const { network, resolver, clock } = world();
    const owner = newIdentity();
    const odd = testRecord(owner, RECORD.endpoints, { payload: new Uint8Array([1]), timestamp: clock.now() / 1000 });
    await network.put(agentKey(owner.aid), odd);
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed' });
  });

  test('a record published by this node is known immediately', async () => {
    const { network, resolver, publish } = world();
    const owner = newIdentity();
    await assert.rejects(resolver.resolve(owner.aid), { code: 'resolve_failed' });
    const record = await publish(owner, 1);
    resolver.learn(record);
    assert.equal((await resolver.resolve(owner.aid)).record, record);
    assert.equal(network.reads, 1);
  });

  test('records under a replaced delegation are not returned', async () => {
    const { network, resolver, publish, clock } = world();
    const stolen = newIdentity();
    const owner = delegateAnew(stolen.master, stolen.delegation.issuedAt + 10);
    const timestamp = clock.now() / 1000;
    const put = async (who: TestIdentity, type: RecordType): Promise<void> => {
      await network.put(agentKey(who.aid), testRecord(who, type, { timestamp }));
    };
    await put(stolen, RECORD.profile);
    await put(stolen, RECORD.customLast);
    const types = async (type: RecordType | null): Promise<readonly RecordType[]> =>
      (await resolver.records(owner.aid, type)).map((record) => record.type);
    assert.deepEqual(await types(null), [RECORD.profile, RECORD.customLast]);
    await publish(owner, 1);
    await put(owner, RECORD.customFirst + 1);
    assert.deepEqual(await types(null), [RECORD.endpoints, RECORD.customFirst + 1]);
    assert.deepEqual(await types(RECORD.profile), []);
    assert.deepEqual(await types(RECORD.customFirst + 1), [RECORD.customFirst + 1]);
    assert.deepEqual(await types(RECORD.endpoints), [RECORD.endpoints]);
  });

  test('an agent without any record is not found; an agent without a record of one type has an empty answer', async () => {
    const { aid } = newIdentity();
    const { resolver } = world();
    await assert.rejects(resolver.records(aid, null), { code: 'resolve_failed', details: { aid } });
    assert.deepEqual(await resolver.records(aid, RECORD.profile), []);
  });

  test('records under a replaced delegation are not returned, even if the newer record has expired', async () => {
    const { network, resolver, publish, clock } = world();
    const stolen = newIdentity();
    const owner = delegateAnew(stolen.master, stolen.delegation.issuedAt + 10);
    await publish(owner, 1, [], 10);
    await resolver.resolve(owner.aid);
    clock.advance(11_000);
    const profile = testRecord(stolen, RECORD.profile, { timestamp: clock.now() / 1000 });
    await network.put(agentKey(owner.aid), profile);
    assert.deepEqual(await resolver.records(owner.aid, null), []);
  });
});

test('an agent is not reported as missing before the nodes near its key were heard', async () => {
  const clock = new TestClock();
  const network = new ScriptedRecords(clock);
  const resolver = new Resolver({
    network,
    clock,
    log: silentLog,
    lookupHost: async () => [],
    becomesReady: async () => false,
  });
  const { aid } = newIdentity();
  const notYet = { code: 'network_unavailable', message: /Try again in a few seconds/ };
  network.isHeard = false;
  await assert.rejects(resolver.resolve(aid), notYet);
  assert.equal(network.reads, 2, 'the lookup was repeated');
  await assert.rejects(resolver.resolve(aid), notYet, 'the cached result says the same');
  await assert.rejects(resolver.records(aid, null), notYet);
  network.isHeard = true;
  clock.advance(1_000);
  await assert.rejects(resolver.resolve(aid), { code: 'resolve_failed' });
  await assert.rejects(resolver.records(aid, null), { code: 'resolve_failed' });
});

test('if this node is offline, a failed lookup reports this instead of a missing agent', async () => {
  const clock = new TestClock();
  let trouble: SvcError | null = new SvcError('network_unavailable');
  const resolver = new Resolver({
    network: new ScriptedRecords(clock),
    clock,
    log: silentLog,
    lookupHost: async () => [],
    explainFailure: async () => trouble,
  });
  const { aid } = newIdentity();
  await assert.rejects(resolver.resolve(aid), { code: 'network_unavailable' });
  await assert.rejects(resolver.records(aid, null), { code: 'network_unavailable' });
  trouble = null;
  await assert.rejects(resolver.resolve(aid), { code: 'resolve_failed' });
});
