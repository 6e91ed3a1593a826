/**
 * Protects the engine from a flood of first packets: it would start a handshake for each, at about 370 KB and a
 * millisecond. The engine does not report their sources. If too many handshakes are unfinished, a short-lived child
 * process inherits the sockets, inspects their queues and makes the kernel drop the first packets of the biggest
 * senders for a while. Only on Linux with `node:ffi`; elsewhere a flood delays new connections.
 */
import { spawn } from 'node:child_process';
import { type Backoff, backoff } from '../../../foundation/backoff.ts';
import { fromHex } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { IPV4_BYTES } from '../../../foundation/ip.ts';
import { isObject, parseJson } from '../../../foundation/json.ts';
import type { Log } from '../../../foundation/log.ts';
import { scriptCommand } from '../../../foundation/package-file.ts';
import { SETSOCKOPT_TYPES } from './receive-memory.ts';

/*
 * Peeks into the queues of sockets and sets their filters. A short-lived child process that inherits the sockets does
 * it: `node:ffi` is young and must not endanger this process. Linux only.
 */

/** A check ends with this many packets … */
const MAX_SEEN = 128;
/** … or with this many after this time, milliseconds. With fewer it reports nothing. */
const MIN_SEEN = 16;
const SHORT_LOOK_MS = 300;

/** Peeks into the queues and reports the sources of first packets by address (IPv4) or /64 (IPv6), in hex. */
export const LOOK = `
const [count, lookMs, shortMs, minSeen, maxSeen] = process.argv.slice(1).map(Number);
const ffi = require('node:ffi');
const { functions: c } = ffi.dlopen(null, {
  poll: { arguments: ['buffer', 'u64', 'i32'], return: 'i32' },
  recvfrom: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'buffer'], return: 'i64' },
  setsockopt: ${SETSOCKOPT_TYPES},
});
const fds = Array.from({ length: count }, (_, i) => i + 3);
const polled = Buffer.alloc(8 * count);
fds.forEach((fd, i) => { polled.writeInt32LE(fd, 8 * i); polled.writeInt16LE(1, 8 * i + 4); });
const [head, from, size] = [Buffer.alloc(32), Buffer.alloc(28), Buffer.alloc(4)];
const [seen, sources] = [new Set(), {}];
const PEEK_AND_RETURN = 0x42;
const began = performance.now();
const isEnough = (ms) => ms >= lookMs || seen.size >= maxSeen || (ms >= shortMs && seen.size >= minSeen);
while (!isEnough(performance.now() - began)) {
  c.poll(polled, BigInt(count), 20);
  for (const fd of fds) {
    size.writeUInt32LE(from.length);
    const length = Number(c.recvfrom(fd, head, BigInt(head.length), PEEK_AND_RETURN, from, size));
    if (length < head.length || (head[0] & 0xb0) !== 0x80) continue;
    const packet = head.toString('hex', 1);
    if (seen.has(packet)) continue;
    seen.add(packet);
    const source = from.readUInt16LE(0) === 2 ? from.toString('hex', 4, 8) : from.toString('hex', 8, 16);
    sources[source] = (sources[source] ?? 0) + 1;
  }
}
process.stdout.write(JSON.stringify(seen.size < minSeen ? {} : sources) + '\\n');
let answer = '';
process.stdin.on('data', (text) => { answer += text; }).on('end', () => {
  const filter = Buffer.from(answer, 'hex');
  const option = Buffer.alloc(16);
  option.writeUInt16LE(filter.length / 8);
  if (filter.length > 0) option.writeBigUInt64LE(BigInt(ffi.getRawPointer(filter)), 8);
  const [attach, detach] = [26, 27];
  for (const fd of fds) {
    if (answer.startsWith('none')) c.setsockopt(fd, 1, detach, option, 4);
    else if (filter.length > 0) c.setsockopt(fd, 1, attach, option, 16);
  }
});
`;

/** The report of a child process, and its reply. */
interface Look {
  readonly sources: ReadonlyMap<string, number>;
  /** @param filter in the form of the kernel; null removes the present filter, an empty one changes nothing */
  answer(filter: Uint8Array | null): Promise<void>;
}

function readSources(text: string): ReadonlyMap<string, number> {
  const counts = parseJson(text);
  if (!isObject(counts)) return new Map();
  return new Map(
    Object.entries(counts).flatMap(([source, count]) => (typeof count === 'number' ? [[source, count] as const] : [])),
  );
}

