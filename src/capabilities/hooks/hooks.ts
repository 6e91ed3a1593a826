/**
 * Hooks: programs of the owner that start when something arrives for an agent. An item becomes a delivery in the
 * transaction that stores the item, and stays one until a program has handled it: see docs/decisions/0105-hooks.md.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import {
  type DeliveryState,
  HOOK_CALL_WAIT_MS,
  HOOK_STARTS_OF_STRANGERS,
  HOOK_STARTS_PER_KNOWN,
  HOOK_STARTS_PER_NETWORK,
  HOOK_STARTS_PER_SOURCE,
  HOOK_STARTS_PER_STRANGER,
  HOOKS_PARALLEL,
  HOOKS_PARALLEL_PER_NETWORK,
  HOOKS_PARALLEL_PER_SOURCE,
  HOOKS_PARALLEL_RESERVED,
  MAX_HOOK_CALLS,
  MAX_HOOK_CALLS_PER_CALLER,
  MAX_HOOK_CALLS_PER_NETWORK,
  MAX_HOOK_CALLS_PER_SOURCE,
  MAX_HOOK_CALLS_RESERVED,
  MAX_HOOK_FAILURES,
  MAX_HOOK_STARTS,
  MAX_HOOKS,
} from '../../foundation/domain/hooks.ts';
import { type Due, DueQueue } from '../../foundation/due-queue.ts';
import type { ProgramEnvironment } from '../../foundation/environment.ts';
import { SvcError } from '../../foundation/errors.ts';
import { causeOf, type EventPayloads, type EventSink, type EventType } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { KnownAgents, NodeParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaLimits, type QuotaShare, THIS_MACHINE } from '../../foundation/quota.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import {
  type DeliveryCounts,
  type DeliveryResult,
  type DeliveryRow,
  type HookRow,
  type HookStore,
  type NewHook,
  NO_COUNTS,
} from '../../foundation/store/hooks.ts';
import { type HolderRequest, requestHolder } from '../../network/links/holder.ts';
import { type Arrival, type ArrivalDetails, arrivalsIn, type ItemRef } from './arrivals.ts';
import { answerOf, GRACE_MS, hasBegun, type ProgramResult, ProgramRun, resultOf } from './program-run.ts';
import { isShortage, noProcess, startProblem } from './start-problem.ts';
import type { RunningProgram } from './windows-run.ts';

/** Wait after failed runs: one second, then twice as long each time. */
const RETRY: JitteredBackoff = { firstMs: 1000, maxMs: 10 * 60_000, jitter: 0 };
/** Conversations that are considered in one step. */
const MAX_HEADS = 500;
/** Senders, sources and networks whose starts are counted. */
const MAX_COUNTED_SENDERS = 10_000;
/** Characters of an idempotency key. */
const KEY_CHARS = 32;
const MINUTE_S = 60;
/** Calls that wait for their program or its answer. */
const CALLS: QuotaLimits = {
  perKey: MAX_HOOK_CALLS_PER_CALLER,
  perNode: MAX_HOOK_CALLS_PER_CALLER,
  perSource: MAX_HOOK_CALLS_PER_SOURCE,
  perNetwork: MAX_HOOK_CALLS_PER_NETWORK,
  total: MAX_HOOK_CALLS,
  reserved: MAX_HOOK_CALLS_RESERVED,
};
/** Programs that run. */
const PROGRAMS: QuotaLimits = {
  perSource: HOOKS_PARALLEL_PER_SOURCE,
  perNetwork: HOOKS_PARALLEL_PER_NETWORK,
  total: HOOKS_PARALLEL,
  reserved: HOOKS_PARALLEL_RESERVED,
};
/** When a caller that found no room should try again, seconds. */
const CALL_RETRY_S = 10;

/** Reads items and acknowledges them. */
export interface HookItems extends ArrivalDetails {
  /** The item for the program, as members of its JSON; null if it no longer exists. */
  load(aid: Aid, peer: Aid, ref: ItemRef): Readonly<Record<string, unknown>> | null;
  /** A program has handled the item. Runs in a transaction. */
  acknowledge(aid: Aid, peer: Aid, ref: ItemRef): void;
}

