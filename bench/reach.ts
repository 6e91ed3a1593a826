/**
 * Tunnels over each kind of path, between real daemons in a lab, compared with two daemons on one machine. Also the
 * cost of a relay, and of an idle node behind a router. Linux, without root.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { part } from '../test/lab/parting.ts';
import type { LabDaemon } from '../test/support/lab/daemons.ts';
import { needs } from '../test/support/needs.ts';
import {
  countHelping,
  cpuSeconds,
  type LabPath,
  type LabPaths,
  residentBytes,
  startPaths,
  startTurnPath,
  transfer,
} from './support/lab-paths.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const MIB = 1024 * 1024;
const BYTES = 128 * MIB;
const ROUNDS = 3;
const SET_UPS = 3;
/** Target for punched compared with direct paths, and for MB that a relay forwards per second of CPU time. */
const PUNCHED_AIM = 0.9;
const RELAY_AIM = 40;
/** Measuring time of an idle node, seconds: it includes a hello to each helper. */
const IDLE_S = 180;
/** Bytes per second for each helper. */
const IDLE_AIM = 50;

interface Tunnel {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

/** Results of one kind of path over all rounds. */
interface Measured {
  readonly setUps: readonly number[];
  readonly speeds: { up: number; down: number };
  /** Seconds of CPU time per GB in each direction, minimum of the rounds: both nodes and their helpers. */
  readonly cpu: { up: number; down: number };
  /** MB that a relay forwarded per second of its CPU time, maximum of the rounds. */
  relayed: number;
}

async function open({ caller, called, path }: LabPath): Promise<Tunnel> {
  const tunnel = await caller.daemon.call<Tunnel>('POST', `/tunnel/${called.aid}`, { idle_timeout_sec: -1 });
  if (tunnel.path !== path) throw new Error(`${path} was expected, not ${tunnel.path}`);
  return tunnel;
}

async function close({ caller }: LabPath, { id }: Tunnel): Promise<void> {
  await caller.daemon.call('POST', `/tunnel/${id}/reset`);
  await caller.daemon.call('DELETE', `/tunnel/${id}`);
}

async function relayedBytes(helpers: readonly LabDaemon[]): Promise<number> {
  let bytes = 0;
  for (const helper of helpers)
    bytes += (await helper.call<{ relayed: { bytes: number } }>('GET', '/status')).relayed.bytes;
  return bytes;
}

async function setUps(path: LabPath): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < SET_UPS; i++) {
    await part(path.caller, path.called);
    const began = performance.now();
    const tunnel = await open(path);
    times.push(performance.now() - began);
    await close(path, tunnel);
  }
  return times;
}

/** One round: each path in turn, so that the load of the machine affects all paths equally. */
async function round({ paths, helpers }: LabPaths, results: ReadonlyMap<LabPath, Measured>): Promise<void> {
  for (const path of paths) {
    const measured = results.get(path);
    if (measured === undefined) continue;
    const tunnel = await open(path);
    const ends = [path.caller.daemon, path.called.daemon];
    const port = Number(tunnel.listen.split(':')[1]);
    for (const direction of ['up', 'down'] as const) {
      const before = { ends: cpuSeconds(ends), helpers: cpuSeconds(helpers), bytes: await relayedBytes(helpers) };
      const speed = await transfer(path.caller, { direction, host: '127.0.0.1', port, bytes: BYTES });
      const helping = cpuSeconds(helpers) - before.helpers;
      const bytes = (await relayedBytes(helpers)) - before.bytes;
      const cpu = cpuSeconds(ends) - before.ends + (bytes > 0 ? helping : 0);
      measured.speeds[direction] = Math.max(measured.speeds[direction], speed);
      measured.cpu[direction] = Math.min(measured.cpu[direction], (cpu * 1e9) / BYTES);
      if (bytes > BYTES) measured.relayed = Math.max(measured.relayed, bytes / 1e6 / helping);
    }
    await close(path, tunnel);
  }
}

function rowsOf({ what }: LabPath, measured: Measured, loopback: Measured, direct: Measured): BenchRow[] {
  const { speeds, cpu, relayed } = measured;
  const rows: BenchRow[] = [
    { what: `${what}: set-up of a tunnel, p50`, value: quantile(measured.setUps, 0.5), unit: 'ms' },
    { what: `${what}: set-up of a tunnel, max`, value: Math.max(...measured.setUps), unit: 'ms' },
  ];
  for (const direction of ['up', 'down'] as const) {
    const isPunched = what === 'punched';
    const yardstick = isPunched ? direct.speeds[direction] : loopback.speeds[direction];
    const ratio = speeds[direction] / yardstick;
    rows.push(
      {
        what: `${what}: bulk ${direction}; yardstick: ${isPunched ? 'direct' : 'loopback'}`,
        value: speeds[direction],
        unit: 'MiB/s',
        yardstick,
        ratio,
        ...(isPunched ? { aim: `≥ ${PUNCHED_AIM}`, ok: ratio >= PUNCHED_AIM } : {}),
      },
      { what: '  CPU of all daemons on the path', value: cpu[direction], unit: 's/GB' },
    );
  }
  if (relayed > 0)
    rows.push({
      what: '  forwarded by the relay per second of its CPU time',
      value: relayed,
      unit: 'MB',
      aim: `≥ ${RELAY_AIM}`,
      ok: relayed >= RELAY_AIM,
    });
  return rows;
}

async function idle({ paths, helpers }: LabPaths): Promise<BenchRow[]> {
  const behind = paths.find(({ path }) => path === 'relay')?.called;
  const open = paths[0]?.called;
  if (behind === undefined || open === undefined) return [];
  const memory = residentBytes(behind.daemon) - residentBytes(open.daemon);
  const bytes = await countHelping(behind.machine);
  await delay(IDLE_S * 1000);
  const rate = (await bytes()) / IDLE_S / helpers.length;
  return [
    {
      what: 'idle behind a router: traffic with each helper, both directions',
      value: rate,
      unit: 'B/s',
      aim: `≤ ${IDLE_AIM}`,
      ok: rate <= IDLE_AIM,
    },
    { what: 'idle behind a router: additional memory', value: memory / MIB, unit: 'MiB' },
  ];
}

async function measure(lab: LabPaths, results: Map<LabPath, Measured>): Promise<void> {
  for (const path of lab.paths) {
    const least = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY };
    results.set(path, { setUps: await setUps(path), speeds: { up: 0, down: 0 }, cpu: least, relayed: 0 });
  }
  for (let i = 0; i < ROUNDS; i++) await round(lab, results);
}

export async function run(): Promise<BenchTable> {
  const results = new Map<LabPath, Measured>();
  await using lab = await startPaths();
  const rows = await idle(lab);
  await measure(lab, results);
  await using turn = needs('turnserver') === false ? await startTurnPath() : null;
  if (turn !== null) await measure(turn, results);
  const loopback = [...results.values()][0];
  const direct = [...results].find(([{ path }]) => path === 'direct')?.[1];
  if (loopback === undefined || direct === undefined) return { title: '', rows };
  return {
    title: 'Tunnels between two daemons over each kind of path; yardstick: two daemons of one machine',
    rows: [...[...results].flatMap(([path, measured]) => rowsOf(path, measured, loopback, direct)), ...rows],
  };
}
