import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { AccessControl } from '../../../src/capabilities/access/access-control.ts';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { cheapDerivation } from '../../support/cheap-scrypt.ts';
import { eventually } from '../../support/eventually.ts';

test('calls under real access control: denied, allowed by access token and by AID, denied again during a response', async (t) => {
  const world = await callWorld(t);
  const { clock } = world;
  const repository = new AccessRepository(Store.open(':memory:', MIGRATIONS));
  const lists = new AccessLists(repository, clock, cheapDerivation);
  const control = new AccessControl(lists, clock, cheapDerivation);
  world.access = (request) => control.authorize(request);
  lists.onChange((subject) => {
    if (subject !== 'node') void world.server.recheck(subject);
  });
  t.after(() => lists.stop());
  const service = await webService(t, (request, response) => {
    if (request.url === '/stream') response.write('begin');
    else response.end('ok');
  });
  world.bound.set(world.remote, service.bound);

  assert.equal(await textOf(await world.call()), 'ok');
  lists.setDefault(world.remote, 'deny');
  await assert.rejects(world.call(), { code: 'access_denied' });
  const { secret, id } = await lists.allow(world.remote, { generateSecret: true });
  await assert.rejects(world.call({ accessToken: 'svcs_wrong' }), { code: 'access_denied' });
  assert.equal(await textOf(await world.call({ accessToken: secret })), 'ok');

  const bySecret = await world.call({ path: '/stream', accessToken: secret });
  await once(bySecret.body, 'data');
  await lists.allow(world.remote, { aid: world.local });
  const byAid = await world.call({ path: '/stream' });
  await once(byAid.body, 'data');
  lists.remove(world.remote, 'allow', id);
  assert.equal(world.server.active, 2, 'allowed by AID, regardless of the access token');
  const broken = [bySecret, byAid].map((answer) => assert.rejects(textOf(answer)));
  lists.deny(world.remote, world.local);
  await Promise.all(broken);
  await eventually('all slots are free', () => world.server.active === 0);
  await assert.rejects(world.call(), { code: 'access_denied' });
});
