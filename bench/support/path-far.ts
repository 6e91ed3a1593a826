/** The far end of a slow path, in a separate network namespace: a daemon with a bound TCP service. */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { TestDaemon } from '../../test/support/daemon.ts';
import { ready } from '../../test/support/network.ts';
import { useCongestionControl } from './congestion-control.ts';

/** The agent, and the port of its service on every address of the namespace. */
export interface FarEnd {
  readonly aid: string;
  readonly port: number;
}

execFileSync('ip', ['link', 'set', 'lo', 'up']);
process.send?.('here');
const [bootstrap]: string[] = await once(process, 'message');
const service = fork(new URL('tcp-service.ts', import.meta.url), ['0.0.0.0']);
const [{ port }] = (await once(service, 'message')) as [{ port: number }];
const daemon = await TestDaemon.start({
  env: { SVCD_LOG_LEVEL: 'error' },
  args: ['--listen', '10.9.0.2:0'],
  ...(bootstrap === undefined ? {} : { bootstrap: [bootstrap] }),
});
await ready(daemon);
const aid = await daemon.newAgent(`127.0.0.1:${port}`);
await daemon.call('POST', `/agents/${aid}/publish`);
process.send?.({ aid, port } satisfies FarEnd);
process.on('message', (name: string) => {
  useCongestionControl(name);
  process.send?.('done');
});
process.once('disconnect', () => {
  service.disconnect();
  void daemon.stop().then(() => process.exit(0));
});
