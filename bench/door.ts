/**
 * Bulk data out of a network that blocks UDP: through borrowed ports as datagrams, and over a lane that meets at the
 * helper, compared with plain QUIC between two public nodes. Processor time is that of caller, called node and helper.
 * Then round trips under bulk on a slow link, and calls behind a proxy. Needs network namespaces and nftables.
 */
import { readFileSync } from 'node:fs';
import { eventually } from '../test/support/eventually.ts';
import type { LabDaemon } from '../test/support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../test/support/lab/internet.ts';
import { behindLimits } from '../test/support/lab/limits/limits.ts';
import { BOOTSTRAP, NO_HELP, NO_LANE, startHelpers, startWith } from './support/door-helpers.ts';
import { passwordRows, startRows } from './support/door-proxy.ts';
import { slowLinkRows } from './support/door-slow-link.ts';
import type { BenchRow, BenchTable } from './table.ts';

const MIB = 1024 * 1024;
const WARM_MIB = 4;
const MEASURED_MIB = 24;
const ROUNDS = 2;
/** Clock ticks per second of /proc/…/stat. */
const TICKS = 100;
/** The budgets must not limit the helper. */
const GENEROUS = `relay_bytes_per_second = ${4096 * MIB}\nrelay_bytes_per_day = ${1024 * 1024 * MIB}\n`;

function cpuSeconds(daemons: readonly LabDaemon[]): number {
  const ticks = daemons.map(({ pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, one) => sum + one, 0) / TICKS;
}

interface Way {
  readonly name: string;
  readonly caller: LabDaemon;
  readonly called: LabDaemon;
  readonly helpers: readonly LabDaemon[];
  /** Smallest share of the speed of plain QUIC. */
  readonly aim: number | null;
}

interface Measured {
  readonly mibPerS: number;
  readonly cpuMsPerMib: number;
}

/** Sends bytes there and back. */
async function measure({ caller, called, helpers }: Way): Promise<Measured> {
  const aid = await called.serve();
  const { listen } = await eventually('a tunnel', async () => {
    const { status, body } = await caller.ask('POST', `/tunnel/${aid}`, {});
    return status < 300 && (body as { readonly listen: string });
  });
  const daemons = [caller, called, ...helpers];
  await caller.pour(listen, WARM_MIB * MIB);
  let best: Measured = { mibPerS: 0, cpuMsPerMib: Number.POSITIVE_INFINITY };
  for (let round = 0; round < ROUNDS; round++) {
    const [cpu, at] = [cpuSeconds(daemons), performance.now()];
    await caller.pour(listen, (WARM_MIB + MEASURED_MIB) * MIB);
    const seconds = (performance.now() - at) / 1000;
    // Both directions carry the bytes.
    const moved = 2 * (WARM_MIB + MEASURED_MIB);
    best = {
      mibPerS: Math.max(best.mibPerS, moved / seconds),
      cpuMsPerMib: Math.min(best.cpuMsPerMib, (1000 * (cpuSeconds(daemons) - cpu)) / moved),
    };
  }
  return best;
}

export async function run(): Promise<BenchTable> {
  return {
    title: 'Bulk data out of a network without UDP; yardstick: plain QUIC',
    rows: [...(await bulkRows()), ...(await slowLinkRows()), ...(await startRows()), ...(await passwordRows())],
  };
}

async function bulkRows(): Promise<readonly BenchRow[]> {
  await using internet = await Internet.open();
  await using daemons = new AsyncDisposableStack();
  const start = startWith(daemons);
  const helpers = await startHelpers(internet, start, GENEROUS);
  const [outside, called, strict] = [
    await start(await internet.publicMachine('outside', [21], OTHER_PUBLIC[1]), BOOTSTRAP, NO_HELP),
    await start(await internet.publicMachine('called', [22], OTHER_PUBLIC[1]), BOOTSTRAP, NO_HELP),
    await start(await internet.publicMachine('strict', [23], OTHER_PUBLIC[1]), BOOTSTRAP, NO_LANE),
  ];
  const place = await behindLimits(internet, 'inside', 'udp-blocked');
  daemons.defer(place.leave);
  const inside = await start(place.machine, BOOTSTRAP, NO_HELP, { env: place.env });
  for (const one of [outside, called, strict, inside])
    await one.until('the network is ready', ({ network_ready }) => network_ready);
  const ways: readonly Way[] = [
    { name: 'plain QUIC', caller: outside, called, helpers: [], aim: null },
    { name: 'borrowed ports, datagrams', caller: inside, called: strict, helpers, aim: 0.25 },
    { name: 'borrowed ports, lane', caller: inside, called, helpers, aim: 0.45 },
  ];
  const rows: BenchRow[] = [];
  let plain: Measured | null = null;
  for (const way of ways) {
    const measured = await measure(way);
    plain ??= measured;
    const ratio = measured.mibPerS / plain.mibPerS;
    rows.push({
      what: way.name,
      value: measured.mibPerS,
      unit: 'MiB/s',
      yardstick: plain.mibPerS,
      ratio,
      ...(way.aim === null ? {} : { aim: `≥ ${way.aim} ×`, ok: ratio >= way.aim }),
    });
    rows.push({
      what: `${way.name}: processor time`,
      value: measured.cpuMsPerMib,
      unit: 'ms/MiB',
      yardstick: plain.cpuMsPerMib,
      ratio: measured.cpuMsPerMib / plain.cpuMsPerMib,
    });
  }
  return rows;
}
