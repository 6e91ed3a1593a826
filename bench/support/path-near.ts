/**
 * The near end of a slow path, started in a network namespace of its own: makes the other one and
 * the path, starts a daemon, and measures a tunnel beside plain TCP. Arguments: the delay each way
 * in milliseconds, the part of the packets that is lost. Sends its rows to its parent.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { TestDaemon } from '../../test/support/daemon.ts';
import { ready } from '../../test/support/network.ts';
import type { BenchRow } from '../table.ts';
import { standardCongestionControl, useCongestionControl } from './congestion-control.ts';
import type { FarEnd } from './path-far.ts';
import { bulk, download, type Transfer, upload } from './tcp-client.ts';

const MIB = 1024 * 1024;
const BYTES = 64 * MIB;
/** Long enough that lanes are opened; loss-based TCP takes its time for a part of it. */
const BYTES_WITH_LOSS = 32 * MIB;
const BYTES_OF_RENO = 4 * MIB;
/** Beside TCP where nothing is lost. */
const AIM = 0.8;
/** Where packets are lost, MiB/s: TCP with a congestion control of its own choice is no measure there. */
const LEAST_WITH_LOSS = 5;

const [delayMs = '20', loss = '0'] = process.argv.slice(2);
const lossy = Number(loss) > 0;
execFileSync('ip', ['link', 'set', 'lo', 'up']);
const far = spawn('unshare', ['-n', process.execPath, new URL('path-far.ts', import.meta.url).pathname], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
// Without its far end there is nothing to wait for.
const giveUp = (): void => process.exit(1);
far.once('exit', giveUp);
await once(far, 'message');
const script = new URL('slow-path.py', import.meta.url).pathname;
const path = spawn('python3', [script, String(far.pid), delayMs, loss], { stdio: ['ignore', 'pipe', 'inherit'] });
await once(path.stdout, 'data');
const daemon = await TestDaemon.start({ env: { SVCD_LOG_LEVEL: 'error' }, args: ['--listen', '10.9.0.1:0'] });
far.send(daemon.dhtAddress);
const [{ aid, port }] = (await once(far, 'message')) as [FarEnd];
await ready(daemon);
const { listen } = await daemon.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
const tunnel = { host: '127.0.0.1', port: Number(listen.split(':')[1]) };
const direct = { host: '10.9.0.2', port };

/** Plain TCP with a congestion control, on both ends. */
async function plain(control: string, transfer: Transfer, streams: number, bytes: number): Promise<number> {
  useCongestionControl(control);
  far.send(control);
  await once(far, 'message');
  return await bulk(transfer, direct, streams, bytes);
}

path.kill('SIGUSR1');
const standard = standardCongestionControl();
const rows: BenchRow[] = [];
for (const [name, transfer] of [
  ['up', upload],
  ['down', download],
] as const) {
  let ofOne = 0;
  for (const streams of [1, 8]) {
    const bytes = lossy ? BYTES_WITH_LOSS : BYTES;
    if (!lossy) await bulk(transfer, tunnel, streams, bytes);
    const value = await bulk(transfer, tunnel, streams, bytes);
    if (streams === 1) ofOne = value;
    // More connections together are never slower than one.
    const least = streams === 1 ? LEAST_WITH_LOSS : Math.max(LEAST_WITH_LOSS, ofOne);
    for (const control of [standard, 'reno']) {
      const yardstick = await plain(control, transfer, streams, lossy && control === 'reno' ? BYTES_OF_RENO : bytes);
      rows.push({
        what: `${2 * Number(delayMs)} ms, ${Number(loss) * 100} % loss: ${name}, ${streams} × beside TCP with ${control}`,
        value,
        unit: 'MiB/s',
        yardstick,
        ratio: value / yardstick,
        aim: lossy ? `≥ ${least.toFixed(1)} MiB/s` : `≥ ${AIM} ×`,
        ok: lossy ? value >= least : value >= AIM * yardstick,
      });
    }
  }
}
process.send?.(rows);
await daemon.stop();
far.off('exit', giveUp);
far.disconnect();
await once(far, 'exit');
path.kill();
process.exit(0);