/** Peeks for at most this many milliseconds. Null if this system or this Node version cannot. */
export async function lookAtQueues(descriptors: readonly number[], lookMs: number): Promise<Look | null> {
  if (process.platform !== 'linux' || descriptors.length === 0) return null;
  const [program, ...first] = scriptCommand('queue-look', LOOK);
  const args = [descriptors.length, lookMs, SHORT_LOOK_MS, MIN_SEEN, MAX_SEEN].map(String);
  const child = spawn(program, [...first, ...args], {
    env: {},
    stdio: ['pipe', 'pipe', 'ignore', ...descriptors],
  });
  const closed = new Promise<void>((resolve) => {
    child.on('error', () => resolve());
    child.once('close', () => resolve());
  });
  child.stdin?.on('error', () => {});
  let output = '';
  const printed = new Promise<void>((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.endsWith('\n')) resolve();
    });
  });
  await Promise.race([printed, closed]);
  if (!output.endsWith('\n')) return null;
  return {
    sources: readSources(output),
    async answer(filter) {
      child.stdin?.end(filter === null ? 'none' : Buffer.from(filter).toString('hex'));
      await closed;
    },
  };
}

/*
 * A kernel filter (classic BPF) that drops the first packets of new connections, either from some sources or almost
 * all. Established connections are not affected.
 */

/** Sources in one filter. */
export const MAX_REFUSED_SOURCES = 32;
/** Without such a source, 1 of this number of first packets passes. */
const PASS_ONE_IN = 64;

/** Instructions of classic BPF (linux/bpf_common.h). */
const LOAD_BYTE = 0x30;
const LOAD_WORD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const RETURN = 0x06;

/**
 * Offset of the datagram in a socket filter, after the UDP header, and Linux offsets of the IP header and of a random
 * word.
 */
const PAYLOAD_AT = 8;
const IP_HEADER_AT = 0xfff00000;
const RANDOM_AT = 0xfffff000 + 56;
const IPV4_SOURCE_AT = IP_HEADER_AT + 12;
const IPV6_SOURCE_AT = IP_HEADER_AT + 8;

/** A first packet of QUIC has a long header and type 0 (RFC 9000, 17.2.2). */
const FORM_AND_TYPE = 0xb0;
const INITIAL = 0x80;
const WHOLE = 0xffffffff;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

const PASS: Instruction = [RETURN, 0, 0, WHOLE];
const DROP: Instruction = [RETURN, 0, 0, 0];

/** Drops if the words at an offset are these, otherwise continues. */
function dropWhere(at: number, words: readonly number[]): Instruction[] {
  const [word, ...rest] = words;
  if (word === undefined) return [DROP];
  const then = dropWhere(at + 4, rest);
  return [[LOAD_WORD, 0, 0, at], [IF_EQUAL, 0, then.length, word], ...then];
}

function wordsOf(source: Uint8Array): number[] {
  const view = new DataView(source.buffer, source.byteOffset, source.length);
  return Array.from({ length: source.length / 4 }, (_, i) => view.getUint32(4 * i));
}

/** Skips these instructions for packets of another IP version. */
function ofVersion(version: number, instructions: readonly Instruction[]): Instruction[] {
  if (instructions.length === 0) return [];
  return [
    [LOAD_BYTE, 0, 0, IP_HEADER_AT],
    [AND, 0, 0, 0xf0],
    [IF_EQUAL, 0, instructions.length, version << 4],
    ...instructions,
  ];
}

export interface Refused {
  /** IPv4 addresses, four bytes each, and IPv6 networks, eight. */
  readonly sources: readonly Uint8Array[];
  /** Whether only few of all others pass. */
  readonly thinned: boolean;
}

/** The filter in the form of the kernel, eight bytes an instruction, in the byte order of the platforms that the engine is built for. */
export function filterOf({ sources, thinned }: Refused): Uint8Array {
  const named = sources.slice(0, MAX_REFUSED_SOURCES);
  const ofKind = (isIpv4: boolean, at: number): Instruction[] =>
    named
      .filter(({ length }) => (length === IPV4_BYTES) === isIpv4)
      .flatMap((source) => dropWhere(at, wordsOf(source)));
  const program: Instruction[] = [
    [LOAD_BYTE, 0, 0, PAYLOAD_AT],
    [AND, 0, 0, FORM_AND_TYPE],
    [IF_EQUAL, 1, 0, INITIAL],
    PASS,
    ...ofVersion(4, ofKind(true, IPV4_SOURCE_AT)),
    ...ofVersion(6, ofKind(false, IPV6_SOURCE_AT)),
    ...(thinned
      ? ([[LOAD_WORD, 0, 0, RANDOM_AT], [IF_GREATER, 0, 1, Math.floor(WHOLE / PASS_ONE_IN)], DROP] as const)
      : []),
    PASS,
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, ifTrue, ifFalse, operand], i) => {
    bytes.writeUInt16LE(code, 8 * i);
    bytes.writeUInt8(ifTrue, 8 * i + 2);
    bytes.writeUInt8(ifFalse, 8 * i + 3);
    bytes.writeUInt32LE(operand, 8 * i + 4);
  });
  return bytes;
}

