/** The server process of the REST benchmark: the REST surface with all operations, and bare Fastify. */
import fastify from 'fastify';
import { systemClock } from '../../src/foundation/clock.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { operations } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { RestServer } from '../../src/surfaces/rest/server.ts';

export interface RestHello {
  readonly aid: string;
  readonly oursPort: number;
  readonly barePort: number;
}

const aid = nativeAid(new Uint8Array(32).fill(1));
const NOW = '2026-01-01T00:00:00.000Z';
const AGENT = {
  aid,
  scheme: 'native',
  status: 'registered',
  service_tcp: '127.0.0.1:8080',
  service_tcp_ok: true,
  heartbeat_seconds_ago: 12,
  seq: 34,
  published: true,
  last_publish_at: NOW,
  next_republish_estimate: NOW,
  record_expires_at: NOW,
  replicas: 20,
  services: ['lang.translate', 'lang.summarise'],
  delegation: { issued_at: NOW, expires_at: null },
};

async function main(): Promise<void> {
  const table: readonly Declaration[] = Object.values(operations);
  const ours = new RestServer(
    { apiAddr: '127.0.0.1:0', requireLocalToken: false, version: '0' },
    {
      operations: table.map((declaration) => ({ declaration, run: async () => AGENT })),
      streams: [],
      token: () => '',
      isServiceConnection: () => false,
      proofKey: new Uint8Array(32),
      metrics: [],
      clock: systemClock,
      log: silentLog,
    },
  );
  await ours.start();
  const bare = fastify();
  bare.get('/agents/:aid', async () => AGENT);
  bare.post('/agents/:aid/heartbeat', async () => AGENT);
  const bareUrl = await bare.listen({ host: '127.0.0.1', port: 0 });
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1e6);
  });
  process.send?.({ aid, oursPort: ours.address.port, barePort: Number(new URL(bareUrl).port) } satisfies RestHello);
}

if (process.send !== undefined) await main();
