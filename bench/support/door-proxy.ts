/**
 * Calls out of a network that has only an HTTP proxy: the first one after the start, compared with a network with UDP,
 * and many while the password of the proxy changes and its connections are cut.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { LabDaemon } from '../../test/support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../../test/support/lab/internet.ts';
import { behindLimits } from '../../test/support/lab/limits/limits.ts';
import type { BenchRow } from '../table.ts';
import { BOOTSTRAP, NO_HELP, type Start, startHelpers, startWith } from './door-helpers.ts';

/** Delay of packets of each machine, milliseconds: a round trip passes two machines. Long, so that it can be counted. */
const DELAY_MS = 50;
const ROUND_TRIP_MS: number = 2 * DELAY_MS;
const MAX_MORE_ROUND_TRIPS = 12;
/** Starts of each kind. The fastest counts. */
const STARTS = 3;
const CALLS = 10_000;
const PARALLEL = 4;
const CHANGES = 20;
/** Interval of the passwords, seconds, and of the cuts, milliseconds. */
const PASSWORD_S = 2;
const CUT_MS = 3_000;

/** Two helpers, and an agent that answers calls. */
async function outside(internet: Internet, start: Start): Promise<string> {
  await startHelpers(internet, start);
  const called = await start(await internet.publicMachine('called', [22], OTHER_PUBLIC[1]), BOOTSTRAP, NO_HELP);
  await called.until('the network is ready', ({ network_ready }) => network_ready);
  return await called.serveWeb();
}

export async function startRows(): Promise<readonly BenchRow[]> {
  await using internet = await Internet.open({ slowness: { delayMs: DELAY_MS, loss: 0 } });
  await using daemons = new AsyncDisposableStack();
  const start = startWith(daemons);
  const aid = await outside(internet, start);
  const places = [
    { machine: await internet.behind('home', ['cone']), env: {} },
    await behindLimits(internet, 'office', 'connect-proxy'),
  ];
  const fastest: number[] = [];
  for (const { machine, env } of places) {
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < STARTS; i++) {
      const at = performance.now();
      await using daemon = await LabDaemon.start(machine, BOOTSTRAP, NO_HELP, { env });
      await eventually('an answered call', async () => (await daemon.ask('GET', `/aid/${aid}/`)).status === 200);
      best = Math.min(best, performance.now() - at);
    }
    fastest.push(best / ROUND_TRIP_MS);
  }
  const [udp = 0, proxy = 0] = fastest;
  const more = proxy - udp;
  return [
    { what: 'start to the first answered call, UDP', value: udp, unit: 'round trips of 100 ms' },
    { what: 'the same behind a proxy', value: proxy, unit: 'round trips of 100 ms' },
    {
      what: 'difference',
      value: more,
      unit: 'round trips',
      aim: `≤ ${MAX_MORE_ROUND_TRIPS}`,
      ok: more <= MAX_MORE_ROUND_TRIPS,
    },
  ];
}

export async function passwordRows(): Promise<readonly BenchRow[]> {
  await using internet = await Internet.open();
  await using daemons = new AsyncDisposableStack();
  const start = startWith(daemons);
  const aid = await outside(internet, start);
  const place = await behindLimits(internet, 'office', 'proxy-password-rotating', { seconds: PASSWORD_S });
  daemons.defer(place.leave);
  const inside = await start(place.machine, BOOTSTRAP, NO_HELP, { env: place.env });
  const call = async (): Promise<boolean> => (await inside.ask('GET', `/aid/${aid}/`)).status === 200;
  await eventually('an answered call', call);
  const count = { calls: 0, failed: 0, changes: 0 };
  const isDone = (): boolean => count.calls >= CALLS && count.changes >= CHANGES;
  const work = async (): Promise<void> => {
    while (!isDone()) {
      count.calls++;
      if (!(await call())) count.failed++;
    }
  };
  const change = async (): Promise<void> => {
    for (; count.changes < CHANGES; count.changes++) {
      await delay(CUT_MS);
      await place.proxy?.cut();
    }
  };
  await Promise.all([change(), ...Array.from({ length: PARALLEL }, work)]);
  const what = `${count.calls} calls over ${CHANGES} new passwords and cuts: failed`;
  return [{ what, value: count.failed, unit: '', aim: '0', ok: count.failed === 0 }];
}