/** How long first packets of a source, or most of all, are dropped; longer each time that the flood continues, milliseconds. */
const REFUSE: Backoff = { firstMs: 60_000, maxMs: 600_000 };
/** A flood that returns within this time counts as the same one, milliseconds. */
const CALM_MS = 60_000;
/** Minimum time between two checks, after one that found a source and after one that did not, milliseconds. */
const LOOK_AGAIN_MS = 5_000;
const MISSED_AGAIN_MS = 500;
/** Longest check, milliseconds: on a busy machine it sees few packets. */
const LOOK_MS = 3_000;
/** Sources with at least 1 of this number of packets are dropped. */
const STANDS_OUT = 8;

export class InitialGuard {
  readonly #descriptors: () => readonly number[];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #refused = new Set<string>();
  #thinned = false;
  #looking: Promise<void> | null = null;
  #stopped = false;
  #lookAgainAt = Number.NEGATIVE_INFINITY;
  #floods = 0;
  #relaxed: Timer | null = null;
  #relaxedAt = Number.NEGATIVE_INFINITY;

  /** @param descriptors of the listening sockets */
  constructor(descriptors: () => readonly number[], clock: Clock, log: Log) {
    this.#descriptors = descriptors;
    this.#clock = clock;
    this.#log = log;
  }

  /** Sources whose first packets are dropped, in hex. */
  get refused(): ReadonlySet<string> {
    return this.#refused;
  }

  /** Call it while too many handshakes are unfinished. Settles after the countermeasure, if any. */
  async alarm(): Promise<void> {
    const [clock, descriptors] = [this.#clock, this.#descriptors];
    if (this.#stopped || clock.monotonic() < this.#lookAgainAt) return;
    this.#looking ??= (async () => {
      const child = await lookAtQueues(descriptors(), LOOK_MS);
      // If it fails once, it always will.
      if (child === null) this.#stopped = true;
      const filter = child === null ? null : this.#decide(child.sources);
      await child?.answer(filter ?? new Uint8Array());
      this.#lookAgainAt = clock.monotonic() + (filter === null ? MISSED_AGAIN_MS : LOOK_AGAIN_MS);
    })().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  /** Settles when no child process has the sockets. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#relaxed?.cancel();
    await this.#looking?.catch(() => {});
  }

  /** The new filter, or null if too few packets were seen. */
  #decide(sources: ReadonlyMap<string, number>): Uint8Array | null {
    const total = sources.values().reduce((sum, count) => sum + count, 0);
    if (total === 0 || this.#stopped) return null;
    const many = [...sources].filter(([, count]) => count * STANDS_OUT >= total);
    for (const [source] of many) if (this.#refused.size < MAX_REFUSED_SOURCES) this.#refused.add(source);
    if (many.length === 0) this.#thinned = true;
    this.#log.warn(
      { sources: [...this.#refused], all: this.#thinned },
      'a flood of QUIC handshakes: first packets are dropped',
    );
    const now = this.#clock.monotonic();
    if (this.#relaxed === null) this.#floods = now - this.#relaxedAt < CALM_MS ? this.#floods + 1 : 1;
    this.#relaxed ??= this.#clock.after(backoff(REFUSE, this.#floods), () => this.#relax());
    return this.#filter();
  }

  #filter(): Uint8Array {
    const sources = [...this.#refused].map((source) => fromHex(source) ?? new Uint8Array());
    return filterOf({ sources, thinned: this.#thinned });
  }

  /** Removes the filter to see whether the flood is over. */
  #relax(): void {
    this.#relaxed = null;
    this.#relaxedAt = this.#clock.monotonic();
    const before = this.#looking;
    this.#looking = (async () => {
      await before?.catch(() => {});
      this.#refused.clear();
      this.#thinned = false;
      const child = await lookAtQueues(this.#descriptors(), 0);
      await child?.answer(null);
    })().finally(() => {
      this.#looking = null;
    });
    detach(this.#looking);
  }
}
