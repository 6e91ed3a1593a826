import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { Holders, ObjectGetter } from '../../../src/capabilities/objects/object-getter.ts';
import { ObjectServer } from '../../../src/capabilities/objects/object-server.ts';
import { RemoteObjects } from '../../../src/capabilities/objects/remote-objects.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { lossyNodes } from '../../support/lossy-nodes.ts';
import { objectService, sha256, someBytes } from '../../support/object-world.ts';

const MIB = 1024 * 1024;
/** What may be transferred before there is a lane. */
const BEFORE_LANE_BYTES = 2 * MIB;

test('a 20 MiB object crosses a path with 40 ms and 1 % loss on a lane', async (t) => {
  const { near, far, lanes } = await lossyNodes(t, { loss: 0.01 });
  const [ours, theirs] = [await objectService(t), await objectService(t)];
  const file = join(theirs.filesRoot, 'file');
  const bytes = someBytes(20 * MIB);
  writeFileSync(file, bytes);
  await theirs.objects.register(far.aid, file);
  const server = new ObjectServer({
    isNamed: () => false,
    links: far.links,
    objects: theirs.objects,
    offered: { open: () => assert.fail('no offer') },
    clock: systemClock,
    log: silentLog,
    authorize: () => {},
    callers: { entered: () => {}, refused: () => {} },
  });
  await server.start();
  const caller = new HttpCaller(near.links, systemClock, { purpose: 'object' });
  t.after(async () => {
    caller.stop();
    await server.stop();
  });
  const remote = new RemoteObjects({ caller });
  const holders = new Holders(ours.repository, remote, ours.objects, systemClock);
  const getter = new ObjectGetter(ours.objects, holders, remote, systemClock);
  const { signal } = new AbortController();
  const request = { aid: near.aid, objectId: sha256(bytes), hint: far.aid, register: false, force: false, signal };
  const { path } = await getter.get(request);
  assert.equal(sha256(readFileSync(path)), sha256(bytes));
  const { received } = lanes.near.lanes.stats();
  assert(received > bytes.length - BEFORE_LANE_BYTES, `only ${received} bytes used a lane`);
});
