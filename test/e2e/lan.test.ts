import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { ready } from '../support/network.ts';

test('two daemons on one LAN find each other with no configuration; another network stays apart', async () => {
  const env = { SVCD_MDNS: 'true' };
  await using first = await TestDaemon.start({ env });
  await using second = await TestDaemon.start({ env });
  await using stranger = await TestDaemon.start({ env: { ...env, SVCD_NETWORK: 'elsewhere' } });
  await Promise.all([ready(first), ready(second)]);
  const aid = await first.newAgent();
  await first.call('POST', `/agents/${aid}/publish`);
  assert.equal((await second.call<{ aid: string }>('POST', `/resolve/${aid}`)).aid, aid);
  assert.equal((await stranger.call<{ dht_peers: number }>('GET', '/status')).dht_peers, 0);
  assert.equal((await stranger.request('POST', `/resolve/${aid}`)).status, 404);
});
