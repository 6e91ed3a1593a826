/**
 * CPU time, wake-ups and memory of daemons. `SVCD_BENCH_BEFORE` or `SVCD_BENCH_A2AL` names the yardstick, as in `felt`;
 * both take turns in one run. `BENCH_WORK` selects parts, separated by commas.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { call, newAgent } from './felt/api.ts';
import { type FeltNetwork, otherNetwork, svcdNetwork } from './felt/nodes.ts';
import { residentBytes, threadMs, wakeUps } from './support/process-usage.ts';
import { download, upload } from './support/tcp-client.ts';
import type { BenchRow, BenchTable } from './table.ts';

const NODES = 8;
/** Milliseconds until a new network is idle, and of the measurement. */
const SETTLE_MS = 120_000;
const IDLE_MS = 60_000;
/** Milliseconds after a block of operations, for the work that follows their answers. */
const REST_MS = 1500;
/** Blocks, the first of which only warm up, and operations in a block. */
const BLOCKS = 14;
const WARM_UP = 4;
const PER_BLOCK = 100;
const FETCHES_PER_BLOCK = 400;
const PARALLEL = 32;
const MB = 1_000_000;
const TUNNEL_BYTES: number = 24 * MB;
const BODY: Buffer = Buffer.alloc(1024, 'x');

type Figures = Record<string, { readonly value: number; readonly unit: string }>;

/** The nodes that work: neither is the bootstrap node. */
function workers({ nodes }: FeltNetwork) {
  const [, near, far, ...others] = nodes;
  if (near === undefined || far === undefined) throw new RangeError('the network needs at least three nodes');
  return { near, far, others };
}

async function idle(network: FeltNetwork): Promise<Figures> {
  const { near, far } = workers(network);
  const pids = [near.pid, far.pid];
  const of = (count: (pid: number) => number): number => pids.reduce((sum, pid) => sum + count(pid), 0) / pids.length;
  const before = [of(wakeUps), of(threadMs)] as const;
  await delay(IDLE_MS);
  const perS = 1000 / IDLE_MS;
  return {
    'idle: wake-ups': { value: (of(wakeUps) - before[0]) * perS, unit: '/s' },
    'idle: CPU': { value: (of(threadMs) - before[1]) * perS, unit: 'ms/s' },
    'idle: memory': { value: of(residentBytes) / MB, unit: 'MB' },
  };
}

/** Runs a part once for each network. */
type Part = (networks: readonly FeltNetwork[]) => Promise<Figures[]>;

/** Measures blocks of operations, with the networks in turns. */
function blocks(
  perBlock: number,
  prepare: (network: FeltNetwork) => Promise<{
    /** Labels and processes whose CPU time counts. */
    readonly of: Readonly<Record<string, readonly number[]>>;
    readonly run: (count: number) => Promise<void>;
    readonly after?: () => Promise<void>;
  }>,
): Part {
  return async (networks) => {
    const all = await Promise.all(networks.map(async (network) => ({ ...(await prepare(network)), ms: new Map() })));
    for (let block = 0; block < BLOCKS; block++) {
      for (const { of, run, after, ms } of all) {
        const used = (): number[] =>
          Object.values(of).map((pids) => pids.reduce((sum, pid) => sum + threadMs(pid), 0) / pids.length);
        const before = used();
        await run(perBlock);
        await delay(REST_MS);
        const now = used();
        await after?.();
        if (block < WARM_UP) continue;
        for (const [i, what] of Object.keys(of).entries())
          ms.set(what, (ms.get(what) ?? 0) + (now[i] ?? 0) - (before[i] ?? 0));
      }
    }
    const count = perBlock * (BLOCKS - WARM_UP);
    return all.map(({ ms }) =>
      Object.fromEntries([...ms].map(([what, value]) => [what, { value: value / count, unit: 'ms' }])),
    );
  };
}

const note = blocks(PER_BLOCK, async (network) => {
  const { near, far, others } = workers(network);
  const [alice, bob] = [await newAgent(near.port), await newAgent(far.port)];
  await call(near.port, 'POST', `/agents/${alice}/publish`);
  await call(far.port, 'POST', `/agents/${bob}/publish`);
  return {
    of: { 'note: sender': [near.pid], 'note: receiver': [far.pid], 'note: each other': others.map(({ pid }) => pid) },
    run: async (count) => {
      for (let i = 0; i < count; i++) {
        const body_base64 = Buffer.from(`note ${performance.now()}`).toString('base64');
        await call(near.port, 'POST', `/agents/${alice}/mailbox/send`, { recipient: bob, msg_type: 3, body_base64 });
      }
    },
    after: async () => {
      await call(far.port, 'POST', `/agents/${bob}/mailbox/poll`, {});
      await delay(REST_MS);
    },
  };
});

