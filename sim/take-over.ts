/**
 * Replaces time, randomness, turns of the event loop, asynchronous file operations and sockets in this process by
 * simulated ones. Import it before everything else: modules that were loaded earlier may have kept the functions of the
 * machine.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import { Random } from '../test/support/random.ts';
import { takeDatabases } from './disk.ts';
import { Process } from './process.ts';
import { Schedule } from './schedule.ts';
import { takeDisk } from './take-disk.ts';
import { takeMachine } from './take-machine.ts';
import { takeSockets } from './take-sockets.ts';

/** DER of a private key (RFC 8410), before its bytes. */
const X25519_KEY_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const X25519_KEY_BYTES = 32;
/** Milliseconds that a flush of the disk takes. */
const FLUSH_MS = 4;
const MAX_SEED = 2 ** 32;

/** The seed that the command line names. Default: 1. */
export const seed: number = seedOf(process.argv);

function seedOf(args: readonly string[]): number {
  const at = args.indexOf('--seed');
  const value = at < 0 ? 1 : Number(args[at + 1]);
  if (!Number.isInteger(value) || value < 0 || value >= MAX_SEED)
    throw new RangeError('--seed: a whole number from 0 to 4294967295');
  return value;
}

export const schedule: Schedule = new Schedule();
/** Randomness of the world: the network, the users, the faults. */
export const random: Random = new Random(seed);
/** Randomness of the programs: keys, tokens, request numbers, pauses. */
const programRandom = new Random(seed ^ 0x9e3779b9);

interface Handle {
  unref(): Handle;
  ref(): Handle;
  hasRef(): boolean;
  refresh(): Handle;
  close(): void;
  [Symbol.dispose](): void;
}

type Task = (...args: unknown[]) => void;

function handleOf(start: () => { cancel(): void }): Handle {
  let timer = start();
  const handle: Handle = {
    unref: () => handle,
    ref: () => handle,
    hasRef: () => false,
    refresh() {
      timer.cancel();
      timer = start();
      return handle;
    },
    close: () => timer.cancel(),
    [Symbol.dispose]: () => timer.cancel(),
  };
  return handle;
}

/** Plans a task of the running program, or of the simulator. */
function plan(ms: number, task: () => void): { cancel(): void } {
  return Process.current?.clock.after(ms, task) ?? schedule.after(ms, task);
}

function planNext(task: () => void): { cancel(): void } {
  const { current } = Process;
  return schedule.immediately(current === undefined ? task : () => current.deliver(task));
}

const setTimeoutNow = (task: Task, ms = 0, ...args: unknown[]): Handle => handleOf(() => plan(ms, () => task(...args)));

const setIntervalNow = (task: Task, ms = 0, ...args: unknown[]): Handle => {
  const handle = handleOf(() =>
    plan(Math.max(1, ms), () => {
      handle.refresh();
      task(...args);
    }),
  );
  return handle;
};

const setImmediateNow = (task: Task, ...args: unknown[]): Handle => handleOf(() => planNext(() => task(...args)));

const clear = (handle: Handle | undefined): void => handle?.close();

/** Random bytes, into a buffer. */
function fill<T extends ArrayBufferView>(view: T, from = 0, length = view.byteLength - from): T {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + from, length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = programRandom.below(256);
  return view;
}

function takeTimers(): void {
  const replacements = {
    setTimeout: setTimeoutNow,
    setInterval: setIntervalNow,
    setImmediate: setImmediateNow,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  Object.assign(globalThis, replacements);
  Object.assign(timers, replacements);
  Object.assign(timersPromises, {
    setTimeout: async (ms: number, value: unknown) =>
      await new Promise((resolve) => void plan(ms, () => resolve(value))),
    setImmediate: async (value: unknown) => await new Promise((resolve) => void planNext(() => resolve(value))),
  });
}

function takeTime(): void {
  const Real = Date;
  class VirtualDate extends Real {
    constructor(...args: [] | [number | string | Date]) {
      if (args.length === 0) super(VirtualDate.now());
      else super(...args);
    }

    static override now(): number {
      return Process.current?.clock.now() ?? schedule.now();
    }
  }
  Object.assign(globalThis, { Date: VirtualDate });
  performance.now = () => schedule.elapsedMs;
  const elapsedNs = (): bigint => BigInt(schedule.elapsedMs) * 1_000_000n;
  process.hrtime.bigint = elapsedNs;
  AbortSignal.timeout = (ms: number): AbortSignal => {
    const controller = new AbortController();
    plan(ms, () => controller.abort(new DOMException('The operation timed out.', 'TimeoutError')));
    return controller.signal;
  };
}

function takeRandomness(): void {
  Math.random = () => programRandom.next();
  const uuid = (): string => {
    const bytes = fill(Buffer.alloc(16));
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
  Object.assign(crypto, {
    generateKeyPairSync: (type: string) => {
      if (type !== 'x25519') throw new Error('The simulator makes X25519 keys only.');
      const key = Buffer.concat([X25519_KEY_HEADER, fill(Buffer.alloc(X25519_KEY_BYTES))]);
      const privateKey = crypto.createPrivateKey({ key, format: 'der', type: 'pkcs8' });
      return { privateKey, publicKey: crypto.createPublicKey(privateKey) };
    },
    randomBytes: (length: number) => fill(Buffer.alloc(length)),
    randomFillSync: fill,
    randomUUID: uuid,
    randomInt: (from: number, to?: number) =>
      to === undefined ? programRandom.below(from) : from + programRandom.below(to - from),
  });
  globalThis.crypto.getRandomValues = (array) => fill(array);
  globalThis.crypto.randomUUID = uuid as typeof globalThis.crypto.randomUUID;
}

takeTimers();
takeTime();
takeRandomness();
takeDisk(planNext);
takeDatabases((task) => void plan(FLUSH_MS, task));
takeSockets(planNext);
takeMachine(planNext);
syncBuiltinESMExports();
