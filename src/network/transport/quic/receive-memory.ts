/**
 * Gives listening sockets of the engine the receive buffer that it gives only to its dialling ones:
 * with the system's standard one, a burst of a fast peer overflows it, and the engine takes that for
 * a crowded path. The option is set by a short-lived child that inherits the sockets, since what can
 * set it (`node:ffi`) is young and must not endanger this process. `node:dgram` could set it too, but
 * marks the socket as shareable (`SO_REUSEADDR`): any program could then bind the port and take our
 * packets. Linux only; elsewhere, and where Node has no `node:ffi`, the sockets keep what they have.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Log } from '../../../foundation/log.ts';
import { scriptCommand } from '../../../foundation/package-file.ts';
import { Quota } from '../../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { awakeClock } from '../../../foundation/stall.ts';

/** The first descriptor that a child gets beyond the standard ones. */
const FIRST_INHERITED = 3;

/** What `setsockopt` takes and gives, in JavaScript for `node:ffi`. */
export const SETSOCKOPT_TYPES = "{ arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' }";

/** `SOL_SOCKET` and `SO_RCVBUF` of Linux, on the platforms that the engine is built for. */
export const SET_RECEIVE_BUFFER = `
const [count, bytes] = process.argv.slice(1).map(Number);
const { functions } = require('node:ffi').dlopen(null, { setsockopt: ${SETSOCKOPT_TYPES} });
const value = Buffer.from(Int32Array.of(bytes).buffer);
for (let fd = ${FIRST_INHERITED}; fd < ${FIRST_INHERITED} + count; fd++) functions.setsockopt(fd, 1, 8, value, 4);
`;

/** This process's descriptors of the UDP sockets bound to a port, IPv4 and IPv6; none where the system does not tell. */
export function udpDescriptors(port: number): readonly number[] {
  try {
    const inodes = new Set(['udp', 'udp6'].flatMap((table) => inodesOf(table, port)));
    return readdirSync('/proc/self/fd')
      .filter((fd) => inodes.has(targetOf(fd)))
      .map(Number);
  } catch {
    return [];
  }
}

/** What the descriptors of the sockets in one of the kernel's tables point to. */
function inodesOf(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return rowsOf(table)
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local]) => local?.endsWith(suffix) === true)
    .map((columns) => `socket:[${columns[9]}]`);
}

/** None where the machine has no such table, as that of IPv6. */
function rowsOf(table: string): string[] {
  try {
    return readFileSync(`/proc/self/net/${table}`, 'utf8').split('\n').slice(1);
  } catch {
    return [];
  }
}

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // It was the descriptor of the listing itself, or has been closed since.
    return '';
  }
}

/** Asks the system for receive buffers of so many bytes; it may give less. Settles in any case. */
export async function enlargeReceiveBuffers(descriptors: readonly number[], bytes: number): Promise<void> {
  if (process.platform !== 'linux' || descriptors.length === 0) return;
  const [program, ...first] = scriptCommand('receive-buffer', SET_RECEIVE_BUFFER);
  const child = spawn(program, [...first, String(descriptors.length), String(bytes)], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', ...descriptors],
  });
  await new Promise<void>((resolve) => {
    child.on('error', () => resolve());
    child.once('close', () => resolve());
  });
}

/* Memory that all connections of the endpoint together may use for unread bytes. */

/** Bytes that connections with stopped readers may hold together. */
export const MAX_HELD_BACK_BYTES = 256 * 1024 * 1024;

/** The same of the connections with one other node: somewhat more than one of them can hold. */
export const MAX_HELD_BACK_PER_NODE_BYTES = 128 * 1024 * 1024;

/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_HELD_BACK_PER_SOURCE_BYTES = 160 * 1024 * 1024;

/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_BACK_PER_NETWORK_BYTES = 192 * 1024 * 1024;

/** How often it is looked at; a reader counts as stopped that took nothing between two looks. */
export const HELD_BACK_INTERVAL_MS = 5_000;

/** A connection that may hold bytes for readers that have stopped. */
export interface Holder {
  /** The other node's key. */
  readonly remoteKey: Uint8Array;
  readonly path: { readonly source: string };
  /** The most that it may hold for readers that took nothing since the last call, bytes. */
  heldBackBytes(): number;
  close(): void;
}

interface ReceiveBudgetDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** True for nodes that give way after strangers. */
  readonly isKnown?: ((nodeKey: Uint8Array) => boolean) | undefined;
}

export class ReceiveBudget {
  readonly #holders: () => Iterable<Holder>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  #looks: RepeatingTask | null = null;

  /** @param holders every connection that stands */
  constructor(holders: () => Iterable<Holder>, dependencies: ReceiveBudgetDependencies) {
    this.#holders = holders;
    // In waking time: while we stalled, no reader could take anything.
    this.#clock = awakeClock(dependencies.clock);
    this.#log = dependencies.log;
    this.#isKnown = dependencies.isKnown ?? (() => false);
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(this.#clock, { periodMs: HELD_BACK_INTERVAL_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  /** Lets in what fits, known nodes first and then those that hold the least; closes the rest. */
  #look(): void {
    const budget = new Quota({
      perNode: MAX_HELD_BACK_PER_NODE_BYTES,
      perSource: MAX_HELD_BACK_PER_SOURCE_BYTES,
      perNetwork: MAX_HELD_BACK_PER_NETWORK_BYTES,
      total: MAX_HELD_BACK_BYTES,
    });
    const held = [...this.#holders()].map((connection) => {
      const { remoteKey, path } = connection;
      const holder = { node: toHex(remoteKey), source: path.source, named: this.#isKnown(remoteKey) };
      return { connection, holder, bytes: connection.heldBackBytes() };
    });
    // Of two alike, the newer one stays.
    held.reverse().sort((a, b) => Number(b.holder.named) - Number(a.holder.named) || a.bytes - b.bytes);
    for (const { connection, holder, bytes } of held) {
      if (bytes === 0 || budget.take(holder, { amount: bytes }) !== null) continue;
      this.#log.warn({ bytes }, 'closed a connection that holds too much for readers that have stopped');
      connection.close();
    }
  }
}
