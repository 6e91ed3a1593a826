/** Round trips of a small request while bulk data fills a slow link, out of a network with UDP and of one without. */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import type { LabDaemon } from '../../test/support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../../test/support/lab/internet.ts';
import { NO_UDP } from '../../test/support/lab/limits/rules.ts';
import type { Machine } from '../../test/support/lab/namespaces.ts';
import { natRules } from '../../test/support/lab/nat.ts';
import { type BenchRow, quantile } from '../table.ts';
import { BOOTSTRAP, NO_HELP, NO_LANE, startHelpers, startWith } from './door-helpers.ts';

const MIB = 1024 * 1024;
/** Speed and queue of the link, in each direction: 102 ms of it fit the queue. */
const MBIT_PER_S = 5;
const QUEUE_BYTES = 64_000;
/** Delay of packets of each machine, milliseconds: a round trip passes two machines. */
const DELAY_MS = 10;
/** Bulk data, which is echoed: it fills both directions for about 14 seconds. */
const BULK_MIB = 8;
/** Pause between two requests, milliseconds. */
const PAUSE_MS = 50;
/** Aim for the 95th percentile, milliseconds. */
const AIM_MS = 300;
const REQUEST = 'x'.repeat(64);

/** A machine behind a slow link. */
async function behindSlowLink(internet: Internet, name: string, hasUdp: boolean): Promise<Machine> {
  const { host, router, net } = await internet.behindBareRouter(name, '203.0.113');
  await router.nft(natRules('cone', `${net}.2`));
  if (!hasUdp) await router.nft(NO_UDP);
  for (const device of ['lan0', 'wan0'])
    await router.run('tc', [
      ...['qdisc', 'replace', 'dev', device, 'root', 'tbf'],
      ...['rate', `${MBIT_PER_S}mbit`, 'burst', '3000', 'limit', String(QUEUE_BYTES)],
    ]);
  return host;
}

/** Round trips during one transfer, milliseconds. */
async function roundTrips(caller: LabDaemon, called: LabDaemon): Promise<{ ms: number[]; seconds: number }> {
  const aid = await called.serve();
  const { listen } = await eventually('a tunnel', async () => {
    const { status, body } = await caller.ask('POST', `/tunnel/${aid}`, {});
    return status < 300 && (body as { readonly listen: string });
  });
  await caller.hold(listen);
  await caller.say(REQUEST);
  const since = performance.now();
  const over = new AbortController();
  const poured = caller.pour(listen, BULK_MIB * MIB).finally(() => over.abort());
  const ms: number[] = [];
  const ask = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const at = performance.now();
      await caller.say(REQUEST);
      ms.push(performance.now() - at);
      await delay(PAUSE_MS);
    }
  };
  await Promise.all([poured, ask()]);
  return { ms, seconds: (performance.now() - since) / 1000 };
}

export async function slowLinkRows(): Promise<readonly BenchRow[]> {
  await using internet = await Internet.open({ slowness: { delayMs: DELAY_MS, loss: 0 } });
  await using daemons = new AsyncDisposableStack();
  const start = startWith(daemons);
  await startHelpers(internet, start);
  const called = await start(await internet.publicMachine('called', [22], OTHER_PUBLIC[1]), BOOTSTRAP, NO_HELP);
  const strict = await start(await internet.publicMachine('strict', [23], OTHER_PUBLIC[1]), BOOTSTRAP, NO_LANE);
  const plain = await start(await behindSlowLink(internet, 'plain', true), BOOTSTRAP, NO_HELP);
  const inside = await start(await behindSlowLink(internet, 'inside', false), BOOTSTRAP, NO_HELP);
  for (const one of [called, strict, plain, inside])
    await one.until('the network is ready', ({ network_ready }) => network_ready);
  const ways = [
    { name: 'plain QUIC', caller: plain, called, aim: null },
    { name: 'borrowed ports, datagrams', caller: inside, called: strict, aim: AIM_MS },
    { name: 'borrowed ports, lane', caller: inside, called, aim: AIM_MS },
  ];
  const rows: BenchRow[] = [];
  let yardstick: number | undefined;
  for (const { name, aim, ...pair } of ways) {
    const { ms, seconds } = await roundTrips(pair.caller, pair.called);
    const p95 = quantile(ms, 0.95);
    yardstick ??= p95;
    rows.push({
      what: `${MBIT_PER_S} Mbit/s, ${name}: round trip under bulk, p95 of ${ms.length}`,
      value: p95,
      unit: 'ms',
      yardstick,
      ratio: p95 / yardstick,
      ...(aim === null ? {} : { aim: `≤ ${aim} ms`, ok: p95 <= aim }),
    });
    rows.push(
      { what: `${MBIT_PER_S} Mbit/s, ${name}: p50`, value: quantile(ms, 0.5), unit: 'ms' },
      { what: `${MBIT_PER_S} Mbit/s, ${name}: longest`, value: Math.max(...ms), unit: 'ms' },
      { what: `${MBIT_PER_S} Mbit/s, ${name}: speed each way`, value: (8 * BULK_MIB) / seconds, unit: 'Mibit/s' },
    );
  }
  return rows;
}
