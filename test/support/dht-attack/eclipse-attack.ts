/**
 * Runs in a network namespace with public addresses: honest nodes, an attacker with the closest positions to three
 * keys, and reads of records that are written during the attack. Takes changed `AttackOptions` as JSON and prints
 * `AttackFigures` as JSON. Progress goes to stderr.
 */
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { agentKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { delegateAnew } from '../identities.ts';
import { endpointRecord, noteRecord, type Published, serviceRecord } from '../records.ts';
import type { AttackFigures, AttackOptions } from './attack-options.ts';
import { DEFAULT_ATTACK } from './attack-options.ts';
import { AttackProcess } from './attack-process.ts';
import { HonestNetwork, type HonestNode, NETWORK } from './honest-network.ts';
import type { Behavior } from './hostile-node.ts';
import { closestPositions, distance, honestPositions, hostileNetworks, networkOf } from './positions.ts';

/** Concurrent reads: few, so that reads do not time out on a busy machine. */
const CONCURRENT_READS = 2;
/** Number of nodes that should store a key. */
const REPLICAS = 16;
const SERVICE = 'org.example.attacked';
/**
 * Index of the honest node that sets the distance of a stealthy attack, and the number of nodes near a key that lend their networks to phantoms.
 */
const REFERENCE_NODE = 7;
const NEAR_NODES = 30;

const changed: Partial<AttackOptions> = JSON.parse(process.argv[2] ?? '{}');
const options: AttackOptions = { ...DEFAULT_ATTACK, ...changed };
const started = performance.now();

function log(what: string): void {
  const { user, system } = process.cpuUsage();
  const figures = [(performance.now() - started) / 1000, (user + system) / 1e6].map((s) => s.toFixed(1));
  console.error(`${figures[0]} s, ${figures[1]} s of CPU, ${process.memoryUsage.rss() >> 20} MiB: ${what}`);
}

const [recipient, publisher] = [1, 2].map((i) =>
  delegateAnew(KeyPair.fromSeed(new Uint8Array(32).fill(options.seed + i))),
) as [ReturnType<typeof delegateAnew>, ReturnType<typeof delegateAnew>];
const keys = [mailboxKey(recipient.aid), serviceKey(SERVICE), agentKey(publisher.aid)];

const hostileSeed = options.seed + 1000;
const honestAt = honestPositions({
  ...options,
  nodes: options.honest,
  hostile: hostileNetworks({ ...options, seed: hostileSeed }),
});
const near = keys.map((key) => closestPositions(key, honestAt, NEAR_NODES));
const isStealthy = options.standoff > 0;
using attack = new AttackProcess({
  ...options,
  keys,
  network: NETWORK,
  own: new Map([noteRecord(recipient), serviceRecord(SERVICE)].map(({ key, record }) => [toHex(key), record.encoded])),
  nearNetworks: near.map((positions) => [...new Set(positions.map(networkOf))]),
  plan: {
    ...options,
    seed: hostileSeed,
    minDistances: keys.map((key, i) => options.standoff * distance(key, near[i]?.at(REFERENCE_NODE)?.id ?? key)),
    usesAllAddresses: !isStealthy,
    perKey: isStealthy ? options.networks : options.perKey,
  },
});
const hostile = new Set(attack.positions.map(({ host }) => host));
const network = new HonestNetwork(honestAt);

async function startAttack(): Promise<void> {
  await attack.start();
  log(`hostile nodes listen at ${attack.positions.length} positions`);
  await pingVictims();
}

async function pingVictims(): Promise<void> {
  await attack.ping(network.addresses);
  await network.settle();
  log('the hostile nodes have pinged every victim');
}

/** The node farthest from a key, which finds it only by searching. */
function farthestFrom(key: Uint8Array): HonestNode {
  const [farthest] = network.farFrom(key);
  if (farthest === undefined) throw new RangeError('no node is far from the key');
  return farthest;
}

async function write({ key, record }: Published, by: HonestNode = farthestFrom(key)): Promise<void> {
  const { replicas, refused } = await by.dht.put(key, record);
  log(`${replicas} nodes confirm storing it, ${JSON.stringify(refused)}`);
}

async function finds(reader: HonestNode, { key, record }: Published): Promise<boolean> {
  let records: readonly (SignedRecord | null)[];
  if (record.type === RECORD.endpoints) records = [await reader.dht.get(key, record.type, { thorough: true })];
  else records = await reader.dht.list(key, [record.type]);
  return records.some((one) => one !== null && equalBytes(one.encoded, record.encoded));
}

/** The fraction of reads that find a record, from nodes far from it in turn. */
async function read(published: Published, reads: number): Promise<number> {
  const readers = network.farFrom(published.key);
  const waiting = Array.from({ length: reads }, (_, i) => readers[i % readers.length] ?? farthestFrom(published.key));
  let good = 0;
  const times: number[] = [];
  const work = async (): Promise<void> => {
    for (let reader = waiting.pop(); reader !== undefined; reader = waiting.pop()) {
      const asked = performance.now();
      if (await finds(reader, published)) good++;
      else logMiss(reader);
      times.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_READS }, work));
  times.sort((a, b) => a - b);
  const [median = 0, slowest = 0] = [times[times.length >> 1], times.at(-1)].map((ms) => Math.round(ms ?? 0));
  log(`${good} of ${reads} reads find it, in ${median} ms, the slowest in ${slowest} ms`);
  return good / reads;
}

