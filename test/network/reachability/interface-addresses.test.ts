import assert from 'node:assert/strict';
import type { NetworkInterfaceInfo } from 'node:os';
import { test } from 'node:test';
import { CACHE_MS, InterfaceAddresses } from '../../../src/network/reachability/interface-addresses.ts';
import { TestClock } from '../../support/test-clock.ts';

function at(address: string): NetworkInterfaceInfo {
  const [netmask, mac] = ['255.255.255.0', '02:00:00:00:00:01'];
  return { address, netmask, mac, family: 'IPv4', internal: false, cidr: `${address}/24` };
}

test('the interfaces are cached briefly, until a refresh, whatever time the clock shows', () => {
  const clock = new TestClock();
  let [reads, host] = [0, '192.0.2.1'];
  const read = (): NodeJS.Dict<NetworkInterfaceInfo[]> => {
    reads++;
    return { eth0: [at(host)], gone: undefined };
  };
  const own = new InterfaceAddresses({ clock, read });
  const seen = (all: readonly { readonly address: string }[]): string => all.map(({ address }) => address).join();
  assert.equal(seen(own.recent()), '192.0.2.1');
  host = '192.0.2.2';
  clock.jump(CACHE_MS - 1);
  assert.deepEqual([seen(own.recent()), reads], ['192.0.2.1', 1]);
  assert.deepEqual([seen(own.read()), seen(own.recent()), reads], ['192.0.2.2', '192.0.2.2', 2]);
  host = '192.0.2.3';
  clock.jump(CACHE_MS);
  assert.deepEqual([seen(own.recent()), reads], ['192.0.2.3', 3]);
  host = '192.0.2.4';
  clock.jump(-3600_000);
  assert.deepEqual([seen(own.recent()), reads], ['192.0.2.3', 3]);
  clock.jump(CACHE_MS);
  assert.deepEqual([seen(own.recent()), reads], ['192.0.2.4', 4]);
});

test('without a free descriptor, the last known interfaces count', () => {
  const clock = new TestClock();
  let isPossible = true;
  const read = (): NodeJS.Dict<NetworkInterfaceInfo[]> => {
    if (!isPossible) throw new Error('EMFILE');
    return { eth0: [at('192.0.2.1')] };
  };
  const own = new InterfaceAddresses({ clock, read });
  assert.equal(own.read()[0]?.address, '192.0.2.1');
  isPossible = false;
  clock.jump(CACHE_MS);
  assert.equal(own.recent()[0]?.address, '192.0.2.1');
});
