/** One complete node: the daemon of svcd on a simulated machine, without REST sockets and native engines. */
import { mkdirSync } from 'node:fs';
import type { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Daemon } from '../src/daemon/daemon.ts';
import type { Machine } from '../src/daemon/machine.ts';
import { SvcError } from '../src/foundation/errors.ts';
import { parseAid } from '../src/foundation/identity/aid.ts';
import { operations } from '../src/operations/index.ts';
import { compileInput } from '../src/operations/input.ts';
import {
  BODY_PREFIX,
  type BoundOperation,
  type CallContext,
  type Declaration,
  type InputOf,
  type OutputOf,
} from '../src/operations/operation.ts';
import type { Random } from '../test/support/random.ts';
import { Disk } from './disk.ts';
import type { Ledger } from './model/ledger.ts';
import { type LocalPorts, Process } from './process.ts';
import { simulatedEngine } from './quic-engine.ts';
import type { Schedule } from './schedule.ts';
import type { Machine as NetworkMachine } from './udp-network.ts';

/** Handshakes that the engine processes are not counted as a flood here. */
const ADAPT_HANDSHAKES_MS = 60_000;
/** Milliseconds in which a stopped program may end what it does. */
const CLOSING_MS = 100;
/** Milliseconds after which a user gives up. */
const CALL_TIMEOUT_MS = 60_000;

type Operations = typeof operations;

