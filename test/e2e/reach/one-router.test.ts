import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Party, part } from '../../lab/parting.ts';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

/** The last bytes of the public addresses of the helpers. */
const HELPERS = [10, 11] as const;
const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT type in records: strangers reach the node. */
const PUBLIC = 1;
/** Machines behind the router, and which machines the LAN isolates. */
const MACHINES = 3;
const APART = 2;

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

test('daemons behind one router connect on their LAN or, if that isolates them, through a relay or the router itself', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const [first, second] = HELPERS;
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [first]), []);
  await using otherHelper = await LabDaemon.start(await internet.publicMachine('helper2', [second]), BOOTSTRAP);
  for (const one of [helper, otherHelper])
    await one.until('strangers reach a helper', ({ nat_type }) => nat_type === PUBLIC);
  const machines = await internet.lan('lan', MACHINES, APART);
  const started = await Promise.all(machines.map((machine) => LabDaemon.start(machine, BOOTSTRAP)));
  await using daemons = new AsyncDisposableStack();
  for (const one of started) daemons.use(one);
  const [a, b, c] = started;
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  for (const one of started) await one.until('helpers', ({ helpers }) => helpers.length === HELPERS.length);
  const [near, apart] = [await c.serve(), await b.serve()];
  const pathOf = async (id: string): Promise<string> => (await a.call<Opened>('GET', `/tunnel/${id}`)).path;
  const own = await a.serve();

  await t.test('on one LAN they need no other node', async () => {
    const { listen, id } = await a.call<Opened>('POST', `/tunnel/${near}`, {});
    assert.equal(await a.echo(listen, 'next door'), 'next door');
    await eventually('it stays on the LAN', async () => (await pathOf(id)) === 'lan');
  });

  await t.test('isolated: through a relay', async () => {
    const { listen, id } = await a.call<Opened>('POST', `/tunnel/${apart}`, {});
    assert.equal(await a.echo(listen, 'by a relay'), 'by a relay');
    assert.equal(await pathOf(id), 'relay');
  });

  await t.test("isolated: through the router's hairpin, if it has one", async () => {
    await internet.hairpin('lan');
    const party = async (daemon: LabDaemon, aid: string): Promise<Party> => {
      const { node_aid: node } = await daemon.call<{ node_aid: string }>('GET', '/status');
      return { daemon, aid, node };
    };
    await part(await party(a, own), await party(b, apart));
    const { listen, id } = await a.call<Opened>('POST', `/tunnel/${apart}`, {});
    assert.equal(await a.echo(listen, 'out and in again'), 'out and in again');
    await eventually('it uses the router only', async () => (await pathOf(id)) === 'punched');
    assert.equal(await a.echo(listen, 'without a relay'), 'without a relay');
  });
});
