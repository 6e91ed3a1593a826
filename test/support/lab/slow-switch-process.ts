/**
 * The center of a lab's Internet with delays: an Ethernet switch whose cables are TAP devices. It delays each frame by
 * the time of its incoming port, and drops some. It only needs Node: `node:ffi` calls the kernel's functions in this
 * separate process. Commands arrive as JSON lines.
 */

import { dlopen } from 'node:ffi';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { PortUse, SwitchAnswer, SwitchOrder } from './slow-switch.ts';
import { openDevice } from './tun.ts';

/** Linux constants: `CLONE_NEWNET`, `O_RDWR | O_NONBLOCK`, `POLLIN`. */
const CLONE_NEWNET = 0x4000_0000;
const READ_WRITE_AT_ONCE = 0o4002;
const POLLIN = 1;
/**
 * Size of a frame buffer, and largest number of delayed frames per port: 40 ms at 200 MB/s. Further frames are dropped.
 */
const FRAME_BYTES = 1600;
const QUEUED_FRAMES = 8192;
/** Number of frames read from a port before the next port. */
const BURST = 64;
const POLLFD_BYTES = 8;
const TIMESPEC_BYTES = 16;
const NS_PER_MS = 1_000_000;

const { functions: kernel } = dlopen(null, {
  setns: { arguments: ['i32', 'i32'], return: 'i32' },
  ppoll: { arguments: ['buffer', 'u32', 'pointer', 'pointer'], return: 'i32' },
  read: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
  write: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
});

/** One end of a cable, with its delayed frames. */
class Port {
  readonly fd: number;
  delayMs = 0;
  loss = 0;
  readonly use: PortUse = { packets: 0, bytes: 0, lost: 0 };
  readonly #frames = Array.from({ length: QUEUED_FRAMES }, () => Buffer.allocUnsafe(FRAME_BYTES));
  readonly #lengths = new Int32Array(QUEUED_FRAMES);
  readonly #due = new Float64Array(QUEUED_FRAMES);
  readonly #overflow = Buffer.allocUnsafe(FRAME_BYTES);
  #head = 0;
  #tail = 0;

  constructor(fd: number) {
    this.fd = fd;
  }

  /** Time of its first frame. */
  get dueAt(): number {
    return this.#head === this.#tail ? Number.POSITIVE_INFINITY : (this.#due[this.#head % QUEUED_FRAMES] ?? 0);
  }

  takeIn(now: number): void {
    for (let i = 0; i < BURST; i++) {
      const slot = this.#tail % QUEUED_FRAMES;
      const hasRoom = this.#tail - this.#head < QUEUED_FRAMES;
      const frame = hasRoom ? this.#frames[slot] : undefined;
      const length = kernel.read(this.fd, frame ?? this.#overflow, FRAME_BYTES);
      if (length <= 0) return;
      this.use.packets++;
      this.use.bytes += length;
      if (frame === undefined || (this.loss > 0 && Math.random() < this.loss)) {
        this.use.lost++;
        continue;
      }
      this.#lengths[slot] = length;
      this.#due[slot] = now + this.delayMs;
      this.#tail++;
    }
  }

  passOn(now: number, pass: (frame: Buffer, length: number) => void): void {
    while (this.dueAt <= now) {
      const slot = this.#head++ % QUEUED_FRAMES;
      const frame = this.#frames[slot];
      if (frame !== undefined) pass(frame, this.#lengths[slot] ?? 0);
    }
  }
}

const ports: Port[] = [];
/** The port of each Ethernet address. */
const places = new Map<number, Port>();

function pass(from: Port, frame: Buffer, length: number): void {
  places.set(frame.readUIntBE(6, 6), from);
  const isForAll = ((frame[0] ?? 0) & 1) === 1;
  const to = isForAll ? undefined : places.get(frame.readUIntBE(0, 6));
  for (const port of to === undefined ? ports : [to]) if (port !== from) kernel.write(port.fd, frame, length);
}

/** Creates a TAP device in the network namespace of a process, and moves this process there. */
function plug(pid: number, name: string): Port {
  const namespace = openSync(`/proc/${pid}/ns/net`, 'r');
  if (kernel.setns(namespace, CLONE_NEWNET) !== 0) throw new Error('setns failed');
  closeSync(namespace);
  return new Port(openDevice('tap', name, READ_WRITE_AT_ONCE));
}

function obey(order: SwitchOrder): SwitchAnswer {
  if (order.do === 'plug') return { port: ports.push(plug(order.pid, order.interface)) - 1 };
  const port = ports[order.port];
  if (port === undefined) return { error: 'no such port' };
  if (order.do === 'use') return { use: port.use };
  port.delayMs = order.delayMs;
  port.loss = order.loss;
  return {};
}

function answer(line: string): SwitchAnswer {
  try {
    const order: SwitchOrder = JSON.parse(line);
    return obey(order);
  } catch (error) {
    return { error: error instanceof Error ? error.message : 'unknown' };
  }
}

let orders = '';
/** False after the end of the command channel. */
function listen(): boolean {
  const input = Buffer.alloc(4096);
  const length = readSync(0, input);
  if (length === 0) return false;
  const lines = (orders + input.toString('utf8', 0, length)).split('\n');
  orders = lines.pop() ?? '';
  for (const line of lines) writeSync(1, `${JSON.stringify(answer(line))}\n`);
  return true;
}

/** File descriptors for `ppoll`, commands first. Rebuilt for each new port. */
let polled = Buffer.alloc(0);
const limit = Buffer.alloc(TIMESPEC_BYTES);

function look(): void {
  const fds = [0, ...ports.map(({ fd }) => fd)];
  polled = Buffer.alloc(fds.length * POLLFD_BYTES);
  fds.forEach((fd, i) => {
    polled.writeInt32LE(fd, i * POLLFD_BYTES);
    polled.writeInt16LE(POLLIN, i * POLLFD_BYTES + 4);
  });
}

/** Waits for commands, for frames, or until the first frame is due. */
function wait(): void {
  let dueAt = Number.POSITIVE_INFINITY;
  for (const port of ports) dueAt = Math.min(dueAt, port.dueAt);
  const ms = Math.max(0, dueAt - performance.now());
  if (Number.isFinite(ms)) {
    limit.writeUInt32LE(Math.floor(ms / 1000), 0);
    limit.writeUInt32LE(Math.floor((ms % 1000) * NS_PER_MS), TIMESPEC_BYTES / 2);
  }
  kernel.ppoll(polled, polled.length / POLLFD_BYTES, Number.isFinite(ms) ? limit : null, null);
}

function hasCome(index: number): boolean {
  return polled.readInt16LE(index * POLLFD_BYTES + 6) !== 0;
}

look();
for (;;) {
  wait();
  const known = ports.length;
  const now = performance.now();
  for (let i = 0; i < known; i++) if (hasCome(i + 1)) ports[i]?.takeIn(now);
  for (const port of ports) port.passOn(now, (frame, length) => pass(port, frame, length));
  if (!hasCome(0)) continue;
  if (!listen()) break;
  if (ports.length !== known) look();
}
