/**
 * Looks at what stands in the queues of sockets without taking it, and sets their filters, in a short-lived child that
 * inherits them: what can do it (`node:ffi`) is young and must not endanger this process. Linux only.
 */
import { spawn } from 'node:child_process';
import { isObject, parseJson } from '../../../foundation/json.ts';
import { scriptCommand } from '../../../foundation/package-file.ts';
import { SETSOCKOPT_TYPES } from './receive-buffer.ts';

/** With so many packets a look has seen enough at once … */
const MAX_SEEN = 128;
/** … with so many after this time, milliseconds; with fewer it says nothing. */
const MIN_SEEN = 16;
const SHORT_LOOK_MS = 300;

/** Looks at the queues without taking from them: who sends first packets, by address (IPv4) or /64 (IPv6), in hex. */
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
const began = Date.now();
const isEnough = (ms) => ms >= lookMs || seen.size >= maxSeen || (ms >= shortMs && seen.size >= minSeen);
while (!isEnough(Date.now() - began)) {
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

/** What a child says, and what it is told. */
interface Look {
  readonly sources: ReadonlyMap<string, number>;
  /** @param filter as the kernel takes it; null removes the one that is there, an empty one leaves all as it is */
  answer(filter: Uint8Array | null): Promise<void>;
}

function readSources(text: string): ReadonlyMap<string, number> {
  const said = parseJson(text);
  if (!isObject(said)) return new Map();
  return new Map(
    Object.entries(said).flatMap(([source, count]) => (typeof count === 'number' ? [[source, count] as const] : [])),
  );
}

/** Looks for so many milliseconds at most; null where this system or this Node cannot. */
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
  const said = new Promise<void>((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.endsWith('\n')) resolve();
    });
  });
  await Promise.race([said, closed]);
  if (!output.endsWith('\n')) return null;
  return {
    sources: readSources(output),
    async answer(filter) {
      child.stdin?.end(filter === null ? 'none' : Buffer.from(filter).toString('hex'));
      await closed;
    },
  };
}
