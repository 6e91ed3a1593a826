/** Two nodes whose routers change ports, helpers that do not relay, and a TURN server that one of the two may use. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { part } from '../../lab/parting.ts';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';
import { startTurnServer, TURN_HOST, TURN_NUMBER, WITH_TURN } from '../../support/lab/turn-server.ts';
import { needs } from '../../support/needs.ts';

const NO_RELAY = 'relay_sessions = 0\n';

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
  readonly is_relayed: boolean;
}

test('a TURN server of either side connects nodes that no other path connects', {
  skip: needs('turnserver'),
}, async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const turn = await internet.publicMachine('turn', [TURN_NUMBER]);
  const server = startTurnServer(turn);
  const bootstrap = ['203.0.113.10'];
  await using first = await LabDaemon.start(await internet.publicMachine('helper', [10]), [], NO_RELAY);
  await using second = await LabDaemon.start(await internet.publicMachine('helper2', [11]), bootstrap, NO_RELAY);
  for (const one of [first, second]) await one.until('strangers reach it', ({ nat_type }) => nat_type === 1);
  await using rich = await LabDaemon.start(await internet.behind('rich', ['symmetric']), bootstrap, WITH_TURN);
  await using poor = await LabDaemon.start(await internet.behind('poor', ['symmetric']), bootstrap);
  // The guest has not met the other nodes, because a connection serves both directions.
  await using guest = await LabDaemon.start(await internet.behind('guest', ['symmetric']), bootstrap);
  for (const one of [rich, poor, guest])
    await one.until('it has helpers', ({ helpers, nat_type }) => helpers.length === 2 && nat_type === 4);
  const [richAid, poorAid] = [await rich.serve(), await poor.serve()];
  await guest.serve();

  for (const [caller, called, name] of [
    [rich, poorAid, 'the caller has it'],
    [guest, richAid, 'the caller has the TURN server'],
  ] as const)
    await t.test(name, async () => {
      const refused = await caller.ask('POST', `/tunnel/${called}`, { disable_relay: true });
      assert.equal(refused.status, 412, JSON.stringify(refused.body));
      const { listen, path, is_relayed } = await caller.call<Opened>('POST', `/tunnel/${called}`, {});
      assert.deepEqual([path, is_relayed], ['turn', true]);
      const text = 'the called node has the TURN server '.repeat(2000);
      assert.equal(await caller.echo(listen, text), text);
      const { relays } = await caller.call<{ relays: string[] }>('GET', '/status');
      assert.equal(relays.length, 1);
      assert.ok(relays[0]?.startsWith(`${TURN_HOST}:`) === true, JSON.stringify(relays));
    });

  await t.test(
    'after a restart of the server, open connections continue over a new allocation, and new ones open',
    async () => {
      const { listen } = await rich.call<Opened>('POST', `/tunnel/${poorAid}`, {});
      await rich.hold(listen);
      assert.equal(await rich.say('before'), 'before');
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
      const startedAt = performance.now();
      startTurnServer(turn);
      assert.equal(await rich.say('and after'), 'and after');
      t.diagnostic(`${Math.round(performance.now() - startedAt)} ms without bytes`);
      assert.equal(await rich.echo(listen, 'a new one'), 'a new one');
      const { path } = await rich.call<Opened>('POST', `/tunnel/${poorAid}`, {});
      assert.equal(path, 'turn');
    },
  );
});

test('a TURN server of either side connects nodes without a helper', { skip: needs('turnserver') }, async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  startTurnServer(await internet.publicMachine('turn', [TURN_NUMBER]));
  const bootstrap = ['203.0.113.10'];
  await using running = new AsyncDisposableStack();
  running.use(await LabDaemon.start(await internet.publicMachine('open', [10]), [], 'help_others = false\n'));
  await using rich = await LabDaemon.start(await internet.behind('rich', ['symmetric']), bootstrap, WITH_TURN);
  await using poor = await LabDaemon.start(await internet.behind('poor', ['symmetric']), bootstrap);
  for (const one of [rich, poor]) await one.until('it is in the network', ({ network_ready }) => network_ready);
  const parties = await Promise.all(
    [rich, poor].map(async (daemon) => ({
      daemon,
      aid: await daemon.serve(),
      node: (await daemon.call<{ node_aid: string }>('GET', '/status')).node_aid,
    })),
  );
  const [first, second] = parties;
  if (first === undefined || second === undefined) throw new Error('expected two nodes');
  for (const [caller, called, name] of [
    [first, second, 'the caller has the TURN server'],
    [second, first, 'the called node has the TURN server'],
  ] as const)
    await t.test(name, async () => {
      await part(caller, called);
      const tunnel = await eventually('the tunnel opens', async () => {
        const { status, body } = await caller.daemon.ask('POST', `/tunnel/${called.aid}`, {});
        return status < 300 && (body as Opened);
      });
      assert.deepEqual([tunnel.path, tunnel.is_relayed], ['turn', true]);
      const text = 'connected without an introduction '.repeat(2000);
      assert.equal(await caller.daemon.echo(tunnel.listen, text), text);
    });
});
