import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../../support/lab/internet.ts';
import { behindLimits, type LimitKind } from '../../support/lab/limits/limits.ts';
import { NO_UDP } from '../../support/lab/limits/rules.ts';
import { natRules } from '../../support/lab/nat.ts';

/** Helpers in two networks, which lend ports at TCP 443. */
const HELPERS = ['203.0.113.10', '198.51.100.11'] as const;
const BOOTSTRAP = HELPERS.map((host) => `${host}:4121`);
const PUBLIC = 1;
/** Longest pause of the traffic of a tunnel, milliseconds. */
const MAX_GAP_MS = 3_000;
const CANARY = 'canary-0f3a9c5e';
const MIB: number = 1024 * 1024;

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

/** A small Internet with two helpers and a public node. Null if the machine cannot have one. */
async function world(t: TestContext) {
  const daemons = new AsyncDisposableStack();
  // Before the end of their machines, which would leave them running.
  t.after(() => daemons.disposeAsync());
  const internet = await Internet.start(t);
  if (internet === null) return null;
  const [near, far] = await Promise.all([
    internet.publicMachine('helper', [10]),
    internet.publicMachine('helper2', [11], OTHER_PUBLIC[0]),
  ]);
  const start = async (...args: Parameters<typeof LabDaemon.start>) => daemons.use(await LabDaemon.start(...args));
  const helper = await start(near, []);
  const otherHelper = await start(far, BOOTSTRAP.slice(0, 1));
  for (const one of [helper, otherHelper])
    await one.until('strangers reach a helper', ({ nat_type }) => nat_type === PUBLIC);
  const open = await start(
    await internet.publicMachine('open', [20], OTHER_PUBLIC[1]),
    BOOTSTRAP,
    'help_others = false\n',
  );
  /** A node in a network that allows little, with its own agent. */
  const inside = async (name: string, kind: LimitKind, seconds?: number) => {
    const place = await behindLimits(internet, name, kind, seconds === undefined ? {} : { seconds });
    t.after(place.leave);
    const daemon = await start(place.machine, BOOTSTRAP, '', { env: place.env });
    return { ...place, daemon, aid: await served(daemon) };
  };
  const machines = { [HELPERS[0]]: near, [HELPERS[1]]: far };
  return { internet, helper, otherHelper, open, inside, start, machines };
}

/** Publishes an agent, as soon as the node is on a network. */
async function served(daemon: LabDaemon): Promise<string> {
  await daemon.until('the network is ready', ({ network_ready }) => network_ready);
  return await daemon.serve();
}

/** Opens a tunnel, as soon as the agent is found. */
async function tunnel(from: LabDaemon, aid: string): Promise<Opened> {
  return await eventually('a tunnel', async () => {
    const { status, body } = await from.ask('POST', `/tunnel/${aid}`, {});
    return status < 300 && (body as Opened);
  });
}

async function pathOf(daemon: LabDaemon, { id }: Opened): Promise<string> {
  return (await daemon.call<Opened>('GET', `/tunnel/${id}`)).path;
}

/** Watches pumped traffic until the function ends. @returns its longest pause, milliseconds */
async function longestGap(daemons: readonly LabDaemon[], during: () => Promise<void>): Promise<number> {
  let longest = 0;
  const over = new AbortController();
  const watching = daemons.map(async (daemon) => {
    while (!over.signal.aborted) {
      const since = performance.now();
      await daemon.flows();
      longest = Math.max(longest, performance.now() - since);
    }
  });
  await during().finally(() => over.abort());
  await Promise.all(watching);
  return longest;
}

/** A metric of a daemon. */
async function metric(daemon: LabDaemon, name: string): Promise<number> {
  const { body } = await daemon.ask('GET', '/metrics');
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(String(body))?.[1]);
}

/** Sends bytes both ways, and disturbs them while a lane carries them. They must arrive in order. */
async function pourThrough(daemon: LabDaemon, { listen }: Opened, disturb: () => Promise<void>): Promise<void> {
  const lanes = await metric(daemon, 'svcd_bulk_lanes');
  const poured = daemon.pour(listen, 32 * MIB);
  await Promise.race([poured, eventually('a lane', async () => (await metric(daemon, 'svcd_bulk_lanes')) > lanes)]);
  await disturb();
  await poured;
}

/** Asserts that a connection continues on a lane at a helper. Many bytes pass before the lane is ready. */
async function assertBulkUsesLane(daemon: LabDaemon, listen: string): Promise<void> {
  const before = await metric(daemon, 'svcd_bulk_sent_bytes_total');
  await daemon.pour(listen, 32 * MIB);
  const sent = (await metric(daemon, 'svcd_bulk_sent_bytes_total')) - before;
  assert.ok(sent > MIB, `${sent} bytes over lanes`);
}

/** Asserts that pumped bytes arrived in order, over one connection. */
async function assertWhole(daemons: readonly LabDaemon[]): Promise<void> {
  for (const daemon of daemons) assert.deepEqual(await daemon.flows(), { connections: 1, disorder: 0 });
}

