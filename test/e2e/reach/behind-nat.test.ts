import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { eventOperations } from '../../../src/operations/events.ts';
import type { OutputOf } from '../../../src/operations/operation.ts';
import type { reachOperations } from '../../../src/operations/reach.ts';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon, type LabStatus } from '../../support/lab/daemons.ts';
import { countArrivals, Internet, OTHER_PUBLIC } from '../../support/lab/internet.ts';
import type { NatKind } from '../../support/lab/nat.ts';

/** The last bytes of the public addresses of the helpers, which are in separate networks. */
const HELPERS = [10, 11] as const;
/** The last byte of the address of a public node that does not help. */
const OPEN = 20;
/** Packets to the QUIC port of a helper that are longer than a keepalive. */
const REQUESTS = 'udp dport 4122 udp length > 100';
const MIB = 1024 * 1024;
const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT types in records. */
const [PUBLIC, PORT_RESTRICTED, SYMMETRIC] = [1, 3, 4];

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
  readonly is_relayed: boolean;
}

type Pinged = OutputOf<typeof reachOperations.pingAgent>;
type Links = OutputOf<typeof reachOperations.nodeLinks>;
type Checked = OutputOf<typeof reachOperations.netcheck>;
type Ways = OutputOf<typeof reachOperations.netcheckAgent>;

/** Starts a daemon behind routers, and waits until it has its helpers and knows its NAT type. */
async function behind(
  internet: Internet,
  name: string,
  kinds: readonly NatKind[],
  hasIpv6 = false,
): Promise<LabDaemon> {
  const daemon = await LabDaemon.start(await internet.behind(name, kinds, hasIpv6), BOOTSTRAP);
  const natType = kinds.includes('symmetric') ? SYMMETRIC : PORT_RESTRICTED;
  await daemon.until(
    `helpers, and NAT type ${natType}`,
    ({ helpers, nat_type }) => helpers.length === HELPERS.length && nat_type === natType,
  );
  return daemon;
}

/** The current path of a tunnel. */
async function pathOf(daemon: LabDaemon, id: string): Promise<Pick<Opened, 'path' | 'is_relayed'>> {
  const { path, is_relayed } = await daemon.call<Opened>('GET', `/tunnel/${id}`);
  return { path, is_relayed };
}

/** Waits until a tunnel uses a punched path: on a slow machine a relay may be ready first. */
async function isPunched(daemon: LabDaemon, id: string): Promise<void> {
  const tunnel = await eventually('it uses a punched path', async () => {
    const now = await pathOf(daemon, id);
    return now.path === 'punched' && now;
  });
  assert.equal(tunnel.is_relayed, false);
}

/** The events about changed paths that an agent received. */
async function toldOf(daemon: LabDaemon, aid: string): Promise<readonly { readonly path?: unknown }[]> {
  const call = { tool: 'svc_events_poll', args: { aid } };
  const { events } = await daemon.call<OutputOf<typeof eventOperations.eventsPoll>>('POST', '/mcp/call', call);
  return events.filter(({ type }) => type === 'path.changed').map(({ data }) => data);
}

