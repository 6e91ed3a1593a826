import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon, type LabStatus } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';
import type { NatKind } from '../../support/lab/nat.ts';

/** The last bytes of the public addresses of the nodes that help. */
const HELPERS = [10, 11] as const;
const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT types of records. */
const [PUBLIC, PORT_RESTRICTED, SYMMETRIC] = [1, 3, 4];

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
  readonly is_relayed: boolean;
}

/** Starts a daemon behind a router. */
async function behind(internet: Internet, name: string, kind: NatKind): Promise<LabDaemon> {
  return await LabDaemon.start(await internet.behind(name, [kind]), BOOTSTRAP);
}

/** Waits until a daemon has its helpers, and knows what stands before it. */
async function isHelped(daemon: LabDaemon, natType: number): Promise<void> {
  await daemon.until(
    `helpers, and NAT type ${natType}`,
    ({ helpers, nat_type }) => helpers.length === HELPERS.length && nat_type === natType,
  );
}

/** What a tunnel goes by now. */
async function pathOf(daemon: LabDaemon, id: string): Promise<Pick<Opened, 'path' | 'is_relayed'>> {
  const { path, is_relayed } = await daemon.call<Opened>('GET', `/tunnel/${id}`);
  return { path, is_relayed };
}

test('daemons behind routers reach each other through others that strangers reach', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const [first, second] = HELPERS;
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [first]), []);
  await using otherHelper = await LabDaemon.start(await internet.publicMachine('helper2', [second]), BOOTSTRAP);
  const isPublic = ({ nat_type }: { readonly nat_type: number }): boolean => nat_type === PUBLIC;
  for (const one of [helper, otherHelper]) await one.until('strangers reach a helper', isPublic);
  await using cone = await behind(internet, 'cone', 'cone');
  await using otherCone = await behind(internet, 'cone2', 'cone');
  await using symmetric = await behind(internet, 'sym', 'symmetric');
  await using otherSymmetric = await behind(internet, 'sym2', 'symmetric');
  for (const one of [cone, otherCone]) await isHelped(one, PORT_RESTRICTED);
  for (const one of [symmetric, otherSymmetric]) await isHelped(one, SYMMETRIC);
  const [caller, symmetricCaller] = [await cone.serve(), await symmetric.serve()];
  const [called, symmetricCalled] = [await otherCone.serve(), await otherSymmetric.serve()];
  const relayed = async (): Promise<number> => {
    const all = await Promise.all([helper, otherHelper].map((one) => one.call<LabStatus>('GET', '/status')));
    return all.reduce((bytes, status) => bytes + status.relayed.bytes, 0);
  };

  await t.test('both routers keep a port: they punch a way', async () => {
    const { listen, id } = await cone.call<Opened>('POST', `/tunnel/${called}`, { local_aid: caller });
    assert.equal(await cone.echo(listen, 'over a punched way'), 'over a punched way');
    assert.deepEqual(await pathOf(cone, id), { path: 'punched', is_relayed: false });
    assert.equal(await relayed(), 0);
  });

  await t.test(
    'one router changes ports: random ones are opened, and a relay carries until one of them is met',
    async () => {
      const { listen, id } = await cone.call<Opened>('POST', `/tunnel/${symmetricCalled}`, {});
      assert.equal(await cone.echo(listen, 'by whatever way'), 'by whatever way');
      await eventually('a way is punched', async () => (await pathOf(cone, id)).path === 'punched');
      assert.equal(await cone.echo(listen, 'over random ports'), 'over random ports');
      assert.deepEqual(await pathOf(cone, id), { path: 'punched', is_relayed: false });
    },
  );

  await t.test('both change ports: not where relays are forbidden, and by a relay where they are not', async () => {
    const path = `/tunnel/${symmetricCalled}`;
    const refused = await symmetric.ask('POST', path, { local_aid: symmetricCaller, disable_relay: true });
    assert.equal(refused.status, 412, JSON.stringify(refused.body));
    const before = await relayed();
    const { listen, id } = await symmetric.call<Opened>('POST', path, {});
    assert.equal(await symmetric.echo(listen, 'over a relay'), 'over a relay');
    assert.deepEqual(await pathOf(symmetric, id), { path: 'relay', is_relayed: true });
    assert.ok((await relayed()) > before);
  });
});
