/**
 * The near end of a slow path, in a separate network namespace. Creates the far end and the path, starts a daemon, and
 * compares a tunnel with plain TCP. Arguments: one-way delay in milliseconds, share of lost packets. Sends its rows to
 * its parent.
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
/** Long enough for lanes to open. Reno would take minutes for the same amount, so it sends less. */
const LOSSY_BYTES = 32 * MIB;
const RENO_BYTES = 4 * MIB;
/** Compared with TCP without loss. */
const AIM = 0.8;
/** MiB/s with loss: TCP with its default congestion control is no useful yardstick there. */
const MIN_SPEED_WITH_LOSS = 5;

const [delayMs = '20', loss = '0'] = process.argv.slice(2);
const lossy = Number(loss) > 0;
execFileSync('ip', ['link', 'set', 'lo', 'up']);
const far = spawn('unshare', ['-n', process.execPath, new URL('path-far.ts', import.meta.url).pathname], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
// The far end has exited.
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
    const bytes = lossy ? LOSSY_BYTES : BYTES;
    if (!lossy) await bulk(transfer, tunnel, streams, bytes);
    const value = await bulk(transfer, tunnel, streams, bytes);
    if (streams === 1) ofOne = value;
    // Several connections are never slower than one.
    const least = streams === 1 ? MIN_SPEED_WITH_LOSS : Math.max(MIN_SPEED_WITH_LOSS, ofOne);
    for (const control of [standard, 'reno']) {
      const yardstick = await plain(control, transfer, streams, lossy && control === 'reno' ? RENO_BYTES : bytes);
      rows.push({
        what: `${2 * Number(delayMs)} ms, ${Number(loss) * 100} % loss: ${name}, ${streams} ×; yardstick: TCP with ${control}`,
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
