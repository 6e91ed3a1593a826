/**
 * Memory of a helper with 500 idle clients, each with two lent ports. `SVCD_BENCH_MINUTES` (default 3) is the time after
 * the last one has connected. Needs network namespaces and nftables.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LabDaemon } from '../test/support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../test/support/lab/internet.ts';
import type { IdleClients } from './support/idle-clients.ts';
import type { BenchTable } from './table.ts';

const PROCESS = fileURLToPath(new URL('support/idle-clients.ts', import.meta.url));
const MINUTES = Number(process.env['SVCD_BENCH_MINUTES'] ?? 3);
const MINUTE_MS = 60_000;
/** Networks of clients, and the last bytes of the addresses in each. A helper limits the clients of one address. */
const NETWORKS = ['203.0.113', ...OTHER_PUBLIC, '45.1.1', '45.1.2'];
const NUMBERS = [60, 61];
/** Clients of each address: the first ones load code and caches. */
const FIRST = 5;
const MORE = 50;
const MORE_CLIENTS: number = NETWORKS.length * NUMBERS.length * MORE;
const MAX_KIB = 64;
const SAMPLE_MS = 1000;

/** Resident memory of a process, KiB. */
function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** The smallest memory in some minutes: garbage comes and goes. */
async function smallest(pid: number, minutes: number): Promise<number> {
  const end = performance.now() + minutes * MINUTE_MS;
  let least = Number.POSITIVE_INFINITY;
  while (performance.now() < end) {
    await delay(SAMPLE_MS);
    least = Math.min(least, residentKib(pid));
  }
  return least;
}

export async function run(): Promise<BenchTable> {
  await using internet = await Internet.open();
  await using helper = await LabDaemon.start(
    await internet.publicMachine('helper', [10]),
    [],
    'tls_sessions = 1000\nopen_browser = false\n',
  );
  const processes: (readonly [ChildProcess, string])[] = [];
  for (const network of NETWORKS)
    processes.push([(await internet.publicMachine(network, NUMBERS, network)).fork(PROCESS), network]);
  const connectAll = async (count: number): Promise<void> => {
    for (const [child, network] of processes)
      for (const number of NUMBERS) {
        const clients: IdleClients = { url: 'wss://203.0.113.10/svcd/1', host: `${network}.${number}`, count };
        const done = once(child, 'message');
        child.send(clients);
        await done;
      }
  };
  const clients = async (): Promise<number> =>
    (await helper.call<{ lent_ports: { clients: number } }>('GET', '/status')).lent_ports.clients;
  await connectAll(FIRST);
  const before = await smallest(helper.pid, 1);
  await connectAll(MORE);
  const each: number[] = [];
  for (let minute = 1; minute <= MINUTES; minute++) {
    each.push(((await smallest(helper.pid, 1)) - before) / MORE_CLIENTS);
    console.log(`minute ${minute}: ${each.at(-1)?.toFixed(1)} KiB each, ${await clients()} clients`);
  }
  // The first third warms up.
  const third = Math.ceil(MINUTES / 3);
  const [early, late] = [each.slice(-2 * third, -third), each.slice(-third)].map((some) => Math.min(...some));
  if (early === undefined || late === undefined) throw new RangeError('SVCD_BENCH_MINUTES is below 2');
  return {
    title: `A helper with ${MORE_CLIENTS} idle clients for ${MINUTES} minutes`,
    rows: [
      { what: 'memory of a client', value: late, unit: 'KiB', aim: `≤ ${MAX_KIB} KiB`, ok: late <= MAX_KIB },
      {
        what: 'its growth from the second to the last third',
        value: late - early,
        unit: 'KiB',
        aim: '≤ 1 KiB',
        ok: late - early <= 1,
      },
      { what: 'clients at the end', value: await clients(), unit: '' },
    ],
  };
}
