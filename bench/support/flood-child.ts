/** A child process that prepares one flood, runs it on request, and reports how much it sent. */
import { once } from 'node:events';
import { apiFloods } from './api-floods.ts';
import { datagramFloods } from './datagram-floods.ts';
import type { Flood, Target } from './flood.ts';
import { handshakeFloods } from './handshake-floods.ts';
import { peerFloods } from './peer-floods.ts';

export const FLOODS: Readonly<Record<string, Flood>> = {
  ...datagramFloods,
  ...handshakeFloods,
  ...peerFloods,
  ...apiFloods,
};

async function main(send: (message: unknown) => void): Promise<void> {
  const [name = '', target = ''] = process.argv.slice(2);
  const flood = FLOODS[name];
  if (flood === undefined) throw new Error(`unknown flood ${name}`);
  const runFlood = await flood(JSON.parse(target) as Target);
  const until = new AbortController();
  let sent = 0;
  send('ready');
  await once(process, 'message');
  const started = performance.now();
  const running = runFlood(until.signal, (count) => {
    sent += count;
  });
  await once(process, 'message');
  until.abort();
  send({ perSecond: (sent * 1000) / (performance.now() - started) });
  await Promise.race([running, once(process, 'disconnect')]);
  process.exit(0);
}

if (process.send !== undefined) await main((message) => process.send?.(message));
