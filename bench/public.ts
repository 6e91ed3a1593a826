/**
 * A public address: a client, an entry, the node of an agent and its service on one machine. The yardstick is a tunnel from
 * the entry to the same agent, which passes the same two daemons without TLS.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  Agent as PlainAgent,
  request as requestHttp,
  type ServerResponse,
} from 'node:http';
import { Agent, request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { selfSigned } from '../src/foundation/certificate.ts';
import { detach } from '../src/foundation/detached.ts';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { quietPort } from '../test/support/programs.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const HOST = 'demo.vps.test';
const BYTES = 64 * 1024 * 1024;
const ROUNDS = 3;
const CALLS = 300;
/** Smallest ratio of the bytes per second to those of the tunnel. */
const AIM = 0.8;
const CHUNK = Buffer.alloc(64 * 1024, 0x62);

type Ask = (method: string, path: string) => ReturnType<typeof requestHttp>;

async function finished(response: IncomingMessage): Promise<void> {
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
}

async function called(ask: Ask): Promise<number> {
  const began = performance.now();
  const [response] = await once(ask('GET', '/').end(), 'response');
  await finished(response);
  return performance.now() - began;
}

/** MiB per second. */
async function speed(ask: Ask, upload: boolean): Promise<number> {
  const began = performance.now();
  const request = ask(upload ? 'PUT' : 'GET', upload ? '/' : `/${BYTES}`);
  const answered = once(request, 'response');
  if (upload)
    for (let left = BYTES; left > 0; left -= CHUNK.length) if (!request.write(CHUNK)) await once(request, 'drain');
  request.end();
  const [response] = await answered;
  await finished(response);
  return BYTES / 1024 ** 2 / ((performance.now() - began) / 1000);
}

async function send(response: ServerResponse, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= CHUNK.length) if (!response.write(CHUNK)) await once(response, 'drain');
  response.end('ok');
}

async function service() {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => detach(send(response, Number(request.url?.slice(1)))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

export async function run(): Promise<BenchTable> {
  const port = await quietPort();
  const own = selfSigned(HOST, HOST);
  await using entry = await TestDaemon.start({
    config: `public_names = ["vps.test"]\ntls_listen = "127.0.0.1:${port}"\nentry_bytes_per_second = 10_000_000_000\n`,
  });
  const [cert, key] = [join(entry.dataDir, 'public.pem'), join(entry.dataDir, 'public.key')];
  writeFileSync(cert, own.cert);
  writeFileSync(key, own.key);
  await using home = await TestDaemon.start({
    bootstrap: [entry.dhtAddress],
    config: `public_cert = ${JSON.stringify(cert)}\npublic_key = ${JSON.stringify(key)}\n`,
  });
  await Promise.all([ready(entry), ready(home)]);
  const { server, address } = await service();
  const aid = await home.newAgent(address);
  await home.call('POST', `/agents/${aid}/publish`);
  const { node_aid: at } = await entry.call<{ node_aid: string }>('GET', '/status');
  await entry.call('PUT', `/node/entry/allowed/${aid}`);
  await home.call('POST', `/exposures/${aid}`, { name: 'demo', at, mode: 'public' });
  await entry.newAgent();
  const tunnel = await entry.call<{ listen: string }>('POST', `/tunnel/${aid}`, {});

  const [agent, plain] = [new Agent({ keepAlive: true }), new PlainAgent({ keepAlive: true })];
  const tls = { host: '127.0.0.1', port, servername: HOST, ca: own.cert, agent, headers: { host: HOST } };
  const tunnelPort = Number(tunnel.listen.split(':').at(-1));
  const ways: Readonly<Record<'public' | 'tunnel', Ask>> = {
    public: (method, path) => requestHttps({ ...tls, method, path }),
    tunnel: (method, path) => requestHttp({ host: '127.0.0.1', port: tunnelPort, agent: plain, method, path }),
  };
  const rows: BenchRow[] = [];
  const times = { public: [] as number[], tunnel: [] as number[] };
  for (let i = 0; i < CALLS; i++)
    for (const way of ['public', 'tunnel'] as const) times[way].push(await called(ways[way]));
  const [value, yardstick] = [quantile(times.public, 0.5), quantile(times.tunnel, 0.5)];
  rows.push({ what: 'small request, p50', value, unit: 'ms', yardstick, ratio: value / yardstick });
  for (const upload of [false, true]) {
    const speeds = { public: [] as number[], tunnel: [] as number[] };
    const cpu = { public: 0, tunnel: 0 };
    for (let i = 0; i < ROUNDS; i++)
      for (const way of ['public', 'tunnel'] as const) {
        const before = used(entry, home);
        speeds[way].push(await speed(ways[way], upload));
        cpu[way] += used(entry, home) - before;
      }
    const [ours, theirs] = [quantile(speeds.public, 0.5), quantile(speeds.tunnel, 0.5)];
    const ratio = ours / theirs;
    const what = upload ? 'upload' : 'download';
    rows.push({ what, value: ours, unit: 'MiB/s', yardstick: theirs, ratio, aim: `≥ ${AIM}`, ok: ratio >= AIM });
    const perGib = (seconds: number): number => (seconds * 1024 ** 3) / (BYTES * ROUNDS);
    const [spent, base] = [perGib(cpu.public), perGib(cpu.tunnel)];
    rows.push({ what: '  CPU of both daemons', value: spent, unit: 's/GiB', yardstick: base, ratio: spent / base });
  }
  agent.destroy();
  plain.destroy();
  server.closeAllConnections();
  server.close();
  return { title: 'A public address; yardstick: a tunnel between the same daemons', rows };
}

function used(...daemons: readonly TestDaemon[]): number {
  return daemons.reduce((sum, { process }) => sum + cpuSeconds(process.pid ?? 0), 0);
}
