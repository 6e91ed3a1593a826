import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NatMapping } from '../../../src/foundation/domain/directory.ts';
import type { NodePlace } from '../../../src/network/peers/dial.ts';
import {
  needsWitnesses,
  PUNCH_HEAD_START_MS,
  punchDelayMs,
  REACHABLE_HEAD_START_MS,
  RELAY_HEAD_START_MS,
  relayDelayMs,
  UNLIKELY_HEAD_START_MS,
} from '../../../src/network/reachability/relay-dialers.ts';

const HELPER = { nodeKey: new Uint8Array(32).fill(2), address: { host: '203.0.113.1', port: 4122 } };

function place(natType: number, host: string, isMapped = false): NodePlace {
  const nodeKey = new Uint8Array(32).fill(1);
  return { nodeKey, natType, helpers: [HELPER], addresses: [{ host, port: 4122, isMapped }] };
}

function own(mapping: NatMapping) {
  return { interfaces: () => [{ address: '192.168.1.7', cidr: '192.168.1.7/24' }], mapping: () => mapping };
}

test('punching waits for direct dials if they may succeed', () => {
  for (const [there, ms] of [
    [place(3, '10.0.0.2'), 0],
    [place(3, '192.168.1.2'), UNLIKELY_HEAD_START_MS],
    [place(0, '198.51.100.1'), UNLIKELY_HEAD_START_MS],
    [place(1, '10.0.0.2'), REACHABLE_HEAD_START_MS],
    [place(4, '198.51.100.1', true), REACHABLE_HEAD_START_MS],
  ] as const)
    assert.equal(punchDelayMs(there, own('cone'), false), ms);
});

test('random ports wait for a relay if there is one', () => {
  for (const [there, mapping] of [
    [place(3, '10.0.0.2'), 'symmetric'],
    [place(4, '10.0.0.2'), 'cone'],
  ] as const) {
    assert.equal(punchDelayMs(there, own(mapping), true), RELAY_HEAD_START_MS);
    assert.equal(punchDelayMs(there, own(mapping), false), 0);
    assert.equal(relayDelayMs(there, own(mapping)), 0);
  }
  assert.equal(punchDelayMs(place(4, '10.0.0.2'), own('open'), true), 0);
});

test('a relay waits for punching, unless this needs random ports or is impossible', () => {
  assert.equal(relayDelayMs(place(3, '10.0.0.2'), own('cone')), PUNCH_HEAD_START_MS);
  assert.equal(relayDelayMs(place(4, '10.0.0.2'), own('open')), PUNCH_HEAD_START_MS);
  assert.equal(relayDelayMs(place(4, '10.0.0.2'), own('symmetric')), 0);
  assert.equal(relayDelayMs(place(4, '192.168.1.2'), own('symmetric')), UNLIKELY_HEAD_START_MS);
  const ipv6 = place(4, '2001:db8::2');
  assert.equal(relayDelayMs(ipv6, own('symmetric')), UNLIKELY_HEAD_START_MS);
  const both = { ...own('symmetric'), interfaces: () => [{ address: '2001:db8:1::1', cidr: null }] };
  assert.equal(relayDelayMs(ipv6, both), UNLIKELY_HEAD_START_MS + PUNCH_HEAD_START_MS);
  const one = { ...both, mapping: own('cone').mapping };
  assert.equal(relayDelayMs(ipv6, one), UNLIKELY_HEAD_START_MS + PUNCH_HEAD_START_MS);
  assert.equal(punchDelayMs(ipv6, one, true), UNLIKELY_HEAD_START_MS);
});

test('witnesses are needed if only one side has a symmetric NAT and the other side has a NAT too', () => {
  const needing = (natType: number, mapping: NatMapping) => needsWitnesses(place(natType, '10.0.0.2'), own(mapping));
  assert.deepEqual(
    [needing(3, 'cone'), needing(4, 'cone'), needing(3, 'symmetric'), needing(4, 'symmetric'), needing(4, 'open')],
    [false, true, true, false, false],
  );
});
