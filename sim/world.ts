/** Complete nodes, their users, and everything that goes wrong, in virtual time. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onDetachedError } from '../src/foundation/detached.ts';
import { SvcError } from '../src/foundation/errors.ts';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import { delegateAnew } from '../test/support/identities.ts';
import { Random } from '../test/support/random.ts';
import { Agent, FIRST_SERVICE_PORT } from './agent.ts';
import { Faults } from './faults.ts';
import { lies } from './liars.ts';
import { type Answers, acting, Ledger } from './model/ledger.ts';
import type { FaultKind, TrialName } from './names.ts';
import { NAT_KINDS, Nat } from './nat.ts';
import { SimulatedNode } from './node.ts';
import type { Schedule } from './schedule.ts';
import { type Machine, UdpNetwork } from './udp-network.ts';
import type { Surroundings, Users } from './user.ts';
import { CallUsers } from './users/calls.ts';
import { ChatUsers } from './users/chats.ts';
import { DisasterUsers } from './users/disasters.ts';
import { FileUsers } from './users/files.ts';
import { GroupUsers } from './users/groups.ts';
import { KeyUsers } from './users/keys.ts';
import { LifeUsers } from './users/lives.ts';
import { NoteUsers } from './users/notes.ts';
import { RecordUsers } from './users/records.ts';
import { StreamUsers } from './users/streams.ts';
import { TrialUsers } from './users/trials.ts';
import { TunnelUsers } from './users/tunnels.ts';

/** Directories of nodes are in memory if the system has this. */
const MEMORY_FILES = '/dev/shm';
/** Nodes with public addresses through which others join. */
const BOOTSTRAP_NODES = 3;
const DHT_PORT = 4121;
const PRIVATE_HOST = '10.0.0.2';
const HOUR_MS = 3_600_000;
/** Milliseconds between two nodes that join, and until their users act. */
const JOIN_PAUSE_MS = 500;
const WARM_UP_MS = 60_000;
/** Milliseconds until a node is started again that could not start. */
const RESTART_MS = 30_000;
/** Limits for one node. */
const MAX_TIMERS = 4000;
const MAX_DATABASE_BYTES = 96 * 1024 * 1024;
const MAX_LINES = 200_000;

const USERS = [NoteUsers, ChatUsers, FileUsers, TunnelUsers, RecordUsers, GroupUsers, LifeUsers, StreamUsers];

export interface WorldOptions {
  readonly nodes: number;
  readonly agentsPerNode: number;
  /** Simulated hours with users and faults. */
  readonly hours: number;
  /** Actions of each agent per hour. */
  readonly actionsPerHour: number;
  /** Notes or texts that one action sends. */
  readonly burst: number;
  readonly behindNat: number;
  /** Dishonest nodes, which have no agents. */
  readonly liars: number;
  readonly faults: readonly FaultKind[];
  /** Numbers of omitted faults, from 1. */
  readonly withoutFaults: readonly number[];
  /** Time from the end of all faults until every guarantee must hold. */
  readonly healingMs: number;
  /** Names of the users that act, of `USER_NAMES`. */
  readonly users: readonly string[];
  readonly trials: readonly TrialName[];
  /** Average minutes between the starts of two faults. */
  readonly faultPauseMinutes: number;
}

export interface Violation {
  /** Milliseconds since the beginning. */
  readonly atMs: number;
  readonly guarantee: string;
  readonly text: string;
}

export interface WorldFigures {
  readonly nodeDays: number;
  readonly users: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  /** The number of the last fault. */
  readonly lastFault: number;
  /** When users and faults began, milliseconds since the beginning. */
  readonly begunMs: number;
  readonly violations: readonly Violation[];
  readonly answers: Answers;
  /** Numbers of events that users read, by type. */
  readonly eventTypes: Readonly<Record<string, number>>;
  readonly eventHash: string;
}

