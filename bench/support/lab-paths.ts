/** A lab with a pair of daemons for each kind of path, and the cost of a transfer between them. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LabDaemon } from '../../test/support/lab/daemons.ts';
import { Internet } from '../../test/support/lab/internet.ts';
import type { Machine } from '../../test/support/lab/namespaces.ts';
import type { NatKind } from '../../test/support/lab/nat.ts';
import { startTurnServer, TURN_NUMBER, WITH_TURN } from '../../test/support/lab/turn-server.ts';
import type { LabTransfer } from './lab-transfers.ts';

const CLIENT = fileURLToPath(new URL('lab-transfers.ts', import.meta.url));
const SERVICE = fileURLToPath(new URL('tcp-service.ts', import.meta.url));
/** Last bytes of public addresses. */
const HELPERS = [10, 11];
const OPEN = [20, 21];
const BOOTSTRAP = ['203.0.113.10:4121'];
const SECOND_PORT = '0.0.0.0:4131';
/** The default limits of a relay are far below its capacity. */
const UNBOUNDED = 'relay_bytes_per_second = 1000000000\nrelay_bytes_per_day = 1000000000000\n';
const NO_HELPING = 'help_others = false\n';
const CLOCK_TICKS_PER_S = 100;
const PAGE_BYTES = 4096;

/** A daemon, its agent with the service of `tcp-service.ts`, and a client on the same machine. */
export interface LabNode {
  readonly machine: Machine;
  readonly daemon: LabDaemon;
  readonly aid: string;
  readonly node: string;
  readonly client: ChildProcess;
}

export interface LabPath {
  /** The path kind that the tunnel reports, and its label in the table. */
  readonly path: string;
  readonly what: string;
  readonly caller: LabNode;
  readonly called: LabNode;
}

export interface LabPaths extends AsyncDisposable {
  readonly paths: readonly LabPath[];
  readonly helpers: readonly LabDaemon[];
}

async function nodeOn(machine: Machine, listen?: string, config = ''): Promise<LabNode> {
  const daemon = await LabDaemon.start(machine, BOOTSTRAP, NO_HELPING + config, listen === undefined ? {} : { listen });
  const service = machine.fork(SERVICE);
  const [{ port } = { port: 0 }]: { port: number }[] = await once(service, 'message');
  const aid = await daemon.serve(`127.0.0.1:${port}`);
  const { node_aid } = await daemon.call<{ node_aid: string }>('GET', '/status');
  return { machine, daemon, aid, node: node_aid, client: machine.fork(CLIENT) };
}

/** Starts the lab and waits until all nodes know their NAT type. */
export async function startPaths(): Promise<LabPaths> {
  const internet = await Internet.open();
  const helpers: LabDaemon[] = [];
  for (const number of HELPERS) {
    const machine = await internet.publicMachine(`helper-${number}`, [number]);
    helpers.push(await LabDaemon.start(machine, helpers.length === 0 ? [] : BOOTSTRAP, UNBOUNDED));
  }
  for (const helper of helpers) await helper.until('a helper is open', ({ nat_type }) => nat_type === 1);
  const [first = 0, second = 0] = OPEN;
  const machine = await internet.publicMachine('open', [first]);
  const open = await nodeOn(machine);
  const beside = await nodeOn(machine, SECOND_PORT);
  const neighbour = await nodeOn(await internet.publicMachine('neighbour', [second]));
  const behind = async (name: string, kind: NatKind): Promise<LabNode> => nodeOn(await internet.behind(name, [kind]));
  const cones = await Promise.all([behind('a', 'cone'), behind('b', 'cone')]);
  const symmetric = await Promise.all([behind('c', 'symmetric'), behind('d', 'symmetric')]);
  for (const { daemon } of [...cones, ...symmetric])
    await daemon.until('helpers', (status) => status.helpers.length === HELPERS.length && status.nat_type >= 3);
  const [coneA, coneB] = cones;
  const [symmetricA, symmetricB] = symmetric;
  const nodes = [open, beside, neighbour, ...cones, ...symmetric];
  return {
    helpers,
    paths: [
      { path: 'lan', what: 'loopback', caller: open, called: beside },
      { path: 'lan', what: 'lan', caller: open, called: neighbour },
      { path: 'direct', what: 'direct', caller: coneA, called: neighbour },
      { path: 'punched', what: 'punched', caller: coneA, called: coneB },
      { path: 'relay', what: 'relay', caller: symmetricA, called: symmetricB },
    ],
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...nodes.map(({ daemon }) => daemon), ...helpers].map((one) => one[Symbol.asyncDispose]()));
      await internet[Symbol.asyncDispose]();
    },
  };
}

/** A lab without relays, so that only the caller's TURN server reaches the called node. */
export async function startTurnPath(): Promise<LabPaths> {
  const internet = await Internet.open();
  startTurnServer(await internet.publicMachine('turn', [TURN_NUMBER]));
  const helpers: LabDaemon[] = [];
  for (const number of HELPERS) {
    const machine = await internet.publicMachine(`helper-${number}`, [number]);
    helpers.push(await LabDaemon.start(machine, helpers.length === 0 ? [] : BOOTSTRAP, 'relay_sessions = 0\n'));
  }
  for (const helper of helpers) await helper.until('a helper is open', ({ nat_type }) => nat_type === 1);
  const caller = await nodeOn(await internet.behind('a', ['symmetric']), undefined, WITH_TURN);
  const called = await nodeOn(await internet.behind('b', ['symmetric']));
  for (const { daemon } of [caller, called])
    await daemon.until('helpers', (status) => status.helpers.length === HELPERS.length && status.nat_type >= 3);
  return {
    helpers,
    paths: [{ path: 'turn', what: 'turn', caller, called }],
    [Symbol.asyncDispose]: async () => {
      const daemons = [caller.daemon, called.daemon, ...helpers];
      await Promise.all(daemons.map((one) => one[Symbol.asyncDispose]()));
      await internet[Symbol.asyncDispose]();
    },
  };
}

/** MiB per second of one transfer through a tunnel. */
export async function transfer({ client }: LabNode, order: LabTransfer): Promise<number> {
  client.send(order);
  const [speed]: unknown[] = await once(client, 'message');
  return Number(speed);
}

/** CPU time of daemons so far in seconds, with a resolution of 10 ms. */
export function cpuSeconds(daemons: readonly LabDaemon[]): number {
  return daemons.reduce((sum, { pid }) => {
    const [user = 0, system = 0] = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '')
      .split(' ')
      .slice(11)
      .map(Number);
    return sum + (user + system) / CLOCK_TICKS_PER_S;
  }, 0);
}

export function residentBytes({ pid }: LabDaemon): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}

/**
 * Counts the bytes between a machine and the QUIC ports of the helpers, including IP headers; returns the count so far.
 */
export async function countHelping(machine: Machine): Promise<() => Promise<number>> {
  const hosts = HELPERS.map((number) => `203.0.113.${number}`).join(', ');
  await machine.nft(`table inet idle {
    counter quic { }
    chain out { type filter hook output priority 0; ip daddr { ${hosts} } udp dport 4122 counter name "quic"
    }
    chain in { type filter hook input priority 0; ip saddr { ${hosts} } udp sport 4122 counter name "quic"
    }
  }`);
  return async () => {
    const text = await machine.run('nft', ['list', 'counter', 'inet', 'idle', 'quic']);
    return Number(/bytes (\d+)/.exec(text)?.[1]);
  };
}