test('daemons behind routers reach each other through public helpers', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const [first, second] = HELPERS;
  const machine = await internet.publicMachine('helper', [first]);
  const otherMachine = await internet.publicMachine('helper2', [second], OTHER_PUBLIC[0]);
  await using helper = await LabDaemon.start(machine, []);
  await using otherHelper = await LabDaemon.start(otherMachine, BOOTSTRAP);
  const isPublic = ({ nat_type }: { readonly nat_type: number }): boolean => nat_type === PUBLIC;
  for (const one of [helper, otherHelper]) await one.until('strangers reach a helper', isPublic);
  // It does not help, because a helper has connections to the nodes that it would have to dial.
  const stranger = await internet.publicMachine('open', [OPEN]);
  const started = await Promise.all([
    LabDaemon.start(stranger, BOOTSTRAP, 'help_others = false\n'),
    behind(internet, 'cone', ['cone']),
    behind(internet, 'cone2', ['cone']),
    behind(internet, 'double', ['cone', 'cone']),
    behind(internet, 'sym', ['symmetric'], true),
    behind(internet, 'sym2', ['symmetric']),
    behind(internet, 'sym6', ['symmetric'], true),
  ]);
  const [open, cone, otherCone, double, symmetric, otherSymmetric, symmetricIpv6] = started;
  await using daemons = new AsyncDisposableStack();
  for (const one of started) daemons.use(one);
  const [caller, symmetricCaller] = [await cone.serve(), await symmetric.serve()];
  const [called, symmetricCalled] = [await otherCone.serve(), await otherSymmetric.serve()];
  const relayed = async (): Promise<number> => {
    const all = await Promise.all([helper, otherHelper].map((one) => one.call<LabStatus>('GET', '/status')));
    return all.reduce((bytes, status) => bytes + status.relayed.bytes, 0);
  };

  await t.test('a public caller: the called node punches a path', async () => {
    const { listen, id } = await open.call<Opened>('POST', `/tunnel/${called}`, {});
    assert.equal(await open.echo(listen, 'from anywhere'), 'from anywhere');
    // If the called node has sent this one a record, its connection is open; the lab's public machines are LAN peers.
    const { path } = await eventually('it needs no relay', async () => {
      const now = await pathOf(open, id);
      return !now.is_relayed && now;
    });
    assert.ok(['punched', 'lan'].includes(path), path);
  });

  await t.test('carrier-grade NAT behind a router: they punch a path too', async () => {
    const { listen, id } = await double.call<Opened>('POST', `/tunnel/${called}`, {});
    assert.equal(await double.echo(listen, 'through two'), 'through two');
    await isPunched(double, id);
  });

  await t.test('both routers keep a port: they punch a path', async () => {
    const { listen, id } = await cone.call<Opened>('POST', `/tunnel/${called}`, { local_aid: caller });
    assert.equal(await cone.echo(listen, 'over a punched path'), 'over a punched path');
    await isPunched(cone, id);
  });

  await t.test(
    'one router changes ports: random ports are opened, and a relay carries the traffic until one is hit',
    async () => {
      const { listen, id } = await cone.call<Opened>('POST', `/tunnel/${symmetricCalled}`, {});
      assert.equal(await cone.echo(listen, 'by any path'), 'by any path');
      const { path: first } = await pathOf(cone, id);
      await cone.hold(listen);
      assert.equal(await cone.say('an open connection'), 'an open connection');
      await isPunched(cone, id);
      assert.equal(await cone.say('over random ports'), 'over random ports');
      await isPunched(cone, id);
      // If a random port was hit before the first byte, the path did not change.
      if (first === 'relay')
        await eventually('the agent is notified', async () => (await toldOf(cone, caller)).at(-1)?.path === 'punched');
    },
  );

  await t.test('both routers change ports: no path without relays, and a relay if they are allowed', async () => {
    const path = `/tunnel/${symmetricCalled}`;
    const refused = await symmetric.ask('POST', path, { local_aid: symmetricCaller, disable_relay: true });
    assert.equal(refused.status, 412, JSON.stringify(refused.body));
    const before = await relayed();
    const { listen, id } = await symmetric.call<Opened>('POST', path, {});
    assert.equal(await symmetric.echo(listen, 'over a relay'), 'over a relay');
    assert.deepEqual(await pathOf(symmetric, id), { path: 'relay', is_relayed: true });
    assert.ok((await relayed()) > before);
  });

  await t.test('both routers change ports over IPv4: IPv6 firewalls are opened', async () => {
    const aid = await symmetricIpv6.serve();
    const { ways } = await symmetric.call<Ways>('GET', `/node/netcheck/${aid}`);
    assert.equal(ways.find(({ path }) => path === 'punched')?.may_lead, true);
    const { listen, id } = await symmetric.call<Opened>('POST', `/tunnel/${aid}`, { disable_relay: true });
    assert.equal(await symmetric.echo(listen, 'over IPv6'), 'over IPv6');
    assert.deepEqual(await pathOf(symmetric, id), { path: 'punched', is_relayed: false });
    const { remote_addr } = await symmetric.call<Pinged>('POST', `/node/ping/${aid}`, { count: 1 });
    assert.match(remote_addr ?? '', /^\[2001:db8:/);
  });

  await t.test('the commands show the real paths', async () => {
    const ping = async (from: LabDaemon, to: string) => {
      const { path, is_relayed, not_direct } = await from.call<Pinged>('POST', `/node/ping/${to}`, { count: 1 });
      return [path, is_relayed, not_direct?.code];
    };
    assert.deepEqual(await ping(cone, called), ['punched', false, undefined]);
    assert.deepEqual(await ping(symmetric, symmetricCalled), ['relay', true, 'both_symmetric']);
    const { links } = await symmetric.call<Links>('GET', '/node/links');
    const [relay] = links.filter(({ current, is_relayed }) => current && is_relayed);
    assert.deepEqual(relay?.agents, [{ aid: symmetricCalled, label: null, local_aids: [symmetricCaller] }]);
    assert.equal(links.filter(({ use }) => use === 'helper').length, HELPERS.length);
    for (const [one, mapping] of [
      [cone, 'cone'],
      [symmetric, 'symmetric'],
    ] as const) {
      const { nat_mapping, helpers } = await one.call<Checked>('GET', '/node/netcheck');
      assert.deepEqual([nat_mapping, helpers.every(({ rtt_ms }) => rtt_ms !== null)], [mapping, true]);
    }
    const { ways } = await symmetric.call<Ways>('GET', `/node/netcheck/${symmetricCalled}`);
    const leads = new Map(ways.map(({ path, may_lead }) => [path, may_lead]));
    assert.deepEqual([leads.get('punched'), leads.get('relay')], [false, true]);
  });

  await t.test('a relay becomes unreachable under open connections: they continue over another one', async () => {
    const { listen } = await symmetric.call<Opened>('POST', `/tunnel/${symmetricCalled}`, {});
    const bytesOf = async (one: LabDaemon): Promise<number> =>
      (await one.call<LabStatus>('GET', '/status')).relayed.bytes;
    const [before, all] = [await bytesOf(helper), await relayed()];
    await symmetric.hold(listen);
    assert.equal(await symmetric.say('before'), 'before');
    const poured = symmetric.pour(listen, 8 * MIB);
    await eventually('bytes are in transit', async () => (await relayed()) > all + MIB);
    const carrier = (await bytesOf(helper)) > before ? helper : otherHelper;
    process.kill(carrier.pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    try {
      assert.equal(await symmetric.say('and after'), 'and after');
      t.diagnostic(`${Math.round(performance.now() - stoppedAt)} ms without bytes`);
      await poured;
    } finally {
      process.kill(carrier.pid, 'SIGCONT');
    }
  });

  const ofHelpers = await Promise.all([helper.serve(), otherHelper.serve()]);
  /** Waits until both helpers of a node answer. One that just stopped may be listed over a connection that is dead. */
  const bothHelp = async (one: LabDaemon): Promise<void> => {
    for (const aid of ofHelpers)
      await eventually(
        'a helper answers',
        async () => (await one.ask('POST', `/node/ping/${aid}`, { count: 1 })).status < 300,
      );
    await one.until('both help', ({ helpers }) => helpers.length === HELPERS.length);
  };

  /** The helpers of an agent, once the caller knows a record with all of them. */
  const knownHelpers = async (from: LabDaemon, aid: string): Promise<readonly string[]> =>
    await eventually('the caller knows both helpers', async () => {
      const { ways } = await from.call<Ways>('GET', `/node/netcheck/${aid}`);
      const { to } = ways.find(({ path }) => path === 'relay') ?? {};
      return to?.length === HELPERS.length && to;
    });

  await t.test('a helper becomes unreachable although it has open connections: another one helps', async () => {
    // The relay that just stopped may be missing, at the called node or in the record of it that the caller knows: a
    // node that has lost both of its helpers cannot be called.
    await Promise.all([cone, double].map(bothHelp));
    await cone.call('POST', `/agents/${caller}/publish`);
    await knownHelpers(double, caller);
    process.kill(helper.pid, 'SIGSTOP');
    try {
      const { listen } = await double.call<Opened>('POST', `/tunnel/${caller}`, {});
      assert.equal(await double.echo(listen, 'past the silent one'), 'past the silent one');
    } finally {
      process.kill(helper.pid, 'SIGCONT');
    }
  });

  /** Makes one node call an agent, and stops a helper that has the request and has not answered yet. */
  const callAsHelperEnds = async (from: LabDaemon, aid: string, ending: LabDaemon) => {
    const { ipv4 } = await from.call<Checked>('GET', '/node/netcheck');
    const which = `ip saddr ${ipv4.seen_as?.split(':', 1)[0]} ${REQUESTS}`;
    const requests = await countArrivals(ending === helper ? machine : otherMachine, which);
    await ending.signal('SIGSTOP');
    const before = (await requests()).packets;
    const startedAt = performance.now();
    const answer = from.ask('POST', `/tunnel/${aid}`, {});
    await eventually('the helper has the request', async () => (await requests()).packets > before);
    await ending.signal('SIGKILL');
    const { status, body } = await answer;
    const ms = Math.round(performance.now() - startedAt);
    t.diagnostic(`decided after ${ms} ms`);
    return { status, body: JSON.stringify(body) };
  };
  // The helpers that just stopped may be missing, at the called node or in the record of it that the caller knows.
  await Promise.all([symmetric, double, cone].map(bothHelp));
  await symmetric.call('POST', `/agents/${symmetricCaller}/publish`);
  const [asked = ''] = await knownHelpers(double, symmetricCaller);
  const [asksFirst, asksThen] = asked.startsWith(OTHER_PUBLIC[0]) ? [otherHelper, helper] : [helper, otherHelper];

  await t.test('a helper stops during a set-up: another one introduces the nodes', async () => {
    const { status, body } = await callAsHelperEnds(double, symmetricCaller, asksFirst);
    assert.ok(status < 300, body);
    const { listen }: Opened = JSON.parse(body);
    assert.equal(await double.echo(listen, 'by the other helper'), 'by the other helper');
  });

  await t.test('the last helper stops during a set-up: the caller learns that there is no path', async () => {
    const { status, body } = await callAsHelperEnds(cone, symmetricCaller, asksThen);
    assert.match(body, /"connect_failed"/);
    assert.equal(status, 502);
  });
});
