/** Real daemons behind a middlebox that permanently drops all their UDP flows, in both directions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';
import { natRules } from '../../support/lab/nat.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** Records each pair of addresses and ports, and drops the blocked ones. */
const MIDDLEBOX = `table ip middlebox {
  set known { type ipv4_addr . inet_service . ipv4_addr . inet_service; flags dynamic; size 65536; }
  set blocked { type ipv4_addr . inet_service . ipv4_addr . inet_service; size 65536; }
  chain out {
    type filter hook forward priority -5;
    iifname "lan0" ip saddr . udp sport . ip daddr . udp dport @blocked drop
    oifname "lan0" ip daddr . udp dport . ip saddr . udp sport @blocked drop
    iifname "lan0" meta l4proto udp add @known { ip saddr . udp sport . ip daddr . udp dport }
  }
}
`;

test('a node whose flows are all blocked permanently recovers from fresh ports', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const { host: machine, router, net } = await internet.behindBareRouter('barred', '203.0.113');
  await router.nft(natRules('cone', `${net}.2`));
  await router.nft(MIDDLEBOX);
  const block = async (): Promise<void> => {
    const listed = await router.run('nft', ['list', 'set', 'ip', 'middlebox', 'known']);
    const elements = /elements = \{([^}]*)\}/.exec(listed)?.[1] ?? '';
    assert(elements.trim() !== '', 'flows were recorded');
    await router.nft(`add element ip middlebox blocked {${elements}}\n`);
  };
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [10]), []);
  await using second = await LabDaemon.start(await internet.publicMachine('helper2', [11]), BOOTSTRAP);
  await Promise.all([helper, second].map((one) => one.until('it is in the network', (status) => status.network_ready)));
  await using barred = await LabDaemon.start(machine, BOOTSTRAP);
  const [caller, called] = await Promise.all([barred.serve(), helper.serve()]);
  const { listen } = await barred.call<{ readonly listen: string }>('POST', `/tunnel/${called}`, { local_aid: caller });
  await barred.hold(listen);
  assert.equal(await barred.say('before'), 'before');
  await block();
  const blockedAt = performance.now();
  assert.equal(await barred.say('after'), 'after', 'the open connection continues');
  t.diagnostic(`the tunnel after ${Math.round(performance.now() - blockedAt)} ms`);
  await barred.reaches(listen);
  await eventually('the record network answers', async () => {
    const { status } = await barred.ask('POST', `/agents/${caller}/publish`);
    const { body } = await helper.ask('POST', `/resolve/${caller}`, {});
    return status === 200 && JSON.stringify(body).includes(caller);
  });
  t.diagnostic(`all after ${Math.round(performance.now() - blockedAt)} ms`);
});
