/** A large object from one daemon to another, compared with a tunnel between the same daemons and the same bytes. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { type BenchTable, quantile } from './table.ts';

const MIB = 1024 * 1024;
const OBJECT_BYTES = 1024 * MIB;
const ROUNDS = 3;
const AIM = 0.8;
/** Maximum memory growth of a daemon during the transfer of a 1 GiB object. */
const MAX_GROWTH_MIB = 256;

async function residentMib(daemon: TestDaemon): Promise<number> {
  const statm = await readFile(`/proc/${daemon.process.pid}/statm`, 'utf8');
  return (Number(statm.split(' ')[1]) * 4096) / MIB;
}

/** Peak memory of a daemon while `work` runs, above its memory before. */
async function growth(daemon: TestDaemon, work: () => Promise<void>): Promise<number> {
  const before = await residentMib(daemon);
  let highest = before;
  const timer = setInterval(() => {
    void residentMib(daemon).then((now) => (highest = Math.max(highest, now)));
  }, 50);
  await work();
  clearInterval(timer);
  return highest - before;
}

async function makeFile(file: string): Promise<void> {
  const handle = await open(file, 'w');
  const block = randomBytes(MIB);
  for (let i = 0; i < OBJECT_BYTES / MIB; i++) {
    block.writeUInt32BE(i);
    await handle.write(block);
  }
  await handle.close();
}

async function perSecond(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return (OBJECT_BYTES / MIB) * (1000 / (performance.now() - started));
}

export async function run(): Promise<BenchTable> {
  const roots = [await mkdtemp(join(tmpdir(), 'svcd-bench-')), await mkdtemp(join(tmpdir(), 'svcd-bench-'))] as const;
  const file = join(roots[0], 'big');
  await makeFile(file);
  const service = createServer((socket) => {
    socket.on('error', () => {});
    createReadStream(file, { highWaterMark: 512 * 1024 }).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  const servicePort = typeof address === 'object' && address !== null ? address.port : 0;
  const far = await TestDaemon.start({ env: { SVCD_FILES_ROOT: roots[0] } });
  const near = await TestDaemon.start({ bootstrap: [far.dhtAddress], env: { SVCD_FILES_ROOT: roots[1] } });
  try {
    await ready(near);
    const holder = await far.newAgent(`127.0.0.1:${servicePort}`);
    const reader = await near.newAgent();
    await far.call('POST', `/agents/${holder}/publish`);
    const tool = <T>(daemon: TestDaemon, name: string, args: object): Promise<T> =>
      daemon.call<T>('POST', '/mcp/call', { tool: name, args });
    const put = { aid: holder, path: 'big' };
    const { object_id } = await tool<{ object_id: string }>(far, 'group_object_put', put);
    const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${holder}`, {});
    const tunnelPort = Number(listen.split(':').at(-1));
    const throughTunnel = async (): Promise<void> => {
      const socket = connect(tunnelPort, '127.0.0.1');
      socket.resume();
      await once(socket, 'end');
      socket.destroy();
    };
    const get = async (): Promise<void> => {
      await tool(near, 'group_object_get', { aid: reader, object_id, hint_aid: holder, dest: 'got', force: true });
    };
    const tunnel: number[] = [];
    const objects: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      tunnel.push(await perSecond(throughTunnel));
      objects.push(await perSecond(get));
    }
    const nearGrowth = await growth(near, get);
    const farGrowth = await growth(far, get);
    const [rate, yardstick] = [quantile(objects, 0.5), quantile(tunnel, 0.5)];
    const memory = (what: string, value: number) => {
      return { what, value, unit: 'MiB', aim: `≤ ${MAX_GROWTH_MIB} MiB`, ok: value <= MAX_GROWTH_MIB };
    };
    return {
      title: `An object of ${OBJECT_BYTES / MIB} MiB between two daemons, hashed and on disk`,
      rows: [
        {
          what: 'get; yardstick: a tunnel with the same file',
          value: rate,
          unit: 'MiB/s',
          yardstick,
          ratio: rate / yardstick,
          aim: `≥ ${AIM}`,
          ok: rate / yardstick >= AIM,
        },
        memory('memory that the reader grows by', nearGrowth),
        memory('memory that the holder grows by', farGrowth),
      ],
    };
  } finally {
    service.close();
    await near.stop();
    await far.stop();
    for (const root of roots) await rm(root, { recursive: true, force: true });
  }
}
