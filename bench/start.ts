/**
 * Start times: how fast a daemon and a command start, their memory, and the same with a thousand agents. The yardstick
 * is plain Node in the same run, and A2AL's daemon if `SVCD_BENCH_A2AL` names it.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { A2AL } from './support/a2al.ts';
import { InstalledPackage } from './support/installed.ts';
import { type Command, PolledDaemon, type PolledOptions } from './support/polled-daemon.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const ROUNDS = 3;
/** Number of runs of a command. */
const COMMANDS = 15;
const AGENTS = 1000;
/** Concurrent registrations. */
const AT_ONCE = 8;
/** Number of requests for a list of all agents. */
const LISTS = 30;
/** Idle time of a daemon after its start, milliseconds. Its CPU time is read at the end. */
const IDLE_MS = 10_000;
/** Below this CPU time in an idle period, a daemon has finished its startup work, milliseconds. */
const QUIET_CPU_MS = 160;
/** Longer than it waits for a network before it publishes without one, milliseconds. */
const QUIET_MS = 8000;
const MIB = 1024 * 1024;

/** A plain Node process, the baseline for every program. */
const PLAIN = `
const { parseArgs } = require('node:util');
const { values } = parseArgs({ strict: false, options: { 'api-addr': { type: 'string' } } });
require('node:http').createServer((_, answer) => answer.end('{}')).listen(values['api-addr'].split(':')[1], '127.0.0.1');
`;
/** The last argument must not be an option of Node. */
const PLAIN_NODE: Command = [process.execPath, '-e', PLAIN, '--'];

interface Figures {
  readonly startMs: number[];
  readonly startCpuMs: number[];
  readonly idleCpuMs: number[];
  readonly residentMib: number[];
  readonly listMs: number[];
  readonly listCpuMs: number[];
}

function emptyFigures(): Figures {
  return { startMs: [], startCpuMs: [], idleCpuMs: [], residentMib: [], listMs: [], listCpuMs: [] };
}

/** Data of a daemon that restarts. */
type Home = Required<Pick<PolledOptions, 'dataDir' | 'ports'>>;

/** Starts a daemon, leaves it idle, and lists its agents. */
async function look(command: Command, home: Home | undefined, figures: Figures): Promise<void> {
  const began = performance.now();
  await using daemon = await PolledDaemon.start(command, home);
  figures.startMs.push(performance.now() - began);
  const startCpuMs = daemon.cpuMs();
  figures.startCpuMs.push(startCpuMs);
  await delay(IDLE_MS);
  figures.idleCpuMs.push(daemon.cpuMs() - startCpuMs);
  figures.residentMib.push(daemon.residentMib());
  if (home === undefined) return;
  const before = daemon.cpuMs();
  for (let i = 0; i < LISTS; i++) {
    const asked = performance.now();
    await daemon.call('GET', `/agents?limit=${AGENTS}`);
    figures.listMs.push(performance.now() - asked);
  }
  figures.listCpuMs.push((daemon.cpuMs() - before) / LISTS);
}

/** A data directory with a thousand published agents. */
async function populated(command: Command): Promise<Home> {
  const home = { dataDir: mkdtempSync(join(tmpdir(), 'svcd-agents-')), ports: await PolledDaemon.anyPorts() };
  await using daemon = await PolledDaemon.start(command, home);
  let left = AGENTS;
  const register = async (): Promise<void> => {
    while (left-- > 0) await daemon.newAgent();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, register));
  let before = 0;
  do {
    before = daemon.cpuMs();
    await delay(QUIET_MS);
  } while (daemon.cpuMs() - before > QUIET_CPU_MS);
  return home;
}

