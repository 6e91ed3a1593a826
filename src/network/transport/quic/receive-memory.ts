/**
 * Enlarges the receive buffer of the engine's listening sockets. The engine does it for dialing sockets only: with the
 * default size a burst of a fast peer overflows the buffer, which looks like congestion. A short-lived child process
 * that inherits the sockets sets the option, because `node:ffi` is young and must not endanger this process.
 * `node:dgram` could set it too, but with `SO_REUSEADDR`: any program could then bind the port and receive our packets.
 * Only on Linux with `node:ffi`.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Log } from '../../../foundation/log.ts';
import { scriptCommand } from '../../../foundation/package-file.ts';
import { Quota } from '../../../foundation/quota.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../../foundation/repeat.ts';
import { awakeClock } from '../../../foundation/stall.ts';

/** The first inherited descriptor of a child process. */
const FIRST_INHERITED = 3;

/** The types of `setsockopt`, in JavaScript for `node:ffi`. */
export const SETSOCKOPT_TYPES = "{ arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' }";

/** `SOL_SOCKET` and `SO_RCVBUF` of Linux, on the platforms of the engine. */
export const SET_RECEIVE_BUFFER = `
const [count, bytes] = process.argv.slice(1).map(Number);
const { functions } = require('node:ffi').dlopen(null, { setsockopt: ${SETSOCKOPT_TYPES} });
const value = Buffer.from(Int32Array.of(bytes).buffer);
for (let fd = ${FIRST_INHERITED}; fd < ${FIRST_INHERITED} + count; fd++) functions.setsockopt(fd, 1, 8, value, 4);
`;

/**
 * Descriptors of this process for the UDP sockets on a port, IPv4 and IPv6. Empty if the system does not report them.
 */
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

/** Link targets of the descriptors of the sockets in a kernel table. */
function inodesOf(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return rowsOf(table)
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local]) => local?.endsWith(suffix) === true)
    .map((columns) => `socket:[${columns[9]}]`);
}

/** Empty if the machine does not have the table, for example without IPv6. */
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
    // The descriptor of the listing itself, or one that was closed since.
    return '';
  }
}

/** Requests receive buffers of this size; the system may allow less. Always settles. */
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

/** Unread bytes of all connections whose readers have stopped. */
export const MAX_HELD_BACK_BYTES = 256 * 1024 * 1024;

/** The same for the connections with one node: somewhat more than one connection can use. */
export const MAX_HELD_BACK_PER_NODE_BYTES = 128 * 1024 * 1024;

/** The same for strangers on one IPv4 address or IPv6 /64. */
export const MAX_HELD_BACK_PER_SOURCE_BYTES = 160 * 1024 * 1024;

/** The same for strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_BACK_PER_NETWORK_BYTES = 192 * 1024 * 1024;

/** How often that is checked. A reader has stopped if it reads nothing between two checks. */
export const HELD_BACK_INTERVAL_MS = 5_000;

/** A connection that may have unread bytes of stopped readers. */
export interface Holder {
  /** The other node's key. */
  readonly remoteKey: Uint8Array;
  readonly path: { readonly source: string };
  /** Maximum number of unread bytes for readers that have read nothing since the last call. */
  heldBackBytes(): number;
  close(): void;
}

export class ReceiveBudget {
  readonly #holders: () => Iterable<Holder>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  #looks: RepeatingTask | null = null;
  /** True if the last look found no connection. */
  #isResting = false;

  /**
   * @param holders all open connections
   * @param isKnown true for nodes that are closed only after strangers
   */
  constructor(
    holders: () => Iterable<Holder>,
    clock: Clock,
    log: Log,
    isKnown: (nodeKey: Uint8Array) => boolean = () => false,
  ) {
    this.#holders = holders;
    // In waking time: while we stalled, no reader could take anything.
    this.#clock = awakeClock(clock);
    this.#log = log;
    this.#isKnown = isKnown;
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(this.#clock, { periodMs: HELD_BACK_INTERVAL_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  /** To be called for each new connection: without connections there are no looks. */
  onConnection(): void {
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#looks?.soon(HELD_BACK_INTERVAL_MS);
  }

  /** Keeps connections within the limits, preferring known nodes and then small connections, and closes the rest. */
  #look(): number {
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
      this.#log.warn({ bytes }, 'closed a connection with too many unread bytes');
      connection.close();
    }
    this.#isResting = held.length === 0;
    return this.#isResting ? UNTIL_REQUESTED : HELD_BACK_INTERVAL_MS;
  }
}