export interface HooksDependencies extends NodeParts, KnownAgents {
  readonly store: HookStore;
  readonly items: HookItems;
  readonly events: EventSink;
  /** Folder for the files of runs. */
  readonly directory: string;
  /** Variables that every program gets. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** Starts a program. Default: `ProgramRun.start`. */
  readonly start?: typeof ProgramRun.start;
}

/** A hook with the number of its deliveries. */
export interface HookState {
  readonly hook: HookRow;
  readonly counts: DeliveryCounts;
}

/** A program that runs, or is being started. */
interface Turn {
  readonly delivery: DeliveryRow;
  run: RunningProgram | null;
  /** Why svcd ended it. */
  ended: 'timeout' | 'removed' | 'gone' | 'stopped' | null;
}

/** A call whose caller waits for the answer of a program. */
interface WaitingCall {
  readonly hook: string;
  readonly known: boolean;
  readonly address: string | null;
  readonly share: QuotaShare;
  /** The request, as the program reads it. Null until it is complete. */
  call: object | null;
  /** Its program was started. */
  hasBegun: boolean;
  /** @param answer null if the program failed */
  readonly resolve: (answer: Buffer | null) => void;
  readonly reject: (error: SvcError) => void;
}

/** See `CallPrograms` of the calls. */
type Answer = (read: () => Promise<object>, signal: AbortSignal) => Promise<Buffer | null>;

function perMinute(count: number): Rate {
  return { perSecond: count / MINUTE_S, burst: count };
}

export class Hooks implements Component {
  readonly #deps: HooksDependencies;
  readonly #log: Log;
  readonly #strangers: RateQuota;
  readonly #known: RateQuota;
  readonly #turns = new Map<number, Turn>();
  /** By the key of their delivery. */
  readonly #calls = new Map<string, WaitingCall>();
  readonly #waitingCalls = new Quota(CALLS);
  /** The number of the last start for each sender, source and network. The one with the lowest number is next. */
  readonly #lastStarts = new LruCache<string, number>({ maxEntries: 3 * MAX_COUNTED_SENDERS });
  #starts = 0;
  readonly #queue: DueQueue<DeliveryRow>;
  #hooks: readonly HookRow[];