const publish = blocks(PER_BLOCK, async (network) => {
  const { near, others } = workers(network);
  let aids: string[] = [];
  return {
    of: { 'new agent and publication': [near.pid], 'the same: each other': others.map(({ pid }) => pid) },
    run: async (count) => {
      for (let i = 0; i < count; i++) {
        const aid = await newAgent(near.port);
        aids.push(aid);
        await call(near.port, 'POST', `/agents/${aid}/publish`);
      }
    },
    after: async () => {
      for (const aid of aids) await call(near.port, 'DELETE', `/agents/${aid}`).catch(() => {});
      aids = [];
      await delay(REST_MS);
    },
  };
});

const fetches = blocks(FETCHES_PER_BLOCK, async (network) => {
  const { near, far } = workers(network);
  const service = createServer((_, response) => response.end(BODY)).listen(0, '127.0.0.1');
  service.unref();
  await once(service, 'listening');
  const address = service.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const [local, aid] = [await newAgent(near.port), await newAgent(far.port, `127.0.0.1:${port}`)];
  await call(near.port, 'POST', `/agents/${local}/publish`);
  await call(far.port, 'POST', `/agents/${aid}/publish`);
  const acting = network.name === 'svcd' ? { local_aid: local } : {};
  const ask = () => call(near.port, 'POST', `/fetch/${aid}`, { ...acting, method: 'GET', path: '/1KB' });
  while (
    !(await ask()
      .then(() => true)
      .catch(() => false))
  )
    await delay(1000);
  return {
    of: { 'fetch of 1 KB: caller': [near.pid], 'fetch of 1 KB: called': [far.pid] },
    run: async (count) => {
      let left = count;
      const caller = async (): Promise<void> => {
        while (left-- > 0) await ask();
      };
      await Promise.all(Array.from({ length: PARALLEL }, caller));
    },
  };
});

/** Memory after both directions of a tunnel. */
async function tunnel(network: FeltNetwork): Promise<Figures> {
  const { near, far } = workers(network);
  const service = fork(new URL('support/tcp-service.ts', import.meta.url), []);
  const [message]: unknown[] = await once(service, 'message');
  const port = typeof message === 'object' && message !== null && 'port' in message ? Number(message.port) : 0;
  const [local, aid] = [await newAgent(near.port), await newAgent(far.port, `127.0.0.1:${port}`)];
  await call(near.port, 'POST', `/agents/${local}/publish`);
  await call(far.port, 'POST', `/agents/${aid}/publish`);
  const acting = network.name === 'svcd' ? { local_aid: local } : {};
  const open = () => call(near.port, 'POST', `/tunnel/${aid}`, { ...acting, local_port: 0, idle_timeout_sec: 3600 });
  let opened = await open().catch(() => null);
  for (; opened === null; opened = await open().catch(() => null)) await delay(1000);
  const target = { host: '127.0.0.1', port: Number(String(opened['listen']).split(':').at(-1)) };
  await download(target, TUNNEL_BYTES / 2);
  await upload(target, TUNNEL_BYTES / 2);
  service.disconnect();
  const value = Math.max(residentBytes(near.pid), residentBytes(far.pid)) / MB;
  await delay(10_000);
  const later = Math.max(residentBytes(near.pid), residentBytes(far.pid)) / MB;
  const what = 'memory after 24 MB through a tunnel';
  return { [what]: { value, unit: 'MB' }, [`${what}, 10 s later`]: { value: later, unit: 'MB' } };
}

const PARTS: Readonly<Record<string, Part>> = {
  idle: (networks) => Promise.all(networks.map(idle)),
  tunnel: async (networks) => {
    const all = [];
    for (const network of networks) all.push(await tunnel(network));
    return all;
  },
  fetch: fetches,
  note,
  publish,
};

export async function run(): Promise<BenchTable> {
  const selected = process.env['BENCH_WORK']?.split(',') ?? Object.keys(PARTS);
  const first = await svcdNetwork(NODES);
  const second = await otherNetwork(NODES);
  const networks = second === null ? [first] : [first, second];
  const rows: BenchRow[] = [];
  try {
    if (selected.includes('idle')) await delay(SETTLE_MS);
    for (const name of selected) {
      const [own = {}, yardstick = {}] = (await PARTS[name]?.(networks)) ?? [];
      for (const [what, { value, unit }] of Object.entries(own)) {
        const other = yardstick[what]?.value;
        rows.push({ what, value, unit, ...(other === undefined ? {} : { yardstick: other, ratio: value / other }) });
      }
      console.error(JSON.stringify(rows.slice(-6)));
    }
  } finally {
    await Promise.all(networks.map((network) => network.stop()));
  }
  return { title: 'Work of daemons: per second when idle, and for each operation', rows };
}
