/**
 * The record network alone: many nodes that come and go, each with one agent that publishes its endpoints, and look-ups
 * of agents whose nodes are online.
 */
import { detach } from '../src/foundation/detached.ts';
import { DelegationVerifier } from '../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import { silentLog } from '../src/foundation/log.ts';
import { agentKey } from '../src/foundation/records/keys.ts';
import { signRecord } from '../src/foundation/records/record.ts';
import { RECORD } from '../src/foundation/records/types.ts';
import { RecordVerifier } from '../src/foundation/records/verifier.ts';
import { RecordDht } from '../src/network/records/record-dht.ts';
import { delegateAnew, type TestIdentity } from '../test/support/identities.ts';
import type { Random } from '../test/support/random.ts';
import { NAT_KINDS, Nat } from './nat.ts';
import { NodeRequestNetwork } from './node-request-network.ts';
import type { Schedule } from './schedule.ts';
import { type Machine, UdpNetwork } from './udp-network.ts';

/** The address of every machine behind a NAT. Each NAT has one machine. */
const PRIVATE_HOST = '10.0.0.2';
const DHT_PORT = 4121;
const QUIC_PORT = 4122;
const BOOTSTRAP_NODES = 5;
/** Validity of an endpoint record in seconds, and milliseconds until its agent publishes it again. */
const TTL_S = 7200;
const RENEWAL_MS = 1_800_000;
/** Milliseconds between two nodes that join at the beginning, and in which all of them join at most. */
const JOIN_PAUSE_MS = 200;
const MAX_JOINING_MS = 300_000;
/** Milliseconds from the last node that joins to the first look-up. */
const WARM_UP_MS = 120_000;
/** Milliseconds from the end of one fault to the next, and the longest that each lasts. */
const FAULT_PAUSE_MS = 300_000;
const MAX_FAULT_MS = 240_000;
/** Milliseconds after a partition in which a look-up may fail: both halves find each other within a minute or two. */
const HEALING_MS = 180_000;
/** Part of the datagrams that are lost during a fault. */
const HEAVY_LOSS = 0.15;
const MAX_MISSES_SHOWN = 20;
/** Nodes that join from one line of progress to the next. */
const NODES_PER_REPORT = 500;
const MAX_STORE_BYTES = 64 * 1024 * 1024;

export interface RecordNetworkOptions {
  readonly nodes: number;
  /** Simulated hours after all nodes have joined. */
  readonly hours: number;
  /** Median time that a node stays, in minutes. 0: no node leaves. */
  readonly medianSessionMinutes: number;
  readonly lookupsPerSecond: number;
  /** Part of the nodes that are behind a NAT, 0 to 1. */
  readonly behindNat: number;
  /** Lost datagrams, partitions, and machines that sleep. */
  readonly hasFaults: boolean;
  /** Simulated minutes between two lines with interim figures. */
  readonly reportMinutes: number;
}

export interface RecordNetworkFigures {
  readonly nodes: number;
  readonly lookups: number;
  readonly found: number;
  readonly unpublished: number;
  readonly messagesPerNodeAndSecond: number;
  readonly bytesPerNodeAndSecond: number;
  /** Nodes that left, and how often each fault occurred. */
  readonly left: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly eventHash: string;
}

interface Member {
  readonly machine: Machine;
  readonly dht: RecordDht;
  readonly nodeKey: Uint8Array;
  readonly agent: TestIdentity;
  seq: number;
  isPublished: boolean;
  isGone: boolean;
}

/** Totals at one time. */
interface Counts {
  readonly seconds: number;
  readonly lookups: number;
  readonly found: number;
  readonly messages: number;
}

/** Its name, and how it ends. */
type Fault = [name: string, end: () => void];

export class SimulatedRecordNetwork {
  readonly #options: RecordNetworkOptions;
  readonly #schedule: Schedule;
  readonly #random: Random;
  readonly #udp: UdpNetwork;
  readonly #requests: NodeRequestNetwork;
  readonly #members: Member[] = [];
  readonly #verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  #left = 0;
  #lookups = 0;
  #found = 0;
  readonly #missed: string[] = [];
  /** Until when look-ups do not count, Unix milliseconds. */
  #isUnfairUntil = 0;
  readonly #faults = new Map<string, number>();

  constructor(options: RecordNetworkOptions, schedule: Schedule, random: Random) {
    this.#options = options;
    this.#schedule = schedule;
    this.#random = random;
    this.#udp = new UdpNetwork(schedule, random);
    this.#requests = new NodeRequestNetwork(schedule);
  }

