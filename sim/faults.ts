/** Faults of the network, the machines and the programs. */
import type { Random } from '../test/support/random.ts';
import type { FaultKind } from './names.ts';
import type { SimulatedNode } from './node.ts';
import type { Schedule } from './schedule.ts';
import { GOOD_PATHS, type Machine, type PathQuality, type UdpNetwork } from './udp-network.ts';

/** The longest duration of a fault, milliseconds. */
const MAX_FAULT_MS = 12 * 60_000;
/** Rate of the worst clock: half a second a day would be a good one. */
const MAX_DRIFT = 1e-4;
/** Longest jump of a clock, milliseconds. Farther ahead, other nodes rightly reject what it signs. */
const MAX_JUMP_MS = 30_000;

/** A clock that is ahead by minutes, or by days, milliseconds: at least, and at most twice as much. */
const MINUTES_AHEAD_MS: number = 12 * 60_000;
const DAY_MS: number = 24 * 3_600_000;
/** Probabilities that a statement or a flush fails. */
const FAILURES = {
  'failing writes': ['failingWrites', 0.05],
  'failing reads': ['failingReads', 0.01],
  'failing flushes': ['failingFlushes', 0.3],
} as const;

/** Ends it. */
type End = () => void | Promise<void>;
/** Begins it. Returns what it affects. */
type Beginning = () => [what: string, end: End];

interface FaultParts {
  readonly schedule: Schedule;
  readonly random: Random;
  readonly udp: UdpNetwork;
  readonly nodes: readonly SimulatedNode[];
  readonly kinds: readonly FaultKind[];
  /** Numbers of faults that do not happen. The first one has number 1. */
  readonly without: readonly number[];
  /** Average time between the starts of two faults, milliseconds. */
  readonly pauseMs: number;
  readonly note: (text: string) => void;
  /** Starts and stops programs of nodes. */
  readonly start: (node: SimulatedNode) => Promise<void>;
  readonly stop: (node: SimulatedNode) => Promise<void>;
  readonly crash: (node: SimulatedNode) => void;
  readonly cutPower: (node: SimulatedNode) => void;
}

export class Faults {
  readonly #parts: FaultParts;
  readonly #counts = new Map<FaultKind, number>();
  readonly #history: { readonly kind: FaultKind; readonly from: number; to: number }[] = [];
  /** Running faults. */
  readonly #ends = new Set<End>();
  #isOver = false;
  /** Number of faults so far, including omitted faults. */
  #planned = 0;

  constructor(parts: FaultParts) {
    this.#parts = parts;
  }

