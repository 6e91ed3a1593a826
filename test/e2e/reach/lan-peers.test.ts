/** Real daemons on one LAN, whose links use TCP, while that LAN changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT type in records: strangers reach the node. */
const PUBLIC = 1;
const DEBUG = 'log_level = "debug"\n';
const MOVED_TO_TCP = 'new links to a LAN peer use TCP';
const MIB = 1024 * 1024;
const SWALLOW_TCP = `table inet wall {
  chain in {
    type filter hook input priority 0;
    iifname != "lo" meta l4proto tcp drop;
  }
}
`;

test('LAN peers use TCP on their LAN, and do not depend on it', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [10]), []);
  await using other = await LabDaemon.start(await internet.publicMachine('helper2', [11]), BOOTSTRAP);
  for (const one of [helper, other]) await one.until('strangers reach it', ({ nat_type }) => nat_type === PUBLIC);
  const [desk, shelf] = await internet.lan('lan', 2, 0);
  assert.ok(desk !== undefined && shelf !== undefined);
  await using near = await LabDaemon.start(desk, BOOTSTRAP, DEBUG);
  await using far = await LabDaemon.start(shelf, BOOTSTRAP, DEBUG);
  for (const one of [near, far]) await one.until('it has helpers', ({ helpers }) => helpers.length > 0);
  const called = await far.serve();
  const { listen } = await near.call<{ readonly listen: string }>('POST', `/tunnel/${called}`, {});
  /** How often new links have moved to TCP. */
  const movesToTcp = async (): Promise<number> => (await near.output()).split(MOVED_TO_TCP).length - 1;

  await t.test('all bytes arrive, encrypted', async () => {
    await near.pump(listen);
    assert.equal((await near.flows()).disorder, 0);
    await eventually('new links move to TCP', async () => (await movesToTcp()) > 0);
    await near.pour(listen, 8 * MIB);
    assert.equal((await near.flows()).disorder, 0);
  });

  await t.test('the called machine gets another address', async () => {
    const before = await movesToTcp();
    const [, net = ''] = /inet (10\.\d+\.0)\./.exec(await shelf.run('ip', ['-4', 'addr', 'show', 'dev', 'wan0'])) ?? [];
    await shelf.ip([
      `addr del ${net}.3/24 dev wan0`,
      `addr add ${net}.33/24 dev wan0`,
      `route replace default via ${net}.1`,
    ]);
    assert.equal((await near.flows()).disorder, 0);
    await near.reaches(listen);
    await eventually('new links move to TCP again', async () => (await movesToTcp()) > before);
  });

  await t.test('a firewall starts to drop TCP', async () => {
    await shelf.nft(SWALLOW_TCP);
    // New connections open all the time: they use the ready ones, and more are requested.
    const [{ disorder }] = await Promise.all([near.flows(), near.reaches(listen)]);
    assert.equal(disorder, 0);
    await near.pour(listen, 8 * MIB);
  });
});