test('nodes behind HTTP proxies, without UDP and DNS, call and are called', async (t) => {
  const lab = await world(t);
  if (lab === null) return;
  const { open, inside } = lab;
  const called = await served(open);
  const first = await inside('office', 'proxy-password');
  const second = await inside('sandbox', 'connect-proxy');

  await t.test('a node behind a proxy with a password calls', async () => {
    await first.proxy?.watch(CANARY);
    const { listen, ...opened } = await tunnel(first.daemon, called);
    assert.equal(await first.daemon.echo(listen, CANARY), CANARY);
    assert.equal(await pathOf(first.daemon, { listen, ...opened }), 'tls');
    await assertBulkUsesLane(first.daemon, listen);
  });

  await t.test('it is called', async () => {
    const { listen } = await tunnel(open, first.aid);
    assert.equal(await open.echo(listen, CANARY), CANARY);
    await assertBulkUsesLane(open, listen);
  });

  await t.test('both sides are behind proxies', async () => {
    const [there, back] = [await tunnel(first.daemon, second.aid), await tunnel(second.daemon, first.aid)];
    assert.equal(await first.daemon.echo(there.listen, CANARY), CANARY);
    assert.equal(await second.daemon.echo(back.listen, CANARY), CANARY);
    await eventually('it needs no relay', async () => (await pathOf(first.daemon, there)) === 'tls');
  });

  await t.test('the proxy reads nothing, and the password is shown nowhere', async () => {
    const report = await first.proxy?.report();
    assert.equal(report?.seen, 0);
    // If a helper is slow, the node tries ports that the proxy refuses, and nodes that listen at none.
    const requests = report?.requests ?? [];
    assert.ok(
      requests.every((line) => /^CONNECT \S+:(?:443|4121) \d{3}$/.test(line)),
      requests.join(),
    );
    assert.ok(requests.includes('CONNECT 203.0.113.10:443 200'), requests.join());
    const config = await first.daemon.call('GET', '/config');
    const shown = [await first.daemon.output(), await first.daemon.call('GET', '/status'), config];
    assert.doesNotMatch(JSON.stringify(shown), /p@ss|p%40ss|lab:/);
  });
});

test('an open tunnel survives new passwords, and a helper that is killed', async (t) => {
  const lab = await world(t);
  if (lab === null) return;
  const { open, inside, helper, otherHelper } = lab;
  const called = await served(open);
  const { daemon, aid, proxy } = await inside('office', 'proxy-password-rotating', 2);
  const [out, back] = [await tunnel(daemon, called), await tunnel(open, aid)];
  await daemon.pump(out.listen);
  await open.pump(back.listen);
  const both = [daemon, open];
  await assertWhole(both);

  const ofPassword = await longestGap(both, async () => {
    await delay(2_500);
    await proxy?.cut();
    await delay(500);
  });
  assert.ok(ofPassword < MAX_GAP_MS, `${ofPassword} ms without traffic after a new password`);
  await assertWhole(both);
  await pourThrough(daemon, out, async () => await proxy?.cut());

  const { requests = [] } = (await proxy?.report()) ?? {};
  const used = requests.findLast((line) => line.endsWith(' 200'))?.includes(HELPERS[0]) === true ? helper : otherHelper;
  const ofHelper = await longestGap(both, async () => {
    await pourThrough(daemon, out, async () => await used.signal('SIGKILL'));
  });
  assert.ok(ofHelper < MAX_GAP_MS, `${ofHelper} ms without traffic after the loss of a helper`);
  await assertWhole(both);
});

/** A helper answers TLS, but its lent ports send nothing. */
const DEAD_PORTS = `table inet dead {
  chain out { type filter hook output priority -5
    udp sport { 1024-4120, 4123-65535 } drop
  }
}`;

test('an open tunnel survives a helper that forwards nothing', async (t) => {
  const lab = await world(t);
  if (lab === null) return;
  const { open, inside, machines } = lab;
  const called = await served(open);
  const { daemon } = await inside('office', 'udp-blocked');
  const out = await tunnel(daemon, called);
  const exit = async () =>
    (await daemon.call<{ exit: { helper: string | null; has_spare: boolean } }>('GET', '/status')).exit;
  await eventually('it has a spare', async () => (await exit()).has_spare);
  const { helper: first } = await exit();
  const used = HELPERS.find((host) => first?.startsWith(`${host}:`) === true);
  assert.ok(used !== undefined);
  await daemon.pump(out.listen);
  await machines[used].nft(DEAD_PORTS);
  await eventually('it uses the other helper', async () => {
    const { helper } = await exit();
    return helper !== null && !helper.startsWith(`${used}:`);
  });
  await daemon.flows();
  await assertWhole([daemon]);
});

test('when UDP works again, open tunnels move to it and TLS ends', async (t) => {
  const lab = await world(t);
  if (lab === null) return;
  const { internet, open, start } = lab;
  const called = await served(open);
  const { host, router, net } = await internet.behindBareRouter('inside', '203.0.113');
  await router.nft(natRules('cone', `${net}.2`));
  await router.nft(NO_UDP);
  const inside = await start(host, BOOTSTRAP);
  const aid = await served(inside);
  const [out, back] = [await tunnel(inside, called), await tunnel(open, aid)];
  assert.equal(await pathOf(inside, out), 'tls');
  await inside.pump(out.listen);
  await open.pump(back.listen);
  const both = [inside, open];
  const gap = await longestGap(both, async () => {
    await router.nft('delete table inet limits');
    // A new address makes it try UDP immediately.
    await host.ip(['addr add 10.98.0.1/24 dev lo']);
    await eventually('it uses UDP', async () => (await pathOf(inside, out)) !== 'tls');
    await eventually('TLS ends', async () => !/:443\b/.test(await host.run('ss', ['-tn'])));
  });
  assert.ok(gap < MAX_GAP_MS, `${gap} ms without traffic`);
  await assertWhole(both);
});