  get planned(): number {
    return this.#planned;
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** The faults that were active after a time, with their duration after it. Both in milliseconds. */
  since(at: number): readonly { readonly kind: FaultKind; readonly ms: number }[] {
    const now = this.#parts.schedule.now();
    return this.#history
      .filter(({ to }) => to >= at)
      .map(({ kind, from, to }) => ({ kind, ms: Math.min(to, now) - Math.max(from, at) }));
  }

  begin(): void {
    const { nodes, random } = this.#parts;
    for (const { process } of nodes) process.drift(1 + MAX_DRIFT * (2 * random.next() - 1));
    this.#plan();
  }

  /** Ends all faults. */
  async heal(): Promise<void> {
    this.#isOver = true;
    for (const end of [...this.#ends]) await end();
  }

  #plan(): void {
    const { schedule, random, kinds, pauseMs } = this.#parts;
    if (kinds.length === 0) return;
    schedule.after(pauseMs * 2 * random.next(), () => {
      if (this.#isOver) return;
      this.#begin(random.pick(kinds), Math.round(MAX_FAULT_MS * random.next()));
      this.#plan();
    });
  }

  #begin(kind: FaultKind, durationMs: number): void {
    const { schedule, note, without } = this.#parts;
    const number = ++this.#planned;
    const begin = this.#choose(kind, durationMs);
    if (without.includes(number)) return;
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    const [what, finish] = begin();
    note(`fault ${number}: ${kind} ${what}`);
    const entry = { kind, from: schedule.now(), to: Number.POSITIVE_INFINITY };
    this.#history.push(entry);
    const end: End = async () => {
      if (!this.#ends.delete(end)) return;
      entry.to = schedule.now();
      note(`end of fault ${number}: ${kind} ${what}`);
      await finish();
    };
    this.#ends.add(end);
    schedule.after(durationMs, () => void end());
  }

  /** Chooses a fault. Only its beginning has effects, so an omitted fault does not change other faults. */
  #choose(kind: FaultKind, durationMs: number): Beginning {
    const { random, nodes, udp, schedule } = this.#parts;
    const node = random.pick(nodes);
    const nothing = (): void => {};
    const ifRunning = (begin: Beginning): Beginning => {
      return () => (node.isRunning ? begin() : ['of nothing', nothing]);
    };
    switch (kind) {
      case 'loss': {
        const quality = { ...GOOD_PATHS, loss: 0.3 * random.next(), duplication: 0.02, jitterMs: 100 };
        return () => this.#setQuality(quality);
      }
      case 'slow network': {
        const quality = { ...GOOD_PATHS, minDelayMs: 50 + 400 * random.next(), jitterMs: 200 };
        return () => this.#setQuality(quality);
      }
      case 'partition':
      case 'one-way partition':
      case 'flapping partition':
        return this.#partition(kind, durationMs);
      case 'sleep':
        return ifRunning(() => {
          const { process, machine } = node;
          process.sleep();
          machine.isOnline = false;
          return [
            node.name,
            () => {
              machine.isOnline = true;
              process.wake();
            },
          ];
        });
      case 'crash':
        return ifRunning(() => {
          this.#parts.crash(node);
          return [node.name, () => this.#parts.start(node)];
        });
      case 'power cut':
        return ifRunning(() => {
          this.#parts.cutPower(node);
          return [node.name, () => this.#parts.start(node)];
        });
      case 'blackout':
        return () => {
          const off = nodes.filter(({ isRunning }) => isRunning);
          for (const one of off) this.#parts.cutPower(one);
          return ['', async () => void (await Promise.all(off.map((one) => this.#parts.start(one))))];
        };
      case 'full disk':
        return () => {
          node.disk.faults.isFull = true;
          return [node.name, () => void (node.disk.faults.isFull = false)];
        };
      case 'failing writes':
      case 'failing reads':
      case 'failing flushes':
        return () => {
          const [name, probability] = FAILURES[kind];
          node.disk.faults[name] = probability;
          return [node.name, () => void (node.disk.faults[name] = 0)];
        };
      case 'wrong clock': {
        const ms = Math.round((random.chance(0.5) ? MINUTES_AHEAD_MS : DAY_MS) * (1 + random.next()));
        return () => {
          const { process } = node;
          node.clockSetAt = schedule.now();
          process.jump(ms);
          return [`${node.name} ${ms} ms`, () => process.jump(-ms)];
        };
      }
      case 'restart':
        return ifRunning(() => {
          const stopped = this.#parts.stop(node);
          return [node.name, () => stopped.then(() => this.#parts.start(node))];
        });
      case 'no descriptors':
        return ifRunning(() => {
          const { process } = node;
          process.isOutOfDescriptors = true;
          return [node.name, () => void (process.isOutOfDescriptors = false)];
        });
      case 'lost address':
        return () => {
          const { machine } = node;
          machine.hasAddress = false;
          return [node.name, () => void (machine.hasAddress = true)];
        };
      case 'nat restart':
        return () => {
          node.machine.nat?.restart();
          return [node.name, nothing];
        };
      case 'address change':
        return () => {
          udp.move(node.machine);
          return [`${node.name} to ${node.machine.publicHost}`, nothing];
        };
      default: {
        const ms = Math.round(MAX_JUMP_MS * (2 * random.next() - 1));
        return () => {
          const { process } = node;
          process.jump(ms);
          return [`${node.name} ${ms} ms`, () => process.jump(-ms)];
        };
      }
    }
  }

  #setQuality(quality: PathQuality): [what: string, end: End] {
    const { udp } = this.#parts;
    udp.quality = quality;
    return ['', () => void (udp.quality = GOOD_PATHS)];
  }

  #partition(kind: FaultKind, durationMs: number): Beginning {
    const { random, nodes, udp, schedule } = this.#parts;
    const share = random.next();
    const left = new Set<Machine>(nodes.filter(() => random.chance(share)).map(({ machine }) => machine));
    const isLeft = (machine: Machine): boolean => left.has(machine);
    const isCut = (from: Machine, to: Machine): boolean =>
      kind === 'one-way partition' ? isLeft(from) && !isLeft(to) : isLeft(from) !== isLeft(to);
    const periodMs = kind === 'flapping partition' ? 2000 + 30_000 * random.next() : durationMs + 1;
    const names = nodes.filter(({ machine }) => left.has(machine)).map(({ name }) => name);
    return () => {
      const since = schedule.now();
      udp.isCut = (from, to) => Math.floor((schedule.now() - since) / periodMs) % 2 === 0 && isCut(from, to);
      return [`{${names.join(' ')}}`, () => void (udp.isCut = () => false)];
    };
  }
}
