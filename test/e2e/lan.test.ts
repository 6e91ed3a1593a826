import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { ready } from '../support/network.ts';

test('two daemons on one LAN discover each other; a daemon of another network does not', async () => {
  // Names of this run only: other runs of this test and real daemons on the LAN must not join.
  const [network, other] = [randomUUID(), randomUUID()];
  const env = { SVCD_MDNS: 'true', SVCD_NETWORK: network };
  await using first = await TestDaemon.start({ env });
  await using second = await TestDaemon.start({ env });
  await using stranger = await TestDaemon.start({ env: { ...env, SVCD_NETWORK: other } });
  await Promise.all([ready(first), ready(second)]);
  const aid = await first.newAgent();
  await first.call('POST', `/agents/${aid}/publish`);
  assert.equal((await second.call<{ aid: string }>('POST', `/resolve/${aid}`)).aid, aid);
  assert.equal((await stranger.call<{ dht_peers: number }>('GET', '/status')).dht_peers, 0);
  assert.equal((await stranger.request('POST', `/resolve/${aid}`)).status, 404);
});
