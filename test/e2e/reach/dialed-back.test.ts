/** A path that only the called node can replace, because the caller has no current address of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutputOf } from '../../../src/operations/operation.ts';
import type { reachOperations } from '../../../src/operations/reach.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
const HELPS_NOBODY = 'help_others = false\n';

type Links = OutputOf<typeof reachOperations.nodeLinks>;

test('a called node without helpers gets another address: it dials the caller, and open connections continue', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [10]), []);
  await using caller = await LabDaemon.start(await internet.publicMachine('open', [20]), BOOTSTRAP, HELPS_NOBODY);
  await using called = await LabDaemon.start(await internet.behind('home', ['cone']), BOOTSTRAP);
  await caller.until('it is in the network', ({ network_ready }) => network_ready);
  await called.until('it has helpers', ({ helpers }) => helpers.length === 1);
  const [from, to] = [await caller.serve(), await called.serve()];
  const { listen } = await caller.call<{ readonly listen: string }>('POST', `/tunnel/${to}`, { local_aid: from });
  await caller.hold(listen);
  assert.equal(await caller.say('before'), 'before');

  await helper.signal('SIGKILL');
  await called.until('it has no helpers', ({ helpers }) => helpers.length === 0);
  await internet.readdress('home');
  const changedAt = performance.now();
  assert.equal(await caller.say('and after'), 'and after');
  t.diagnostic(`${Math.round(performance.now() - changedAt)} ms without bytes`);
  const { links } = await caller.call<Links>('GET', '/node/links');
  const used = links.filter(({ current, agents }) => current && agents.some(({ aid }) => aid === to));
  assert.deepEqual(
    used.map(({ outbound }) => outbound),
    [false],
  );
  assert.equal(await caller.echo(listen, 'a new one'), 'a new one');
});