/** Duration of a command as a process, milliseconds. */
function runs(args: readonly string[], env: NodeJS.ProcessEnv = {}): number {
  const began = performance.now();
  const { status } = spawnSync(process.execPath, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
  return performance.now() - began;
}

async function commandRows(installed: InstalledPackage, svcd: Command): Promise<BenchRow[]> {
  await using daemon = await PolledDaemon.start(svcd);
  const times: { readonly status: number[]; readonly plain: number[] } = { status: [], plain: [] };
  const program = [installed.program('svc'), 'status'];
  runs(program, { SVC_API: daemon.api });
  for (let i = 0; i < COMMANDS; i++) {
    times.status.push(runs(program, { SVC_API: daemon.api }));
    times.plain.push(runs(['-e', '0']));
  }
  return [row('svc status as a process, p50', 'ms', median(times.status), median(times.plain), 150)];
}

function row(what: string, unit: string, value: number, yardstick?: number, aim?: number): BenchRow {
  return {
    what,
    value,
    unit,
    ...(yardstick === undefined ? {} : { yardstick, ratio: value / yardstick }),
    ...(aim === undefined ? {} : { aim: `≤ ${aim} ${unit}`, ok: value <= aim }),
  };
}

const median = (values: readonly number[]): number => quantile(values, 0.5);

/** One row per figure compared with plain Node, and one compared with A2AL if available. */
function beside(
  what: string,
  unit: string,
  of: (figures: Figures) => readonly number[],
  [own, plain, a2al]: readonly [Figures, Figures | null, Figures | null],
  aim?: number,
): BenchRow[] {
  const rows = [row(`${what}, p50`, unit, median(of(own)), plain === null ? undefined : median(of(plain)), aim)];
  if (a2al !== null) rows.push(row(`${what}, beside A2AL`, unit, median(of(own)), median(of(a2al))));
  return rows;
}

export async function run(): Promise<BenchTable> {
  const installed = new InstalledPackage();
  const size = installed.sizeMib();
  const svcd: Command = [process.execPath, installed.program('svcd')];
  const homes: Home[] = [];
  try {
    // The first start fills the compile cache of later starts.
    await (await PolledDaemon.start(svcd)).stop();
    const rows = await commandRows(installed, svcd);
    const [alone, plain, other] = [emptyFigures(), emptyFigures(), A2AL === null ? null : emptyFigures()];
    const [full, otherFull] = [emptyFigures(), A2AL === null ? null : emptyFigures()];
    homes.push(await populated(svcd));
    if (A2AL !== null) homes.push(await populated(A2AL));
    for (let i = 0; i < ROUNDS; i++) {
      await look(svcd, undefined, alone);
      await look(PLAIN_NODE, undefined, plain);
      if (A2AL !== null && other !== null) await look(A2AL, undefined, other);
      await look(svcd, homes[0], full);
      if (A2AL !== null && otherFull !== null) await look(A2AL, homes[1], otherFull);
    }
    const three = [alone, plain, other] as const;
    const two = [full, null, otherFull] as const;
    const agents = `with ${AGENTS} agents`;
    rows.push(
      ...beside('start to /health', 'ms', (of) => of.startMs, three, 400),
      ...beside('its processor time', 'ms', (of) => of.startCpuMs, three, 400),
      ...beside('idle memory (resident)', 'MiB', (of) => of.residentMib, three, 90),
      ...beside(`start to /health ${agents}`, 'ms', (of) => of.startMs, two, 600),
      ...beside(`processor time in the 10 s after ${agents}`, 'ms', (of) => of.idleCpuMs, two, 600),
      ...beside(`idle memory (resident) ${agents}`, 'MiB', (of) => of.residentMib, two, 110),
      ...beside(`GET /agents ${agents}`, 'ms', (of) => of.listMs, two, 12),
      ...beside(`processor time of GET /agents ${agents}`, 'ms', (of) => of.listCpuMs, two),
      row('installed, without Node', 'MiB', size, A2AL === null ? undefined : statSync(A2AL[0]).size / MIB, 50),
    );
    return { title: 'Start, memory, a thousand agents', rows };
  } finally {
    installed.remove();
    for (const { dataDir } of homes) rmSync(dataDir, { recursive: true, force: true });
  }
}
