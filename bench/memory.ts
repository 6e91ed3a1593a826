/** Memory that both daemons retain after calls with large responses. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../test/support/eventually.ts';
import { type Command, PolledDaemon } from './support/polled-daemon.ts';
import type { BenchRow, BenchTable } from './table.ts';

const CALLS = 640;
const AT_ONCE = 32;
const ANSWER_BYTES: number = 1024 * 1024;
/** Time of the memory measurement, in milliseconds after the last call. */
const SOON_MS = 10_000;
const LATER_MS = 60_000;
const AIM_MIB = 160;
/** Memory growth that counts as idle, MiB. */
const IDLE_MORE_MIB = 16;
const SVCD: Command = [process.execPath, 'bin/svcd'];

export async function run(): Promise<BenchTable> {
  const body = Buffer.alloc(ANSWER_BYTES, 'x');
  const service = createServer((_, answer) => answer.end(body)).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await using far = await PolledDaemon.start(SVCD);
  await using near = await PolledDaemon.start(SVCD, { bootstrap: [far.dhtAddress] });
  const aid = await far.newAgent(`127.0.0.1:${port}`);
  const caller = await near.newAgent();
  const ask = () => near.call('POST', `/fetch/${aid}`, { local_aid: caller, method: 'GET', path: '/' });
  await eventually('the agent to be found', () =>
    ask().then(
      () => true,
      () => false,
    ),
  );
  await delay(SOON_MS);
  const resident = (): readonly [number, number] => [near.residentMib(), far.residentMib()];
  const idle = resident();
  let left = CALLS;
  const calls = async (): Promise<void> => {
    while (left-- > 0) await ask();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, calls));
  const full = resident();
  await delay(SOON_MS);
  const soon = resident();
  await delay(LATER_MS - SOON_MS);
  const later = resident();
  service.close();
  const rows = (['caller', 'called'] as const).flatMap((who, i): BenchRow[] => {
    const [before = 0, at = 0, after = 0, end = 0] = [idle[i], full[i], soon[i], later[i]];
    return [
      { what: `${who}, before`, value: before, unit: 'MiB' },
      { what: `${who}, right after`, value: at, unit: 'MiB' },
      { what: `${who}, 10 s later`, value: after, unit: 'MiB', aim: `≤ ${AIM_MIB} MiB`, ok: after <= AIM_MIB },
      {
        what: `${who}, 60 s later`,
        value: end,
        unit: 'MiB',
        aim: `≤ ${IDLE_MORE_MIB} MiB more than before`,
        ok: end <= before + IDLE_MORE_MIB,
      },
    ];
  });
  return { title: `Memory around ${CALLS} calls of 1 MiB, ${AT_ONCE} in parallel`, rows };
}
