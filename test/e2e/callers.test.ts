import assert from 'node:assert/strict';
import { test } from 'node:test';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';

interface Callers {
  readonly callers: readonly { readonly aid: string; readonly last_refusal: object | null }[];
}

test('an owner sees a refused caller, allows it from that list, and sees its call', async () => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [here, there] = [network.at(0), network.at(1)];
  const { aid } = await svcJson<{ aid: string }>(here, 'register', '--service-tcp', service.address);
  const { aid: guest } = await svcJson<{ aid: string }>(there, 'register');
  assert.match(await svcOk(here, 'callers'), /^No calls since the daemon started/);
  await svcOk(here, 'agents', 'acl', 'default', aid, 'deny');
  assert.equal((await svc(there, ['get', aid, '/hello'])).code, 4);
  assert.equal((await svc(there, ['tunnel', 'open', aid])).code, 4);

  const { callers } = await here.call<Callers>('GET', `/agents/${aid}/callers`);
  assert.deepEqual(
    callers.map((one) => ({ ...one, first_at: '', last_at: '', last_refusal: { ...one.last_refusal, at: '' } })),
    [
      {
        ...{ aid: guest, label: null, calls: 0, tunnels: 0, objects: 0, refused: 2, access: 'deny' },
        ...{ first_at: '', last_at: '', last_refusal: { at: '', kind: 'tunnel', code: 'access_denied' } },
      },
    ],
  );

  await svcOk(here, 'agents', 'acl', 'allow', aid, '--aid', guest);
  await svcOk(there, 'get', aid, '/hello');
  await svcOk(here, 'alias', 'add', 'guest', guest);
  assert.match(await svcOk(here, 'callers'), /\nguest +\d+ s ago +1 +0 +0 +2 +yes +access list, \d+ s ago$/);
  // The node's own event log reports all of this.
  await svcOk(there, 'tunnel', 'open', aid);
  const reported = await eventually('the tunnel is reported', async () => {
    const lines = await svcOk(there, 'events', '--node', '--full');
    return lines.includes('tunnel.opened') ? lines : undefined;
  });
  // The network may be ready before or after the agent exists.
  assert.match(reported, /network {2}\{"ready":true,/);
  assert.match(reported, new RegExp(`agent.registered[^]*tunnel.opened {2}{[^\\n]*"remote_aid":"${aid}"`));
  assert.match(reported, /link\.opened {2}\{"node":"aid1\w+","agents":\[[^\n]*"path":"lan"/);
  const refused = `${aid} {2}call.refused {2}{"caller":"${guest} \\(guest\\)","kind":"call","code":"access_denied"}`;
  assert.match(await svcOk(here, 'events', '--node', '--full', '--types', 'call.refused'), new RegExp(refused));
  // Remote administrators receive the same events.
  const { node_aid } = await there.call<{ node_aid: string }>('GET', '/status');
  const { node_aid: served } = await here.call<{ node_aid: string }>('GET', '/status');
  await svcOk(here, 'admin', 'on');
  await svcOk(here, 'admin', 'allow', node_aid);
  assert.equal(await svcOk(there, '--via', served, 'callers', '--aid', aid, '--quiet'), guest);
});