function logMiss({ position: { host, port }, dht }: HonestNode): void {
  const peers = dht.peers();
  const theirs = peers.filter((peer) => hostile.has(peer.host)).length;
  const position = dht.reachability().inRoutingTables ? 'in the tables' : 'in no table';
  log(`${host}:${port}, ${position}, with ${theirs} hostile nodes of ${peers.length} peers, has not found it`);
}

/** The fraction of records found that nodes at the shared address write, read by each other and by a distant node. */
async function readSharedAddress(): Promise<number> {
  const members = network.atSharedAddress();
  let good = 0;
  let asked = 0;
  for (const [i, member] of members.entries()) {
    if (i % 5 > 0) continue;
    const record = endpointRecord();
    await write(record, member);
    const readers = [members[i + 1] ?? member, farthestFrom(record.key)];
    for (const reader of readers) if (await finds(reader, record)) good++;
    asked += readers.length;
  }
  log(`${good} of ${asked} reads of the shared address find it`);
  return asked === 0 ? 1 : good / asked;
}

/** Writes one record under each key while the attackers behave in this way, and reads it. */
async function experiment(behavior: Behavior, nth: number) {
  await attack.behave(behavior);
  log(JSON.stringify(behavior));
  const details = { seq: nth + 2 };
  const note = noteRecord(recipient);
  const service = serviceRecord(SERVICE, publisher, details);
  const endpoints = endpointRecord(publisher, details);
  for (const record of [note, service, endpoints]) await write(record);
  await network.runPeriodicWork();
  log('all nodes have done their periodic work');
  return {
    ...behavior,
    mailbox: await read(note, options.reads),
    service: await read(service, options.reads),
    endpoints: await read(endpoints, options.reads),
  };
}

await network.startBootstrap();
const isFirst = options.startsAt === 'first';
if (isFirst) await startAttack();
await network.startOthers(isFirst, async (nth) => {
  if (isFirst && nth % 3 === 0) await pingVictims();
});
log('all honest nodes have joined');
await network.settle();
const atSharedAddress = isFirst ? null : await readSharedAddress();
if (options.startsAt === 'joined') await startAttack();
if (options.startsAt !== 'stored') await pingVictims();
// Old records, which the attackers return for `stale`.
for (const record of [serviceRecord(SERVICE, publisher), endpointRecord(publisher)]) await write(record);
if (options.startsAt === 'stored') await startAttack();
const reads: AttackFigures['reads'] = [];
for (const [i, behavior] of options.behaviors.entries())
  reads.push(await experiment({ lie: 'nothing', names: 'own', delayMs: 0, ...behavior }, i));

const hostileParts = network.nodes.map(({ dht }) => {
  const peers = dht.peers();
  return peers.filter(({ host }) => hostile.has(host)).length / Math.max(1, peers.length);
});
const figures: AttackFigures = {
  hostileClosest: keys.map(
    (key) =>
      closestPositions(key, [...attack.positions, ...honestAt], REPLICAS).filter(({ host }) => hostile.has(host))
        .length,
  ),
  atSharedAddress,
  reads,
  hostileInTables: hostileParts.reduce((sum, part) => sum + part, 0) / hostileParts.length,
  inTables: network.nodes.filter(({ dht }) => dht.reachability().inRoutingTables).length,
};
console.log(JSON.stringify(figures));
await network.stop();
