/** Real daemons on one LAN, whose links go over TCP, while that LAN changes under them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT type of records: strangers reach the node. */
const PUBLIC = 1;
const DEBUG = 'log_level = "debug"\n';
const WENT_OVER = 'new links to a neighbour go over TCP';
const MIB = 1024 * 1024;
const SWALLOW_TCP = `table inet wall {
  chain in {
    type filter hook input priority 0;
    iifname != "lo" meta l4proto tcp drop;
  }
}
`;

test('neighbours speak TCP on their LAN, and do not depend on it', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [10]), []);
  await using other = await LabDaemon.start(await internet.publicMachine('helper2', [11]), BOOTSTRAP);
  for (const one of [helper, other]) await one.until('strangers reach it', ({ nat_type }) => nat_type === PUBLIC);
  const [desk, shelf] = await internet.lan('lan', 2, 0);
  assert.ok(desk !== undefined && shelf !== undefined);
  await using near = await LabDaemon.start(desk, BOOTSTRAP, DEBUG);
  await using far = await LabDaemon.start(shelf, BOOTSTRAP, DEBUG);
  for (const one of [near, far]) await one.until('it is helped', ({ helpers }) => helpers.length > 0);
  const called = await far.serve();
  const { listen } = await near.call<{ readonly listen: string }>('POST', `/tunnel/${called}`, {});
  /** How often new links have gone over to TCP. */
  const wentOver = async (): Promise<number> => (await near.output()).split(WENT_OVER).length - 1;

  await t.test('all bytes arrive, sealed', async () => {
    await near.pump(listen);
    assert.equal((await near.flows()).disorder, 0);
    await eventually('it goes over TCP', async () => (await wentOver()) > 0);
    await near.pour(listen, 8 * MIB);
    assert.equal((await near.flows()).disorder, 0);
  });

  await t.test('the called machine gets another address', async () => {
    const before = await wentOver();
    const [, net = ''] = /inet (10\.\d+\.0)\./.exec(await shelf.run('ip', ['-4', 'addr', 'show', 'dev', 'wan0'])) ?? [];
    await shelf.ip([
      `addr del ${net}.3/24 dev wan0`,
      `addr add ${net}.33/24 dev wan0`,
      `route replace default via ${net}.1`,
    ]);
    assert.equal((await near.flows()).disorder, 0);
    await near.reaches(listen);
    await eventually('it goes over TCP again', async () => (await wentOver()) > before);
  });

  await t.test('a firewall begins to swallow TCP', async () => {
    await shelf.nft(SWALLOW_TCP);
    // New connections are made all the while: they take what is ready, and ask for more.
    const [{ disorder }] = await Promise.all([near.flows(), near.reaches(listen)]);
    assert.equal(disorder, 0);
    await near.pour(listen, 8 * MIB);
  });
});