export class World implements Surroundings {
  readonly schedule: Schedule;
  readonly random: Random;
  readonly agents: Agent[] = [];
  readonly nodes: SimulatedNode[] = [];
  readonly burst: number;
  readonly violations: Violation[] = [];
  readonly timeline: string[] = [];
  readonly #options: WorldOptions;
  readonly #udp: UdpNetwork;
  readonly #faults: Faults;
  readonly #users: readonly Users[];
  readonly #calls: CallUsers;
  readonly #keys: KeyUsers;
  readonly #directory: string;
  readonly #failures = new Map<string, number>();
  readonly #ledger = new Ledger((guarantee, text) => this.violate(guarantee, text));
  #isActing = false;
  #spares = 0;
  #begunMs = 0;

  constructor(options: WorldOptions, schedule: Schedule, random: Random) {
    this.#options = options;
    this.burst = options.burst;
    this.schedule = schedule;
    this.random = random;
    // Separate numbers, so that a change of one part does not change all others.
    const part = (): Random => new Random(random.below(2 ** 32));
    this.#udp = new UdpNetwork(schedule, part());
    const ofFaults = part();
    this.#directory = mkdtempSync(join(isDirectory(MEMORY_FILES) ? MEMORY_FILES : tmpdir(), 'svcd-sim-'));
    this.#calls = new CallUsers(this);
    const keys = new KeyUsers(this, { nodes: this.nodes, moved: (agent) => agent.serve() });
    this.#keys = keys;
    const disasters = new DisasterUsers(this, { newNode: async () => await this.#newSpare() });
    const trials = new TrialUsers(this, {
      only: options.trials,
      newNode: async (via, isBehindNat) => await this.#newSpare(via, isBehindNat),
      move: ({ machine }) => this.#udp.move(machine),
      cut: (left, right) => {
        const machines = (nodes: readonly SimulatedNode[]): Machine[] => nodes.map(({ machine }) => machine);
        return this.#udp.cut(machines(left), machines(right));
      },
      restartNat: ({ machine }) => machine.nat?.restart(),
    });
    const all: readonly Users[] = [keys, this.#calls, disasters, trials, ...USERS.map((Kind) => new Kind(this))];
    this.#users = all.filter(({ name }) => options.users.includes(name));
    this.#faults = new Faults({
      ...{
        schedule,
        random: ofFaults,
        udp: this.#udp,
        nodes: this.nodes,
        kinds: options.faults,
        without: options.withoutFaults,
        pauseMs: options.faultPauseMinutes * 60_000,
      },
      note: (text) => this.note(text),
      start: async (node) => await this.#start(node),
      stop: async (node) => await this.#stop(node),
      crash: (node) => node.crash(),
      cutPower: (node) => node.cutPower(),
    });
  }

  readonly note = (text: string): void => {
    const { elapsedMs } = this.schedule;
    this.schedule.record(`${elapsedMs} ${text}`, new Uint8Array());
    this.timeline.push(`${(elapsedMs / 1000).toFixed(3)} s: ${text}`);
    if (this.timeline.length > MAX_LINES) this.timeline.splice(0, MAX_LINES / 2);
  };

  readonly violate = (guarantee: string, text: string): void => {
    this.note(`VIOLATION of "${guarantee}": ${text}`);
    this.violations.push({ atMs: this.schedule.elapsedMs, guarantee, text });
  };

  readonly attempt = async <T>(what: string, work: () => Promise<T>): Promise<T | null> => {
    this.note(what);
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
      this.note(`${what}: ${code}`);
      if (code === 'unexpected' || code === 'internal' || code === 'store_corrupt' || code === 'invalid_request')
        this.violate('operations fail in a known way', `${what}: ${textOf(error)}`);
      return null;
    }
  };

