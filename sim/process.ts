/**
 * Programs in the simulation. Each has its own clock, and its timers end with it: a crash needs no cooperation of the
 * program.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { networkInterfaces } from 'node:os';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Timer } from '../src/foundation/clock.ts';
import type { Schedule } from './schedule.ts';
import { systemError } from './system-error.ts';

/** Log lines that are kept. */
const MAX_LINES = 2000;

const current = new AsyncLocalStorage<Process>();
/** Set while another program of the same machine runs. */
const other = new AsyncLocalStorage<true>();

/** Local programs at TCP ports of a machine, by port. */
export type LocalPorts = Map<number, (connection: unknown) => void>;

interface ProcessParts {
  readonly name: string;
  readonly interfaces: () => ReturnType<typeof networkInterfaces>;
  /** Shared by the programs of one machine. */
  readonly ports: LocalPorts;
}

export class Process {
  /** Records the stack of each call that makes a timer, which is slow. */
  static tracesTimers = false;
  readonly name: string;
  readonly interfaces: ProcessParts['interfaces'];
  readonly ports: LocalPorts;
  /** Ports that accept a connection of this program late, after milliseconds. */
  readonly acceptMs = new Map<number, number>();
  readonly log: string[] = [];
  readonly databases = new Set<DatabaseSync>();
  /** It has as many files and sockets open as the system allows. */
  isOutOfDescriptors = false;
  readonly clock: Clock = {
    now: () => this.#now(),
    monotonic: () => this.#schedule.monotonic(),
    after: (ms, task) => this.#after(ms, task),
  };
  readonly #schedule: Schedule;
  #isRunning = true;
  /** Tasks that wait until the machine wakes up; null while it is awake. */
  #asleep: (() => void)[] | null = null;
  /** Rate of the clock, 1 if it is right, and how far it is ahead of the true time, milliseconds. */
  #rate = 1;
  #aheadMs = 0;
  #rateSince = 0;
  /** Tasks of timers that have neither run nor been canceled. */
  readonly #timers = new Map<object, string>();
  #begunTimers = 0;

  constructor(schedule: Schedule, { name, interfaces, ports }: ProcessParts) {
    this.#schedule = schedule;
    this.name = name;
    this.interfaces = interfaces;
    this.ports = ports;
  }

  static get current(): Process | undefined {
    return current.getStore();
  }

  /** Whether the running program may open another file or socket. */
  static get hasDescriptor(): boolean {
    return other.getStore() === true || current.getStore()?.isOutOfDescriptors !== true;
  }

  /**
   * To be called before the running program gets a file or socket.
   * @throws an error of the system if the program may open no other
   */
  static takeDescriptor(syscall: string): void {
    if (!Process.hasDescriptor) throw systemError('EMFILE', syscall);
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** The number of timers so far. */
  get begunTimers(): number {
    return this.#begunTimers;
  }

  /** Stacks of the calls that made the timers, if they are recorded. */
  timerOrigins(): readonly string[] {
    return [...this.#timers.values()];
  }

  /** Runs a task in this program. */
  run<T>(task: () => T): T {
    return current.run(this, task);
  }

  /** Runs a task in another program of this machine, such as a service. It ends with this one, and has own descriptors. */
  runOther<T>(task: () => T): T {
    return current.run(this, () => other.run(true, task));
  }

  /** Runs an event of this program: later if its machine sleeps, and not at all after its end. */
  deliver(task: () => void): void {
    if (!this.#isRunning) return;
    if (this.#asleep === null) current.run(this, task);
    else this.#asleep.push(task);
  }

  /** Drops all events of this program. */
  kill(): void {
    this.#isRunning = false;
    this.#asleep = null;
  }

  sleep(): void {
    this.#asleep ??= [];
  }

  /** Runs what was due, as a machine that resumes does. */
  wake(): void {
    const due = this.#asleep ?? [];
    this.#asleep = null;
    for (const task of due) this.#schedule.after(0, () => this.deliver(task));
  }

  /** Sets the clock forward, or back if negative. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  /** @param rate for example 1.0001 for a clock that gains 8.6 s a day */
  drift(rate: number): void {
    this.#aheadMs = this.#now() - this.#schedule.now();
    this.#rateSince = this.#schedule.now();
    this.#rate = rate;
  }

  writeLog(text: string): void {
    this.log.push(text);
    if (this.log.length > MAX_LINES) this.log.splice(0, MAX_LINES / 2);
  }

  #now(): number {
    const now = this.#schedule.now();
    return Math.floor(now + this.#aheadMs + (now - this.#rateSince) * (this.#rate - 1));
  }

  #after(ms: number, task: () => void): Timer {
    const key = {};
    this.#begunTimers++;
    this.#timers.set(key, Process.tracesTimers ? (new Error().stack ?? '') : '');
    // As Node does: no timer is shorter than a millisecond.
    const timer = this.#schedule.after(Math.max(1, Math.ceil(ms / this.#rate)), () =>
      this.deliver(() => {
        if (this.#timers.delete(key)) task();
      }),
    );
    return {
      cancel: () => {
        this.#timers.delete(key);
        timer.cancel();
      },
    };
  }
}