/** Validates an input as the surfaces do, by operation. */
const readers = new Map<Declaration, (input: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>>();

function readerOf(
  declaration: Declaration,
): (input: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> {
  const known = readers.get(declaration);
  if (known !== undefined) return known;
  const read = compileInput(declaration, parseAid, 'json');
  const reader = (input: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
    const raw: Record<'params' | 'query' | 'body', Record<string, unknown>> = { params: {}, query: {}, body: {} };
    for (const [key, value] of Object.entries(input)) {
      const inner = key.startsWith(BODY_PREFIX) ? key.slice(BODY_PREFIX.length) : '';
      if (inner in declaration.params.properties) {
        raw.body[inner] = value;
        continue;
      }
      const part =
        key in declaration.params.properties ? 'params' : key in declaration.query.properties ? 'query' : 'body';
      raw[part][key] = value;
    }
    return read(raw);
  };
  readers.set(declaration, reader);
  return reader;
}

function randomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}

interface NodeParts {
  readonly name: string;
  readonly schedule: Schedule;
  /** For faults of the disk. */
  readonly random: Random;
  readonly machine: NetworkMachine;
  /** Addresses of nodes to join through. */
  readonly bootstrap: readonly string[];
  /** A directory of the real machine, in memory if possible. */
  readonly directory: string;
  readonly environment?: NodeJS.ProcessEnv;
  /** Receives each answer. */
  readonly answered?: Ledger['answered'];
}

export class SimulatedNode {
  readonly name: string;
  readonly machine: NetworkMachine;
  /** Local programs of this machine, by TCP port. */
  readonly ports: LocalPorts = new Map();
  readonly directory: string;
  readonly disk: Disk;
  /** When its clock was set wrong, Unix milliseconds. */
  clockSetAt = 0;
  /** When it was started, Unix milliseconds. */
  startedAt = 0;
  readonly #parts: NodeParts;
  #daemon: Daemon | null = null;
  #process: Process;
  #operations = new Map<string, BoundOperation>();

  constructor(parts: NodeParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.machine = parts.machine;
    this.directory = join(parts.directory, parts.name);
    this.disk = new Disk(this.directory, parts.random);
    this.#process = this.#newProcess();
  }

  /** The program that runs now, or the last one. */
  get process(): Process {
    return this.#process;
  }

  get isRunning(): boolean {
    return this.#daemon !== null;
  }

  #newProcess(): Process {
    const interfaces = (): ReturnType<typeof networkInterfaces> => {
      const { host, hasAddress } = this.machine;
      if (!hasAddress) return {};
      const isPrivate = this.machine.nat !== null;
      const cidr = `${host}/${isPrivate ? 24 : 16}`;
      const netmask = isPrivate ? '255.255.255.0' : '255.255.0.0';
      const address = {
        address: host,
        netmask,
        family: 'IPv4',
        mac: '02:00:00:00:00:01',
        internal: false,
        cidr,
      } as const;
      return { eth0: [address] };
    };
    return new Process(this.#parts.schedule, { name: this.name, interfaces, ports: this.ports });
  }

  async start(): Promise<void> {
    const { bootstrap, environment = {}, machine } = this.#parts;
    mkdirSync(this.directory, { recursive: true });
    const process = this.#newProcess();
    this.#process = process;
    const { createSocket } = machine;
    const owned = { clock: process.clock, createSocket, randomBytes };
    const simulated: Machine = {
      clock: process.clock,
      rpc: { ...owned, random: () => Math.random() },
      engine: simulatedEngine(owned),
      adaptHandshakesMs: ADAPT_HANDSHAKES_MS,
      hasBulkLanes: false,
      hasTls: false,
      releasesMemory: false,
    };
    const args = {
      dataDir: this.directory,
      configFile: join(this.directory, 'config.toml'),
      flags: { bootstrap: bootstrap.join(','), open_browser: 'false' },
      mcpStdio: { profiles: undefined },
    };
    const settings = { SVCD_MDNS: 'false', SVCD_LAN_TCP: 'false', SVCD_DISABLE_UPNP: 'true', SVCD_LOG_LEVEL: 'warn' };
    const daemon = await process.run(() =>
      Daemon.start(args, { ...settings, ...environment }, null, () => {}, simulated),
    );
    if (!process.isRunning) return;
    this.#daemon = daemon;
    this.startedAt = this.#parts.schedule.now();
    this.#operations = new Map(daemon.operations.map((operation) => [operation.declaration.name, operation]));
  }

  /** Stops the daemon. Returns descriptions of the resources that it did not release. */
  async stop(): Promise<readonly string[]> {
    const daemon = this.#daemon;
    if (daemon === null) return [];
    this.#daemon = null;
    const process = this.#process;
    await process.run(async () => {
      try {
        await daemon.stop('simulated');
      } catch (error) {
        // A daemon that cannot save its last state stops with an error. It releases everything nevertheless.
        if (!(error instanceof SvcError) || error.code !== 'not_writable') throw error;
      }
    });
    // Until sockets are closed, as in the time before a process exits.
    await new Promise<void>((resolve) => void this.#parts.schedule.after(CLOSING_MS, resolve));
    const left = [
      process.timers > 0 ? `${process.timers} timers ${process.timerOrigins().join('\n')}` : '',
      this.disk.openDatabases > 0 ? `${this.disk.openDatabases} databases` : '',
      this.machine.sockets.size > 0 ? `UDP ports ${[...this.machine.sockets.keys()].join()}` : '',
    ];
    this.#end();
    return left.filter((text) => text !== '');
  }

  /** Kills the program. Commits of its databases remain. */
  crash(): void {
    this.#daemon = null;
    this.#end();
    this.disk.killed();
  }

  /** Kills the program, and loses what was not flushed. */
  cutPower(): void {
    this.#daemon = null;
    this.#end();
    this.disk.cutPower();
  }

  #end(): void {
    this.#process.kill();
    this.machine.closeSockets();
    this.ports.clear();
  }

  /**
   * Runs an operation as a local program does.
   * @throws SvcError as the operation; `cancelled` if the node does not run
   */
  async call<K extends keyof Operations>(name: K, input: InputOf<Operations[K]>): Promise<OutputOf<Operations[K]>> {
    const operation = this.#operations.get(name);
    if (this.#daemon === null || operation === undefined) throw new SvcError('cancelled');
    const limit = new AbortController();
    const timer = this.#parts.schedule.after(CALL_TIMEOUT_MS, () => process.run(() => limit.abort()));
    const settled: ((arrived: boolean) => void)[] = [];
    const { process } = this;
    const context: CallContext = {
      onAnswered: (listener) => void settled.push(listener),
      origin: 'local',
      requireToken: () => {},
      signal: limit.signal,
      setStatus: () => {},
    };
    const { declaration } = operation;
    const { answered } = this.#parts;
    const run = async (): Promise<unknown> => await operation.run(readerOf(declaration)(input), context);
    try {
      const output = await process.run(run);
      process.run(() => {
        for (const listener of settled) listener(true);
      });
      answered?.(declaration, { output });
      return output as OutputOf<Operations[K]>;
    } catch (error) {
      answered?.(declaration, { error });
      throw error;
    } finally {
      timer.cancel();
    }
  }
}