  async run(onProgress: (text: string) => void): Promise<RecordNetworkFigures> {
    const { nodes, hours, reportMinutes } = this.#options;
    while (this.#members.length < nodes) {
      await this.#join();
      await this.#schedule.run(Math.min(JOIN_PAUSE_MS, Math.floor(MAX_JOINING_MS / nodes)));
      if (this.#members.length % NODES_PER_REPORT === 0)
        onProgress(`${this.#members.length} nodes have joined, ${this.#udp.sent} messages`);
    }
    await this.#schedule.run(WARM_UP_MS);
    onProgress(`all ${nodes} nodes have joined, ${this.#udp.sent} messages`);
    const { sentBytes } = this.#udp;
    const begun = this.#counts();
    for (const member of this.#members) this.#planEnd(member);
    this.#planLookup();
    if (this.#options.hasFaults) this.#planFault();
    const minutes = hours * 60;
    let last = begun;
    for (let minute = 0; minute < minutes; minute += reportMinutes) {
      await this.#schedule.run(Math.round(Math.min(reportMinutes, minutes - minute) * 60_000));
      const now = this.#counts();
      const passed = ((now.seconds - begun.seconds) / 60).toFixed(1);
      onProgress(`${passed} minutes: ${this.#change(begun, now)}; since the last line: ${this.#change(last, now)}`);
      last = now;
    }
    const nodeSeconds = nodes * (last.seconds - begun.seconds);
    return {
      nodes,
      lookups: this.#lookups,
      found: this.#found,
      unpublished: this.#members.filter(({ isPublished }) => !isPublished).length,
      messagesPerNodeAndSecond: (last.messages - begun.messages) / nodeSeconds,
      bytesPerNodeAndSecond: (this.#udp.sentBytes - sentBytes) / nodeSeconds,
      left: this.#left,
      faults: Object.fromEntries(this.#faults),
      eventHash: this.#schedule.eventHash,
    };
  }

  #counts(): Counts {
    const seconds = this.#schedule.elapsedMs / 1000;
    return { seconds, lookups: this.#lookups, found: this.#found, messages: this.#udp.sent };
  }

  #change(from: Counts, to: Counts): string {
    const rate = (to.messages - from.messages) / (this.#options.nodes * (to.seconds - from.seconds));
    const lookups = `${to.found - from.found} of ${to.lookups - from.lookups} look-ups found`;
    return `${lookups}, ${rate.toFixed(2)} messages per node and second`;
  }

  /** The first failed look-ups: reader and owner. */
  get missed(): readonly string[] {
    return this.#missed;
  }

  /** The bootstrap nodes have public addresses. Some other nodes are behind NATs of all kinds. */
  #newMachine(): Machine {
    const host = this.#udp.newHost();
    const isPublic = this.#members.length < BOOTSTRAP_NODES || !this.#random.chance(this.#options.behindNat);
    if (isPublic) return this.#udp.machine(host);
    const kind = this.#random.pick(Object.values(NAT_KINDS));
    return this.#udp.machine(PRIVATE_HOST, new Nat(host, kind, this.#udp.newPosition(), this.#random));
  }

  async #join(): Promise<void> {
    const machine = this.#newMachine();
    const { publicKey: nodeKey } = KeyPair.generate();
    const bootstrap = this.#members
      .slice(0, BOOTSTRAP_NODES)
      .map(({ machine: { host } }) => ({ host, port: DHT_PORT }));
    const random = (): number => Math.random();
    const clock = this.#schedule;
    const dht = new RecordDht(
      {
        ...{ listen: { host: machine.host, port: DHT_PORT }, bootstrap, network: '', nodeKey },
        ...{ maxStoreBytes: MAX_STORE_BYTES, storeFile: ':memory:', minObservedPeers: 3 },
      },
      {
        ...{ clock, log: silentLog, verifier: this.#verifier, nodeRequests: this.#requests.join(nodeKey, machine) },
        ...{ quicPort: () => QUIC_PORT, proveKey: async () => true, random },
        world: {
          ...{ clock, random, createSocket: machine.createSocket },
          randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
        },
      },
    );
    await this.#schedule.until(dht.start());
    const agent = delegateAnew(KeyPair.generate());
    const member: Member = { machine, dht, nodeKey, agent, seq: 0, isPublished: false, isGone: false };
    this.#members.push(member);
    // A node that has just started does not know other nodes.
    this.#schedule.after(5000, () => this.#publish(member));
  }

  #publish(member: Member): void {
    if (member.isGone) return;
    const { aid, delegation, operational } = member.agent;
    const timestamp = Math.floor(this.#schedule.now() / 1000);
    const record = signRecord(
      {
        ...{ aid, type: RECORD.endpoints, seq: ++member.seq, timestamp, ttl: TTL_S, delegation },
        payload: new Uint8Array(100),
      },
      operational,
    );
    detach(
      member.dht.put(agentKey(aid), record).then(({ replicas }) => {
        member.isPublished ||= replicas > 0;
      }),
    );
    this.#schedule.after(RENEWAL_MS, () => this.#publish(member));
  }

  /** Plans when a node stops without notice. A new node replaces it. */
  #planEnd(member: Member): void {
    const { medianSessionMinutes } = this.#options;
    if (medianSessionMinutes === 0 || this.#members.indexOf(member) < BOOTSTRAP_NODES) return;
    const ms = (-Math.log(1 - this.#random.next()) / Math.LN2) * medianSessionMinutes * 60_000;
    this.#schedule.after(ms, () => {
      member.isGone = true;
      member.machine.isOnline = false;
      this.#requests.leave(member.nodeKey);
      this.#members.splice(this.#members.indexOf(member), 1);
      this.#left++;
      detach(
        Promise.all([member.dht.stop(), this.#join()]).then(() => {
          const newest = this.#members.at(-1);
          if (newest !== undefined) this.#planEnd(newest);
        }),
      );
    });
  }

  #planFault(): void {
    this.#schedule.after(FAULT_PAUSE_MS * (0.5 + this.#random.next()), () => {
      const durationMs = Math.round(MAX_FAULT_MS * this.#random.next());
      const [name, end] = this.#random.pick([
        () => this.#loseDatagrams(),
        () => this.#partition(false, durationMs),
        () => this.#partition(true, durationMs),
        () => this.#sleep(),
      ])();
      this.#faults.set(name, (this.#faults.get(name) ?? 0) + 1);
      this.#schedule.after(durationMs, () => {
        end();
        this.#planFault();
      });
    });
  }

  #loseDatagrams(): Fault {
    const { quality } = this.#udp;
    this.#udp.quality = { ...quality, loss: HEAVY_LOSS, duplication: 0.02, jitterMs: 40 };
    return ['lost datagrams', () => void (this.#udp.quality = quality)];
  }

  /** @param isOneWay whether the other direction still works */
  #partition(isOneWay: boolean, durationMs: number): Fault {
    const share = this.#random.next();
    const side = new Map<Machine, boolean>();
    const isLeft = (machine: Machine): boolean => {
      let left = side.get(machine);
      if (left === undefined) side.set(machine, (left = this.#random.chance(share)));
      return left;
    };
    this.#udp.isCut = (from, to) => (isOneWay ? isLeft(from) && !isLeft(to) : isLeft(from) !== isLeft(to));
    this.#isUnfairUntil = this.#schedule.now() + durationMs + HEALING_MS;
    return [isOneWay ? 'one-way partitions' : 'partitions', () => void (this.#udp.isCut = () => false)];
  }

  /** A tenth of the machines are offline for a while. */
  #sleep(): Fault {
    const sleepers = this.#members.filter(({ isGone }) => !isGone && this.#random.chance(0.1));
    for (const { machine } of sleepers) machine.isOnline = false;
    const wake = (): void => {
      for (const { machine, isGone } of sleepers) machine.isOnline = !isGone;
    };
    return ['sleeping machines', wake];
  }

  #planLookup(): void {
    const pauseMs = (-Math.log(1 - this.#random.next()) * 1000) / this.#options.lookupsPerSecond;
    this.#schedule.after(pauseMs, () => {
      this.#planLookup();
      const [reader, wanted] = [this.#random.pick(this.#members), this.#random.pick(this.#members)];
      if (wanted.isPublished && reader !== wanted) detach(this.#lookUp(reader, wanted));
    });
  }

  async #lookUp(reader: Member, wanted: Member): Promise<void> {
    const record = await reader.dht.get(agentKey(wanted.agent.aid), RECORD.endpoints);
    // Nodes that left during the look-up do not count.
    if (reader.isGone || wanted.isGone || !reader.machine.isOnline || this.#schedule.now() < this.#isUnfairUntil)
      return;
    this.#lookups++;
    if (record !== null) this.#found++;
    else if (this.#missed.length < MAX_MISSES_SHOWN)
      this.#missed.push(`${this.#schedule.elapsedMs} ms: ${reader.machine.host} for ${wanted.machine.host}`);
  }
}