  readonly isCalm = (ms: number, ...agents: readonly Agent[]): boolean => {
    const since = this.schedule.now() - ms;
    if (!this.#isActing || this.#faults.since(since).length > 0) return false;
    return agents.every(({ node }) => node.isRunning && node.startedAt <= since);
  };

  faultsSince(at: number): readonly { readonly kind: string; readonly ms: number }[] {
    return this.#faults.since(at);
  }

  /** Simulates everything. The directories of the nodes are removed at the end. */
  async run(onProgress: (text: string) => void): Promise<WorldFigures> {
    const { schedule } = this;
    const { nodes, hours } = this.#options;
    const onError = (error: unknown): void => this.violate('programs do not crash', textOf(error));
    // As in the daemon: detached work may fail, because it belongs to one request.
    const forget = onDetachedError((error) => {
      if (error instanceof SvcError) this.note(`background work failed: ${error.code}`);
      else onError(error);
    });
    process.on('uncaughtException', onError);
    try {
      while (this.nodes.length < nodes) {
        await schedule.until(this.#join());
        await schedule.run(JOIN_PAUSE_MS);
      }
      await schedule.run(WARM_UP_MS);
      for (const agent of this.agents) await schedule.until(agent.register());
      await schedule.run(WARM_UP_MS);
      onProgress(`${nodes} nodes have joined`);
      this.#isActing = true;
      this.#begunMs = schedule.elapsedMs;
      for (const agent of this.agents) this.#planAction(agent);
      this.#faults.begin();
      for (let hour = 0; hour < hours; hour++) {
        await schedule.run(Math.round(Math.min(1, hours - hour) * HOUR_MS));
        this.#checkLimits();
        onProgress(`${hour + 1} of ${hours} hours`);
      }
      this.#isActing = false;
      this.note('all faults end');
      await schedule.until(this.#faults.heal());
      // An agent that a fault kept between two nodes needs the time to heal too.
      for (const agent of this.agents) await schedule.until(this.#keys.arrive(agent));
      await schedule.run(this.#options.healingMs);
      for (const users of this.#users) await schedule.until(acting.run(users.name, () => users.audit()));
      this.#checkLimits();
      for (const node of this.nodes) await schedule.until(this.#stop(node));
      return this.#figures();
    } finally {
      forget();
      process.off('uncaughtException', onError);
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  #figures(): WorldFigures {
    const { nodes } = this.#options;
    return {
      nodeDays: (nodes * this.schedule.elapsedMs) / (24 * HOUR_MS),
      users: Object.fromEntries(this.#users.map((users) => [users.name, users.figures()])),
      failures: Object.fromEntries(this.#failures),
      faults: this.#faults.counts(),
      lastFault: this.#faults.planned,
      begunMs: this.#begunMs,
      violations: this.violations,
      answers: this.#ledger.answers,
      eventTypes: this.#ledger.events,
      eventHash: this.schedule.eventHash,
    };
  }

  async #join(): Promise<void> {
    const nth = this.nodes.length;
    const bootstrap = this.nodes.slice(0, BOOTSTRAP_NODES).map(({ machine }) => `${machine.host}:${DHT_PORT}`);
    const { schedule } = this;
    const node = this.#newNode(`n${nth}`, this.#newMachine(nth), bootstrap);
    this.nodes.push(node);
    await this.#start(node);
    const isLiar = nth >= this.#options.nodes - this.#options.liars;
    if (isLiar) node.machine.lie = lies(schedule, this.random);
    for (let i = 0; i < (isLiar ? 0 : this.#options.agentsPerNode); i++) {
      const identity = delegateAnew(KeyPair.generate(), Math.floor(schedule.now() / 1000));
      const agent = new Agent(`${'abcdefgh'[i]}${nth}`, node, FIRST_SERVICE_PORT + this.agents.length, identity);
      agent.serve();
      this.#calls.watch(agent);
      this.agents.push(agent);
    }
  }

  #newNode(name: string, machine: Machine, bootstrap: readonly string[]): SimulatedNode {
    const { schedule, random } = this;
    const { answered } = this.#ledger;
    return new SimulatedNode({ name, schedule, random, machine, bootstrap, directory: this.#directory, answered });
  }

  /** A node that no fault affects. @param via the node through which it joins; undefined: the nodes of the world; null: none */
  async #newSpare(via?: SimulatedNode | null, isBehindNat = false): Promise<SimulatedNode> {
    const known = via === undefined ? this.nodes.slice(0, BOOTSTRAP_NODES) : [via].filter((node) => node !== null);
    const bootstrap = known.map(({ machine }) => `${machine.host}:${DHT_PORT}`);
    const name = this.#spares === 0 ? 'spare' : `spare${this.#spares}`;
    this.#spares++;
    const machine = isBehindNat ? this.#natMachine() : this.#udp.machine(this.#udp.newHost());
    const node = this.#newNode(name, machine, bootstrap);
    await node.start();
    return node;
  }

  #newMachine(nth: number): Machine {
    if (nth < BOOTSTRAP_NODES || !this.random.chance(this.#options.behindNat))
      return this.#udp.machine(this.#udp.newHost());
    return this.#natMachine();
  }

  #natMachine(): Machine {
    const kind = this.random.pick(Object.values(NAT_KINDS));
    return this.#udp.machine(PRIVATE_HOST, new Nat(this.#udp.newHost(), kind, this.#udp.newPosition(), this.random));
  }

  async #start(node: SimulatedNode): Promise<void> {
    if (node.isRunning) return;
    this.note(`${node.name} starts`);
    try {
      await node.start();
    } catch (error) {
      const isExpected = codeOf(error) === (node.machine.hasAddress ? 'not_writable' : 'network_unavailable');
      if (!(error instanceof SvcError) || !isExpected) throw error;
      node.crash();
      this.note(`${node.name} cannot start: ${error.code}`);
      return void this.schedule.after(RESTART_MS, () => void this.#start(node));
    }
    for (const agent of this.agents) if (agent.node === node) agent.serve();
  }

  async #stop(node: SimulatedNode): Promise<void> {
    this.note(`${node.name} stops`);
    const left = await node.stop();
    if (left.length > 0) this.violate('a stop releases everything', `${node.name}: ${left.join('; ')}`);
  }

  #planAction(agent: Agent): void {
    const pauseMs = (-Math.log(1 - this.random.next()) * HOUR_MS) / this.#options.actionsPerHour;
    this.schedule.after(pauseMs, () => {
      if (!this.#isActing) return;
      this.#planAction(agent);
      const users = this.#chooseUsers();
      const work: () => Promise<unknown> =
        agent.pendingBundle === null ? () => users.act(agent) : () => this.#keys.arrive(agent);
      if (!agent.node.isRunning || agent.isBusy) return;
      agent.acting++;
      acting
        .run(users.name, work)
        .catch((error: unknown) => this.violate('the simulator works', textOf(error)))
        .finally(() => agent.acting--);
    });
  }

  #chooseUsers(): Users {
    const total = this.#users.reduce((sum, { weight }) => sum + weight, 0);
    let rest = this.random.next() * total;
    for (const users of this.#users) {
      rest -= users.weight;
      if (rest < 0) return users;
    }
    throw new Error('no users');
  }

  #checkLimits(): void {
    for (const { name, directory, process, isRunning } of this.nodes) {
      if (isRunning && process.timers > MAX_TIMERS)
        this.violate('memory is bounded', `${name} has ${process.timers} timers`);
      const bytes = readdirSync(directory).reduce((sum, file) => sum + sizeOf(join(directory, file)), 0);
      if (bytes > MAX_DATABASE_BYTES) this.violate('databases are bounded', `${name} uses ${bytes} bytes`);
    }
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? String(error.stack) : String(error);
}

function codeOf(error: unknown): string {
  return error instanceof SvcError ? error.code : 'unexpected';
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
