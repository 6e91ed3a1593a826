/**
 * Ten thousand agents on one daemon: start time of registry and renewal, event loop stalls while all overdue agents are
 * renewed, and the cost of reading an agent. The network is a stub, so only the daemon's own work is measured.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { keyName } from '../src/capabilities/agents/keyring.ts';
import { AgentRegistry } from '../src/capabilities/agents/registry.ts';
import { Directory } from '../src/capabilities/directory/directory.ts';
import type { Records } from '../src/capabilities/directory/types.ts';
import { toHex } from '../src/foundation/bytes.ts';
import { systemClock } from '../src/foundation/clock.ts';
import { type Aid, nativeAid } from '../src/foundation/identity/aid.ts';
import { issueDelegation } from '../src/foundation/identity/delegation.ts';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import { NewAids } from '../src/foundation/identity/new-identities.ts';
import { KeyStore } from '../src/foundation/keys/key-store.ts';
import { silentLog } from '../src/foundation/log.ts';
import type { SignedRecord } from '../src/foundation/records/record.ts';
import { AgentStore } from '../src/foundation/store/agents.ts';
import { PublicationStore } from '../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../src/foundation/store/schema.ts';
import { Store } from '../src/foundation/store/store.ts';
import { Resolver } from '../src/network/resolver.ts';
import { agentHandlers } from '../src/operations/handlers/agents.ts';
import type { CallContext } from '../src/operations/operation.ts';
import { type BenchTable, quantile } from './table.ts';

const AGENTS = 10_000;
const MEASURE_MS = 15_000;
const START_AIM_MS = 5000;
const STALL_AIM_MS = 100;
const RESOLVE_AIM_MS = 0.5;

/** Keeps the last record of each key and type. */
function stubNetwork(): Records & { published: number } {
  const held = new Map<string, SignedRecord>();
  const name = (key: Uint8Array, type: number): string => `${toHex(key)} ${type}`;
  return {
    published: 0,
    async put(key, record) {
      held.set(name(key, record.type), record);
      this.published += 1;
      return { replicas: 8, newer: null, refused: {} };
    },
    get: async (key, type) => held.get(name(key, type)) ?? null,
    list: async () => [],
    near(key) {
      return { get: (type) => this.get(key, type), put: (record) => this.put(key, record), stop: () => {} };
    },
    holders: async () => ({ answered: 8, holding: 8 }),
    reachability: () => ({ ready: true, peers: 60, clients: 0, natType: 1, observed: [], inRoutingTables: true }),
    onReachability: () => () => {},
  };
}

/** Agents that were all published two hours ago. */
async function populate(directory: string): Promise<void> {
  const store = Store.open(join(directory, 'node.db'), MIGRATIONS, 'normal');
  const keys = await KeyStore.open({ directory: join(directory, 'keys') }, { log: silentLog });
  const agents = new AgentStore(store);
  const publications = new PublicationStore(store);
  const now = Date.now();
  store.transaction(() => {
    for (let i = 0; i < AGENTS; i++) {
      const master = KeyPair.generate();
      const delegation = issueDelegation(master, master.publicKey, Math.floor(now / 1000) - 10_000);
      const name = keyName(delegation.agent, master.publicKey);
      keys.put(name, master);
      agents.put({ keyName: name, delegation, serviceTcp: '', registeredAt: now });
    }
  });
  publications.createMissingEndpoints(now - 7_200_000, 3600);
  store.close();
}

export async function run(): Promise<BenchTable> {
  const directory = mkdtempSync(join(tmpdir(), 'svcd-bench-'));
  try {
    await populate(directory);
    return await measure(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function measure(path: string): Promise<BenchTable> {
  const started = performance.now();
  const store = Store.open(join(path, 'node.db'), MIGRATIONS);
  const vault = await KeyStore.open({ directory: join(path, 'keys') }, { log: silentLog });
  const node = KeyPair.generate();
  const nodeAid = nativeAid(node.publicKey);
  const network = stubNetwork();
  const published: Aid[] = [];
  const clock = systemClock;
  const log = silentLog;
  const agents = new AgentRegistry(
    { nodeAid },
    {
      agents: new AgentStore(store),
      vault,
      clock,
      log,
      own: { api: () => null, interfaces: () => [], lookup: async () => [] },
      checkTcp: async () => ({ ok: true, ms: 0 }),
    },
  );
  const resolver = new Resolver({ network, clock, log, lookupHost: async () => [] });
  const newAids = new NewAids(clock);
  const directory = new Directory(
    { nodeAid, nodeKey: node.publicKey },
    {
      network,
      publications: new PublicationStore(store),
      newAids,
      clock,
      log,
      identity: (aid) => agents.identity(aid),
      registry: { isHeld: () => false, service: () => '' },
      ownAddresses: {
        current: () => ({ endpoints: ['quic://192.0.2.1:4122'], mapped: [], natType: 1, helpers: [] }),
        onChange: () => () => {},
      },
      autoPublish: () => true,
      random: Math.random,
      onPublished: (record) => {
        resolver.learn(record);
        published.push(record.aid);
      },
    },
  );
  await agents.start();
  await directory.start();
  const startMs = performance.now() - started;

  const stalls = monitorEventLoopDelay({ resolution: 5 });
  stalls.enable();
  const before = network.published;
  await delay(MEASURE_MS);
  stalls.disable();
  const perSecond = ((network.published - before) / MEASURE_MS) * 1000;

  const { agentsList } = agentHandlers({
    newAids,
    agents,
    directory,
    resolver,
    clock,
    nodeKey: node.publicKey,
    callerKey: () => new Uint8Array(32),
    acl: () => ({ default: 'public', allow: [], deny: [] }),
    acls: (aids) => new Map(aids.map((aid) => [aid, { default: 'public', allow: [], deny: [] }])),
    pendingCounters: () => ({}),
    reachable: () => true,
  });
  const context: CallContext = {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
  };
  const pages: number[] = [];
  for (let i = 0; i < 10; i++) {
    const at = performance.now();
    JSON.stringify(await agentsList({ limit: 1000, cursor: `${i * 1000}` }, context));
    pages.push(performance.now() - at);
  }

  const first = published.at(-1) ?? nodeAid;
  const resolves: number[] = [];
  for (let i = 0; i < 2000; i++) {
    const asked = performance.now();
    await resolver.resolve(first);
    resolves.push(performance.now() - asked);
  }

  await directory.stop();
  await agents.stop();
  store.close();
  const stallMs = stalls.max / 1e6;
  const pageMs = Math.max(...pages);
  const resolveMs = quantile(resolves, 0.5);
  return {
    title: `${AGENTS} agents on one daemon`,
    rows: [
      { what: 'start', value: startMs, unit: 'ms', aim: `≤ ${START_AIM_MS} ms`, ok: startMs <= START_AIM_MS },
      { what: 'renewals per second', value: perSecond, unit: '/s', aim: 'spread' },
      { what: 'longest stall', value: stallMs, unit: 'ms', aim: `≤ ${STALL_AIM_MS} ms`, ok: stallMs <= STALL_AIM_MS },
      { what: 'a page of 1,000', value: pageMs, unit: 'ms', aim: `≤ ${STALL_AIM_MS} ms`, ok: pageMs <= STALL_AIM_MS },
      {
        what: 'resolve, cached, p50',
        value: resolveMs,
        unit: 'ms',
        aim: `≤ ${RESOLVE_AIM_MS} ms`,
        ok: resolveMs <= RESOLVE_AIM_MS,
      },
    ],
  };
}
