/**
 * Hooks: programs of the owner that start when something arrives for an agent. An item becomes a delivery in the
 * transaction that stores the item, and stays one until a program has handled it: see docs/decisions/0105-hooks.md.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Backoff, backoff, isWaiting } from '../../foundation/backoff.ts';
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
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
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
import { type ArrivalDetails, arrivalsIn, type ItemRef } from './arrivals.ts';
import { answerOf, GRACE_MS, hasBegun, type ProgramResult, ProgramRun, resultOf } from './program-run.ts';
import { isShortage, noProcess, startProblem } from './start-problem.ts';
import type { RunningProgram } from './windows-run.ts';

/** Wait after failed runs: one second, then twice as long each time. */
const RETRY: Backoff = { firstMs: 1000, maxMs: 10 * 60_000 };
/** Milliseconds until the result of a run that the disk rejected is stored again. */
const STORE_AGAIN_MS = 10_000;
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
  ended: 'timeout' | 'removed' | 'gone' | null;
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
  readonly #programs = new Quota(PROGRAMS);
  /** By the key of their delivery. */
  readonly #calls = new Map<string, WaitingCall>();
  readonly #waitingCalls = new Quota(CALLS);
  /** The number of the last start for each sender, source and network. The one with the lowest number is next. */
  readonly #lastStarts = new LruCache<string, number>({ maxEntries: 3 * MAX_COUNTED_SENDERS });
  #starts = 0;
  /** Tasks that end with their program. */
  readonly #work = new Set<Promise<void>>();
  #hooks: readonly HookRow[];
  #dispatch: RepeatingTask | null = null;
  #isStopping = false;

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
  }

  async start(): Promise<void> {
    const { store, clock } = this.#deps;
    const running = store.running();
    for (const delivery of running) this.#continue(delivery);
    await this.#clearFolders(new Set(running.map((delivery) => this.#dirOf(delivery))));
    const onError = (error: unknown): void => this.#log.error({ error }, 'programs of hooks could not be started');
    this.#dispatch = every(clock, { firstMs: 0, periodMs: UNTIL_REQUESTED, onError }, () => this.#startPrograms());
  }

  /** Stops the programs: SIGTERM, then SIGKILL. Their deliveries start again with the next daemon. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#dispatch?.stop();
    for (const turn of this.#turns.values()) this.#end(turn);
    await Promise.all(this.#work);
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
        message: `This node can have at most ${MAX_HOOKS} hooks. Remove one with "svc hooks remove".`,
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
    this.#dispatch?.soon();
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
    this.#dispatch?.soon();
    return this.delivery(hook, id);
  }

  /** Deletes a delivery that does not run. The item is not changed. @throws SvcError `not_found`, `wrong_state` */
  drop(hook: string, id: number): void {
    this.delivery(hook, id);
    if (!this.#deps.store.drop(id))
      throw new SvcError('wrong_state', { message: 'The program of this delivery runs. Wait until it exits.' });
    this.#dispatch?.soon();
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
    if (isNew) this.#dispatch?.soon();
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
      this.#dispatch?.soon();
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
    if (turn === undefined) return;
    turn.ended ??= 'gone';
    this.#end(turn);
  }

  #reload(): void {
    this.#hooks = this.#deps.store.list();
    for (const { hook, reject } of this.#calls.values())
      if (!this.#hooks.some(({ id }) => id === hook)) reject(new SvcError('no_inbound'));
    for (const turn of this.#turns.values()) {
      if (this.#hooks.some(({ id }) => id === turn.delivery.hook)) continue;
      turn.ended = 'removed';
      this.#end(turn);
    }
  }

  /** Starts the programs that may start now. Returns the milliseconds until the next one may. */
  #startPrograms(): number {
    const { store } = this.#deps;
    if (this.#turns.size >= HOOKS_PARALLEL) return UNTIL_REQUESTED;
    const heads = store.heads(MAX_HEADS);
    for (;;) {
      let nextMs = UNTIL_REQUESTED;
      const started = this.#inTurn(heads).find((delivery) => {
        const waitMs = this.#startOne(delivery);
        nextMs = Math.min(nextMs, waitMs);
        return waitMs === 0;
      });
      if (started === undefined) return nextMs;
      heads.splice(heads.indexOf(started), 1);
    }
  }

  /** Starts the program of a delivery. Returns 0, or the milliseconds until it may start. */
  #startOne(delivery: DeliveryRow): number {
    const { clock } = this.#deps;
    const hook = this.#hooks.find(({ id }) => id === delivery.hook);
    if (hook === undefined || !this.#hasRoom(delivery, hook)) return UNTIL_REQUESTED;
    const now = clock.now();
    const waitMs = isWaiting(delivery.dueAt, now, RETRY.maxMs) ? delivery.dueAt - now : this.#spendStart(delivery);
    if (waitMs <= 0) this.#begin(delivery, hook);
    return Math.max(0, waitMs);
  }

  /** Known senders first. The network, then the source, then the sender whose last start was longest ago is next. */
  #inTurn(heads: readonly DeliveryRow[]): DeliveryRow[] {
    const turn = new Map(heads.map((one) => [one, namesOf(one).map((name) => this.#lastStarts.peek(name) ?? 0)]));
    return heads.toSorted((a, b) => {
      if (a.known !== b.known) return a.known ? -1 : 1;
      const [mine = [], others = []] = [turn.get(a), turn.get(b)];
      const level = mine.findIndex((start, i) => start !== others[i]);
      return level < 0 ? 0 : (mine[level] ?? 0) - (others[level] ?? 0);
    });
  }

  #hasRoom(delivery: DeliveryRow, hook: HookRow): boolean {
    const turns = [...this.#turns.values()].map(({ delivery: running }) => running);
    return (
      this.#programs.fullLevel(senderOf(delivery)) === null &&
      turns.filter((one) => one.hook === hook.id).length < hook.parallel &&
      turns.every((one) => one.conversation !== delivery.conversation)
    );
  }

  /** Counts a start for its sender. Returns the milliseconds until the sender may start a program; 0: now. */
  #spendStart(delivery: DeliveryRow): number {
    const quota = delivery.known ? this.#known : this.#strangers;
    const holder = senderOf(delivery);
    if (!quota.take(holder)) return quota.retryAfterMs(holder);
    this.#starts++;
    for (const name of namesOf(delivery)) this.#lastStarts.set(name, this.#starts);
    return 0;
  }

  #begin(waiting: DeliveryRow, hook: HookRow): void {
    const { store, clock } = this.#deps;
    const delivery = store.commit(() => store.begin(waiting.id, clock.now()), 'soon');
    if (delivery === null) return;
    const turn: Turn = { delivery, run: null, ended: null };
    this.#perform(turn, async () => {
      const problem = await this.#startProgram(turn, hook);
      if (problem !== null) await this.#settle(turn, problem);
      else if (turn.run !== null) await this.#finish(turn, turn.run, hook.timeoutMs);
    });
  }

  /** Continues with a program of an earlier daemon: waits for its end, or stores its result. */
  #continue(delivery: DeliveryRow): void {
    const { clock } = this.#deps;
    const hook = this.#hooks.find(({ id }) => id === delivery.hook);
    const turn: Turn = { delivery, run: ProgramRun.takeOver(this.#dirOf(delivery), clock), ended: null };
    this.#perform(turn, async () => {
      if (turn.run !== null && hook !== undefined) {
        const spent = Math.max(0, clock.now() - (delivery.startedAt ?? 0));
        return this.#finish(turn, turn.run, Math.max(0, hook.timeoutMs - spent));
      }
      const result = await resultOf(this.#dirOf(delivery));
      await this.#settle(turn, this.#judge(turn, result, true));
    });
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

  /** Runs the work of a turn. Its place is free afterwards. */
  #perform(turn: Turn, work: () => Promise<void>): void {
    const { id } = turn.delivery;
    this.#turns.set(id, turn);
    // The program of an earlier daemon may find no room; it runs anyway.
    const share = this.#programs.take(senderOf(turn.delivery));
    const done = work()
      .catch((error: unknown) => this.#log.error({ error, delivery: id }, 'a delivery failed'))
      .then(() => {
        this.#turns.delete(id);
        share?.release();
        this.#work.delete(done);
        this.#dispatch?.soon();
      });
    this.#work.add(done);
    detach(done);
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
      if (this.#isStopping || turn.ended !== null) this.#end(turn);
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
    return { ...failed, ...result, state: 'waiting', failed: false, begun: false };
  }

  async #finish(turn: Turn, run: RunningProgram, timeoutMs: number): Promise<void> {
    const timer = this.#deps.clock.after(timeoutMs, () => {
      turn.ended ??= 'timeout';
      this.#end(turn);
    });
    await run.ended;
    timer.cancel();
    await this.#settle(turn, this.#judge(turn, await resultOf(this.#dirOf(turn.delivery)), false));
  }

  /** Ends a program: SIGTERM, then SIGKILL. */
  #end({ run }: Turn): void {
    if (run === null) return;
    run.signal('TERM');
    const timer = this.#deps.clock.after(GRACE_MS, () => run.signal('KILL'));
    detach(run.ended.then(() => timer.cancel()));
  }

  /** @param wasAway no daemon ran when the program ended */
  #judge({ delivery, ended }: Turn, result: ProgramResult, wasAway: boolean): DeliveryResult {
    const { exitCode, output } = result;
    if (exitCode === 0) return { ...ENDED, state: 'done', exitCode, output };
    const isInterrupted = this.#isStopping || (wasAway && exitCode === null);
    if (isInterrupted && ended === null && !isCall(delivery) && delivery.attempts < MAX_HOOK_STARTS) {
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
    const dueAt = this.#deps.clock.now() + backoff(RETRY, failures + 1);
    return { state: isLast ? 'dead' : 'waiting', dueAt, failed: true, exitCode, problem, output };
  }

  /** Stores the result of a run, and acknowledges the item if it was handled. */
  async #settle(turn: Turn, result: DeliveryResult): Promise<void> {
    const { store, clock, events } = this.#deps;
    const { delivery } = turn;
    const hook = store.get(delivery.hook);
    await this.#answerCaller(turn, result);
    try {
      await store.commit(() => {
        store.settle(delivery, result, clock.now());
        if (hook === null) return;
        if (result.state === 'done' && result.exitCode === 0) this.#acknowledge(hook, delivery);
        const data = { hook_id: hook.id, delivery_id: delivery.id };
        if (result.state === 'dead' && !isCall(delivery))
          events.emit(hook.aid, 'hook.dead', data, causeOf(delivery.peer, delivery.known));
      }, 'now');
    } catch (error) {
      this.#log.error({ error, delivery: delivery.id }, 'the result of a program could not be stored, svcd will retry');
      clock.after(STORE_AGAIN_MS, () => {
        if (!this.#isStopping) this.#continue(delivery);
      });
      return;
    }
    if (result.state === 'dead')
      this.#log.warn({ hook: delivery.hook, delivery: delivery.id }, 'a delivery failed for the last time');
    await rm(this.#dirOf(delivery), { recursive: true, force: true });
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
    else if (ended !== null || this.#isStopping) waiting.reject(new SvcError('inbound_unreachable'));
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