  constructor(dependencies: HooksDependencies) {
    const { log, store, clock } = dependencies;
    this.#deps = dependencies;
    this.#log = log.child('hooks');
    this.#hooks = store.list();
    this.#strangers = new RateQuota(
      {
        perKey: perMinute(HOOK_STARTS_PER_STRANGER),
        perSource: perMinute(HOOK_STARTS_PER_SOURCE),
        perNetwork: perMinute(HOOK_STARTS_PER_NETWORK),
        strangers: perMinute(HOOK_STARTS_OF_STRANGERS),
        maxKeys: MAX_COUNTED_SENDERS,
      },
      { clock },
    );
    this.#known = new RateQuota({ perKey: perMinute(HOOK_STARTS_PER_KNOWN), maxKeys: MAX_COUNTED_SENDERS }, { clock });
    this.#queue = new DueQueue(
      { name: 'deliveries of hooks', retry: RETRY, atOnce: PROGRAMS },
      {
        clock,
        log: this.#log,
        random: () => 0,
        table: {
          ...store.open,
          due: (now, _limit, except) => this.#inTurn(store.open.due(now, MAX_HEADS, except)),
        },
        holderOf: ({ item }) => senderOf(item),
        waitMs: (delivery) => this.#waitMs(delivery),
        work: (delivery, signal) => this.#run(delivery, signal),
      },
    );
  }

  async start(): Promise<void> {
    await this.#clearFolders(new Set(this.#deps.store.running().map((delivery) => this.#dirOf(delivery))));
    this.#queue.start();
  }

  /** Stops the programs: SIGTERM, then SIGKILL. Their deliveries start again with the next daemon. */
  async stop(): Promise<void> {
    await this.#queue.stop();
  }

  /** The programs that run. */
  get active(): number {
    return this.#turns.size;
  }

  /**
   * Adds a hook. The caller must have proved that it is the owner: a hook runs a program as the user of the daemon.
   * @throws SvcError `quota_exceeded`
   */
  add(hook: NewHook): HookState {
    if (this.#hooks.length >= MAX_HOOKS)
      throw new SvcError('quota_exceeded', {
        message: `This node can have at most ${MAX_HOOKS} hooks. Remove one with "svc hooks rm".`,
      });
    this.#deps.store.add(hook);
    this.#reload();
    return this.get(hook.id);
  }

  list(): HookState[] {
    const counts = this.#deps.store.counts();
    return this.#deps.store.list().map((hook) => ({
      hook,
      counts: counts.get(hook.id) ?? NO_COUNTS,
    }));
  }

  /** @throws SvcError `not_found` */
  get(id: string): HookState {
    const state = this.list().find(({ hook }) => hook.id === id);
    if (state === undefined) throw noSuchHook();
    return state;
  }

  /** Deletes a hook with its deliveries and stops its programs. @throws SvcError `not_found` */
  remove(id: string): void {
    if (!this.#deps.store.delete(id)) throw noSuchHook();
    this.#reload();
  }

  /** A paused hook starts no program. Its items wait. @throws SvcError `not_found` */
  setPaused(id: string, paused: boolean): HookState {
    if (!this.#deps.store.setPaused(id, paused)) throw noSuchHook();
    this.#reload();
    this.#queue.soon();
    return this.get(id);
  }

  /** Deliveries of a hook before an ID, newest first. @throws SvcError `not_found` */
  deliveries(id: string, state: DeliveryState | undefined, beforeId: number, limit: number): DeliveryRow[] {
    if (this.#deps.store.get(id) === null) throw noSuchHook();
    return this.#deps.store.page(id, state, beforeId, limit);
  }

  /** @throws SvcError `not_found` */
  delivery(hook: string, id: number): DeliveryRow {
    const delivery = this.#deps.store.delivery(id);
    if (delivery === null || delivery.hook !== hook) throw new SvcError('not_found', { message: 'No such delivery.' });
    return delivery;
  }

  /** Starts a dead delivery again. @throws SvcError `not_found`, `wrong_state` */
  retry(hook: string, id: number): DeliveryRow {
    const { store, clock } = this.#deps;
    if (isCall(this.delivery(hook, id)))
      throw new SvcError('wrong_state', { message: 'A call cannot be retried: its caller has received an error.' });
    if (!store.retry(id, clock.now()))
      throw new SvcError('wrong_state', { message: 'Only a dead delivery can be retried.' });
    this.#queue.soon();
    return this.delivery(hook, id);
  }

  /** Deletes a delivery that does not run. The item is not changed. @throws SvcError `not_found`, `wrong_state` */
  drop(hook: string, id: number): void {
    this.delivery(hook, id);
    if (!this.#deps.store.drop(id))
      throw new SvcError('wrong_state', { message: 'The program of this delivery runs. Wait until it exits.' });
    this.#queue.soon();
  }

  /** Handles the deletion of an agent, whose hooks are deleted with it. */
  agentDeleted(): void {
    this.#reload();
  }

  /** Handles an event of a capability, in its transaction: stores a delivery for each item and hook. */
  emitted<T extends EventType>(aid: Aid, type: T, data: EventPayloads[T]): void {
    const hooks = this.#hooks.filter((hook) => hook.aid === aid);
    if (hooks.length === 0) return;
    const { store, items, clock, isKnown } = this.#deps;
    const now = clock.now();
    // The two belong together, which TypeScript cannot see.
    const event = { type, data } as Parameters<typeof arrivalsIn>[1];
    let isNew = false;
    for (const { kind, peer, ref, conversation } of arrivalsIn(aid, event, items)) {
      const known = isKnown(aid, peer);
      for (const hook of hooks) {
        if (hook.kind !== kind || !isFor(hook, peer, known)) continue;
        const key = keyOf(hook, peer, ref);
        const address = known ? null : items.addressOf(peer);
        isNew = store.deliver({ hook: hook.id, key, ref, peer, known, address, conversation }, now) || isNew;
      }
    }
    // A flood that finds no room costs no search for programs to start.
    if (isNew) this.#queue.soon();
  }

  /** The program that answers calls of a caller: that of the oldest hook for it. Null if there is none. */
  programFor(request: HolderRequest): Answer | null {
    const { called, caller } = request;
    const hooks = this.#hooks.filter(({ aid, kind, paused }) => kind === 'call' && aid === called && !paused);
    if (hooks.length === 0) return null;
    const known = this.#deps.isKnown(called, caller);
    const hook = hooks.find((one) => isFor(one, caller, known));
    return hook === undefined ? null : (read, signal) => this.#answer(hook, request, known, read, signal);
  }

  /** Reads a call if there is room for it, and waits for the output of its program. */
  async #answer(
    hook: HookRow,
    request: HolderRequest,
    known: boolean,
    read: () => Promise<object>,
    signal: AbortSignal,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer | null>();
    // Calls without a program are evicted first: a start is a use.
    const onEvict = (): void => reject(tooManyCalls());
    const share = this.#waitingCalls.take(requestHolder(request, known), { onEvict });
    if (share === null) throw tooManyCalls();
    const key = randomBytes(KEY_CHARS / 2).toString('hex');
    const { source: address } = request;
    const waiting: WaitingCall = { hook: hook.id, known, address, share, call: null, hasBegun: false, resolve, reject };
    const answer = abortable(promise, signal);
    // The hook may be removed, or the caller may leave, while nothing waits for the answer yet.
    answer.catch(() => {});
    this.#calls.set(key, waiting);
    try {
      waiting.call = await read();
      return await this.#deliverCall(hook, request.caller, key, waiting, answer);
    } finally {
      this.#calls.delete(key);
      share.release();
    }
  }

  /** Makes a call a delivery. @param answer see `WaitingCall` */
  async #deliverCall(
    { id: hook, aid }: HookRow,
    peer: Aid,
    key: string,
    waiting: WaitingCall,
    answer: Promise<Buffer | null>,
  ) {
    const { store, clock } = this.#deps;
    const timer = clock.after(HOOK_CALL_WAIT_MS, () => {
      if (!waiting.hasBegun) waiting.reject(tooManyCalls());
    });
    try {
      const ref = JSON.stringify({ kind: 'call' } satisfies ItemRef);
      const { known } = waiting;
      const address = known ? null : (waiting.address ?? THIS_MACHINE);
      const delivery = { hook, key, ref, peer, known, address, conversation: `${aid} ${key}` };
      const isThere = this.#hooks.some(({ id }) => id === hook);
      if (isThere && !store.commit(() => store.deliver(delivery, clock.now()), 'soon')) waiting.reject(tooManyCalls());
      this.#queue.soon();
      return await answer;
    } catch (error) {
      this.#hangUp(hook, key);
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** Withdraws the delivery of a call, or ends its program, when the caller no longer waits. */
  #hangUp(hook: string, key: string): void {
    const { store } = this.#deps;
    store.commit(() => store.withdraw(hook, key), 'soon');
    const turn = this.#turns.values().find(({ delivery }) => delivery.key === key);
    if (turn !== undefined) this.#end(turn, 'gone');
  }

  #reload(): void {
    this.#hooks = this.#deps.store.list();
    for (const { hook, reject } of this.#calls.values())
      if (!this.#hooks.some(({ id }) => id === hook)) reject(new SvcError('no_inbound'));
    for (const turn of this.#turns.values())
      if (!this.#hooks.some(({ id }) => id === turn.delivery.hook)) this.#end(turn, 'removed');
  }

  /** Milliseconds until the program of a delivery may start. If 0, the start is counted for its sender. */
  #waitMs(delivery: DeliveryRow): number {
    // A program of an earlier daemon runs already.
    if (delivery.state === 'running') return 0;
    const hook = this.#hooks.find(({ id }) => id === delivery.hook);
    const running = [...this.#turns.values()].map((turn) => turn.delivery);
    const ofHook = running.filter((one) => one.hook === delivery.hook);
    if (hook === undefined || ofHook.length >= hook.parallel) return UNTIL_REQUESTED;
    // Also for the deliveries of another hook.
    if (running.some((one) => one.conversation === delivery.conversation)) return UNTIL_REQUESTED;
    const quota = delivery.known ? this.#known : this.#strangers;
    const holder = senderOf(delivery);
    if (!quota.take(holder)) return quota.retryAfterMs(holder);
    this.#starts++;
    for (const name of namesOf(delivery)) this.#lastStarts.set(name, this.#starts);
    return 0;
  }

  /** Programs that run already, then known senders. */
  #inTurn(due: readonly Due<DeliveryRow>[]): Due<DeliveryRow>[] {
    const {
      running = [],
      known = [],
      strangers = [],
    } = Object.groupBy(due, ({ item }) => {
      if (item.state === 'running') return 'running';
      return item.known ? 'known' : 'strangers';
    });
    return [...running, ...this.#takeTurns(known), ...this.#takeTurns(strangers)];
  }

  /** Networks take turns, then their sources, then their senders. The one whose last start was longest ago is first. */
  #takeTurns(due: readonly Due<DeliveryRow>[], level = 0): readonly Due<DeliveryRow>[] {
    const groups = [...Map.groupBy(due, ({ item }) => namesOf(item)[level])];
    const lastStart = (name: string | undefined): number => this.#lastStarts.peek(name ?? '') ?? 0;
    if (groups.every(([name]) => name === undefined)) return due;
    return groups
      .toSorted(([a], [b]) => lastStart(a) - lastStart(b))
      .flatMap(([, group]) => [...this.#takeTurns(group, level + 1).entries()])
      .toSorted(([a], [b]) => a - b)
      .map(([, one]) => one);
  }

  /** Runs the program of a delivery, or waits for that of an earlier daemon, and stores the result. */
  async #run(due: DeliveryRow, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps;
    const isOld = due.state === 'running';
    const hook = this.#hooks.find(({ id }) => id === due.hook);
    const delivery = isOld ? due : store.commit(() => store.begin(due.id, clock.now()), 'soon');
    if (hook === undefined || delivery === null) return;
    const dir = this.#dirOf(delivery);
    const turn: Turn = { delivery, run: isOld ? ProgramRun.takeOver(dir, clock) : null, ended: null };
    const wasAway = isOld && turn.run === null;
    const stop = (): void => this.#end(turn, 'stopped');
    signal.addEventListener('abort', stop);
    this.#turns.set(delivery.id, turn);
    try {
      const problem = isOld ? null : await this.#startProgram(turn, hook);
      const spent = isOld ? Math.max(0, clock.now() - (delivery.startedAt ?? 0)) : 0;
      if (turn.run !== null) await this.#ended(turn, turn.run, Math.max(0, hook.timeoutMs - spent));
      await this.#settle(turn, problem ?? this.#judge(turn, await resultOf(dir), wasAway));
    } finally {
      signal.removeEventListener('abort', stop);
      this.#turns.delete(delivery.id);
    }
  }

  /** Ends programs whose hook was removed, and deletes the folders of runs that are over. */
  async #clearFolders(inUse: ReadonlySet<string>): Promise<void> {
    const { directory, clock } = this.#deps;
    const names = existsSync(directory) ? readdirSync(directory) : [];
    for (const dir of names.map((name) => join(directory, name)).filter((one) => !inUse.has(one))) {
      const run = ProgramRun.takeOver(dir, clock);
      run?.signal('KILL');
      await run?.ended;
      await rm(dir, { recursive: true, force: true });
    }
  }

  /** Returns the result if no program was started, null otherwise. */
  async #startProgram(turn: Turn, hook: HookRow): Promise<DeliveryResult | null> {
    const { items, clock, environment, start = ProgramRun.start } = this.#deps;
    const { delivery } = turn;
    const { key, peer, attempts: attempt } = delivery;
    const waiting = this.#calls.get(key);
    if (waiting !== undefined) waiting.hasBegun = true;
    waiting?.share.touch();
    const item = waiting === undefined ? items.load(hook.aid, peer, refOf(delivery)) : { call: waiting.call };
    if (item === null) return { ...ENDED, state: 'gone', problem: 'The item no longer exists.' };
    const { id, aid, kind } = hook;
    const common = { kind, hook: id, aid, from: peer, idempotency_key: key, attempt };
    const own: ProgramEnvironment = {
      SVC_HOOK: id,
      SVC_KIND: kind,
      SVC_AID: aid,
      SVC_FROM: peer,
      SVC_IDEMPOTENCY_KEY: key,
      SVC_ATTEMPT: String(attempt),
    };
    try {
      turn.run = await start(this.#dirOf(delivery), clock, {
        command: hook.command,
        shell: hook.shell,
        folder: hook.folder,
        environment: { ...environment(), ...own },
        item: `${JSON.stringify({ ...common, ...item })}\n`,
        answers: kind === 'call',
      });
      // A stop or a removal during the start found no program to end.
      if (turn.ended !== null) this.#end(turn, turn.ended);
      return null;
    } catch (error) {
      return this.#notStarted(delivery, error, '');
    }
  }

  #notStarted(delivery: DeliveryRow, error: unknown, output: string): DeliveryResult {
    const result = { exitCode: null, output };
    const failed = this.#failed(delivery, result, startProblem(error));
    if (isCall(delivery) || !isShortage(error)) return failed;
    // The program is not to blame, so the try does not count.
    return { ...failed, ...this.#later(delivery), failed: false, begun: false };
  }

  async #ended(turn: Turn, { ended }: RunningProgram, timeoutMs: number): Promise<void> {
    const timer = this.#deps.clock.after(timeoutMs, () => this.#end(turn, 'timeout'));
    await ended;
    timer.cancel();
  }

  /** Ends a program: SIGTERM, then SIGKILL. The first cause counts. */
  #end(turn: Turn, cause: NonNullable<Turn['ended']>): void {
    turn.ended ??= cause;
    const { run } = turn;
    if (run === null) return;
    run.signal('TERM');
    const timer = this.#deps.clock.after(GRACE_MS, () => run.signal('KILL'));
    detach(run.ended.then(() => timer.cancel()));
  }

  /** @param wasAway no daemon ran when the program ended */
  #judge({ delivery, ended }: Turn, result: ProgramResult, wasAway: boolean): DeliveryResult {
    const { exitCode, output } = result;
    if (exitCode === 0) return { ...ENDED, state: 'done', exitCode, output };
    const isInterrupted = ended === 'stopped' || (wasAway && exitCode === null && ended === null);
    if (isInterrupted && !isCall(delivery) && delivery.attempts < MAX_HOOK_STARTS) {
      const problem = 'svcd was stopped while the program ran.';
      return { ...ENDED, state: 'waiting', dueAt: this.#deps.clock.now(), exitCode, output, problem };
    }
    if (ended === 'timeout') return this.#failed(delivery, result, 'The program took longer than its time limit.');
    if (ended === 'gone') return this.#failed(delivery, result, 'The caller did not wait for the answer.');
    if (exitCode === null && !hasBegun(this.#dirOf(delivery))) return this.#notStarted(delivery, noProcess(), output);
    if (exitCode === null) return this.#failed(delivery, result, 'The program was killed.');
    return this.#failed(delivery, result, `The program exited with code ${exitCode}.`);
  }

  #failed(delivery: DeliveryRow, { exitCode, output }: ProgramResult, problem: string): DeliveryResult {
    const { attempts, failures } = delivery;
    const isLast = isCall(delivery) || failures + 1 >= MAX_HOOK_FAILURES || attempts >= MAX_HOOK_STARTS;
    const next = isLast ? ({ state: 'dead', dueAt: 0 } as const) : this.#later(delivery);
    return { ...next, failed: true, exitCode, problem, output };
  }

  /** The next attempt, after one that failed. */
  #later({ failures }: DeliveryRow): Pick<DeliveryResult, 'state' | 'dueAt'> {
    return { state: 'waiting', dueAt: this.#deps.clock.now() + backoff(RETRY, failures + 1, 0) };
  }

  /** Stores the result of a run, and acknowledges the item if it was handled. */
  async #settle(turn: Turn, result: DeliveryResult): Promise<void> {
    const { store, clock, events } = this.#deps;
    const { delivery } = turn;
    const hook = store.get(delivery.hook);
    await this.#answerCaller(turn, result);
    await store.commit(() => {
      store.settle(delivery, result, clock.now());
      if (hook === null) return;
      if (result.state === 'done' && result.exitCode === 0) this.#acknowledge(hook, delivery);
      const data = { hook_id: hook.id, delivery_id: delivery.id };
      if (result.state === 'dead' && !isCall(delivery))
        events.emit(hook.aid, 'hook.dead', data, causeOf(delivery.peer, delivery.known));
    }, 'now');
    if (result.state === 'dead')
      this.#log.warn({ hook: delivery.hook, delivery: delivery.id }, 'a delivery failed for the last time');
    await rm(this.#dirOf(delivery), { recursive: true, force: true });
  }

  /** True if a hook must still handle an item: then it is the hook that acknowledges it. */
  isHandling({ aid, kind, peer, ref }: Arrival): boolean {
    const hooks = this.#hooks.filter((one) => one.aid === aid && one.kind === kind);
    return hooks.some((one) => this.#deps.store.isOpen(one.id, keyOf(one, peer, ref)));
  }

  /** Does nothing if another hook must still handle the item: its delivery acknowledges it then. */
  #acknowledge({ id, aid, kind }: HookRow, delivery: DeliveryRow): void {
    const others = this.#hooks.filter((one) => one.aid === aid && one.kind === kind && one.id !== id);
    const { peer, ref } = delivery;
    if (others.some((one) => this.#deps.store.isOpen(one.id, keyOf(one, peer, ref)))) return;
    try {
      this.#deps.items.acknowledge(aid, delivery.peer, refOf(delivery));
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      // The program may have deleted the item.
      this.#log.debug({ aid, code: error.code }, 'a handled item was already gone');
    }
  }

  /** Gives the result of a program to the caller that waits for it. */
  async #answerCaller({ delivery, run, ended }: Turn, { exitCode }: DeliveryResult): Promise<void> {
    const waiting = this.#calls.get(delivery.key);
    if (waiting === undefined) return;
    if (run === null) waiting.reject(new SvcError('inbound_unreachable'));
    else if (ended === 'timeout') waiting.reject(new SvcError('timeout'));
    else if (ended !== null) waiting.reject(new SvcError('inbound_unreachable'));
    else waiting.resolve(exitCode === 0 ? await answerOf(this.#dirOf(delivery)) : null);
    this.#calls.delete(delivery.key);
  }

  /** The folder of an attempt. */
  #dirOf({ id, attempts }: DeliveryRow): string {
    return join(this.#deps.directory, `${id}-${attempts}`);
  }
}

/** The idempotency key of an item of a sender for a hook. */
function keyOf({ id, aid }: HookRow, peer: Aid, ref: string): string {
  return createHash('sha256').update(`${id} ${aid} ${peer} ${ref}`).digest('hex').slice(0, KEY_CHARS);
}

function senderOf({ peer, source, known }: DeliveryRow): QuotaHolder {
  return { node: peer, source, named: known };
}

/** The names of a sender, its source and its network, the network first. */
function namesOf({ peer, source, network, known }: DeliveryRow): readonly string[] {
  return known ? [peer] : [network, `${network} ${source}`, peer];
}

const ENDED = { state: 'done', dueAt: 0, failed: false, exitCode: null, problem: '', output: '' } as const;

function refOf({ ref }: DeliveryRow): ItemRef {
  return JSON.parse(ref) as ItemRef;
}

/** True for the delivery of a call, which is attempted once: its caller does not wait longer. */
function isCall(delivery: DeliveryRow): boolean {
  return refOf(delivery).kind === 'call';
}

function isFor({ onlyKnown, senders }: HookRow, peer: Aid, known: boolean): boolean {
  return (known || !onlyKnown) && (senders.length === 0 || senders.includes(peer));
}

function tooManyCalls(): SvcError {
  return new SvcError('rate_limited', { details: { retry_after_s: CALL_RETRY_S } });
}

function noSuchHook(): SvcError {
  return new SvcError('not_found', { message: 'No hook has this ID. "svc hooks" lists the hooks.' });
}
