/** Hooks and their deliveries. Times are Unix milliseconds. */
import {
  DELIVERY_STATES,
  type DeliveryState,
  HOOK_KINDS,
  MAX_HOOK_DEAD,
  MAX_HOOK_DONE,
  MAX_HOOK_WAITING,
  MAX_HOOK_WAITING_OF_STRANGERS,
  MAX_HOOK_WAITING_PER_KNOWN,
  MAX_HOOK_WAITING_PER_NETWORK,
  MAX_HOOK_WAITING_PER_SOURCE,
  MAX_HOOK_WAITING_PER_STRANGER,
} from '../domain/hooks.ts';
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { sourceGroupOf, THIS_MACHINE } from '../quota.ts';
import { type FullLevel, holderToEvict, type RowHolder } from '../tally.ts';
import { dueRows } from './due-rows.ts';
import { integerOf, textOf, wordOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, aids, flag, integer, nullable, type RowOf, Table, text, texts, word } from './table.ts';

const HOOK = new Table('hooks', {
  id: text,
  aid,
  kind: word(HOOK_KINDS),
  /** The program and its arguments. */
  command: texts,
  /** The command is one text for a shell. */
  shell: flag,
  folder: text,
  /** Empty for all senders. */
  senders: aids,
  /** Only senders that the owner knows. */
  onlyKnown: flag,
  parallel: integer,
  timeoutMs: integer,
  paused: flag,
  /** Items that found no room. */
  skipped: integer,
  createdAt: integer,
});

const DELIVERY = new Table('hook_deliveries', {
  /** Increases with every delivery. */
  id: integer,
  hook: text,
  key: text,
  ref: text,
  peer: aid,
  known: flag,
  /** Source and network of a stranger, see `sourceGroupOf`; empty for known senders. */
  source: text,
  network: text,
  conversation: text,
  state: word(DELIVERY_STATES),
  at: integer,
  dueAt: integer,
  /** Number of starts, and of failed runs. */
  attempts: integer,
  failures: integer,
  startedAt: nullable(integer),
  endedAt: nullable(integer),
  exitCode: nullable(integer),
  problem: text,
  output: text,
});

export type HookRow = RowOf<typeof HOOK>;
export type NewHook = Omit<HookRow, 'paused' | 'skipped'>;
export type DeliveryRow = RowOf<typeof DELIVERY>;

/** An item that arrived for a hook. */
export interface NewDelivery {
  readonly hook: string;
  /** The same for every attempt, and for no other item. */
  readonly key: string;
  /** Names the item, in the form of its kind. */
  readonly ref: string;
  readonly peer: Aid;
  readonly known: boolean;
  /** Address from which the sender last came; null if it is unknown. */
  readonly address: string | null;
  /** Deliveries of one conversation run in sequence. */
  readonly conversation: string;
}

/** The result of a run. */
export interface DeliveryResult {
  readonly state: Exclude<DeliveryState, 'running'>;
  /** 0 unless it waits. */
  readonly dueAt: number;
  readonly failed: boolean;
  /** False if no program was started, so that the attempt does not count. Default: true. */
  readonly begun?: boolean;
  readonly exitCode: number | null;
  /** Why it did not succeed; empty otherwise. */
  readonly problem: string;
  readonly output: string;
}

export interface DeliveryCounts {
  readonly waiting: number;
  readonly running: number;
  readonly done: number;
  readonly gone: number;
  readonly dead: number;
}

export const NO_COUNTS: DeliveryCounts = { waiting: 0, running: 0, done: 0, gone: 0, dead: 0 };

export class HookStore {
  readonly #store: Store;
  /** See `Store.commit`. */
  readonly commit: Store['commit'];
  /** Deliveries to start or to continue. The key is the hook and the conversation. */
  readonly open: DueTable<DeliveryRow>;

  constructor(store: Store) {
    this.#store = store;
    this.commit = store.commit.bind(store);
    this.open = {
      ...dueRows(
        store,
        { table: 'hook_deliveries', dueAt: 'due_at', id: 'CAST(id AS TEXT)', key: "hook || ' ' || conversation" },
        DELIVERY.read,
        ({ id }, at) =>
          store.run`UPDATE hook_deliveries SET due_at = ${at} WHERE id = ${id} AND state IN ('waiting', 'running')`,
      ),
      // Each read sorts all that waits, so one is all that a search for work gets.
      due: (now, limit, except) =>
        (except.length > 0
          ? []
          : [...this.running().filter(({ dueAt }) => dueAt <= now), ...this.#heads(now, limit)]
        ).map((item) => {
          const { id, hook, conversation, failures } = item;
          return { id: String(id), key: `${hook} ${conversation}`, attempts: failures, item };
        }),
    };
  }

  add(hook: NewHook): void {
    HOOK.insert(this.#store, hook);
  }

  get(id: string): HookRow | null {
    return HOOK.one(this.#store)`WHERE id = ${id}`;
  }

  list(): HookRow[] {
    return HOOK.all(this.#store)`ORDER BY created_at, id`;
  }

  /** Deletes a hook with its deliveries. False if there is none. */
  delete(id: string): boolean {
    return this.#store.run`DELETE FROM hooks WHERE id = ${id}` > 0;
  }

  /** False if the hook does not exist. */
  setPaused(id: string, paused: boolean): boolean {
    return this.#store.run`UPDATE hooks SET paused = ${Number(paused)} WHERE id = ${id}` > 0;
  }

  /**
   * Stores a delivery once per key. False if its sender has no room: the item is only counted. If the queue is full, the
   * newest delivery of the stranger with the most deliveries is evicted and counted.
   */
  deliver(delivery: NewDelivery, now: number): boolean {
    const { hook, key, peer, known, address } = delivery;
    // The source of a sender without a known address is its name.
    const { source, network } = known ? { source: '', network: '' } : sourceGroupOf(address ?? peer);
    return this.#store.transaction(() => {
      if (this.#has(hook, key)) return true;
      if (!this.#makeRoom(hook, known, { network, source, key: peer })) {
        this.#skip(hook);
        return false;
      }
      DELIVERY.insert(this.#store, { ...delivery, source, network, state: 'waiting', at: now, dueAt: now });
      return true;
    });
  }

  #has(hook: string, key: string): boolean {
    return this.#store.one`SELECT 1 FROM hook_deliveries WHERE hook = ${hook} AND key = ${key}` !== undefined;
  }

  #skip(hook: string): void {
    this.#store.run`UPDATE hooks SET skipped = skipped + 1 WHERE id = ${hook}`;
  }

  #makeRoom(hook: string, known: boolean, sender: RowHolder): boolean {
    const { network, source, key: peer } = sender;
    // The first count alone refuses a flood of one sender, and reads few rows.
    const ofSender = this.#store.one`
      SELECT count(*) AS n FROM hook_deliveries WHERE hook = ${hook} AND state = 'waiting' AND known = ${Number(known)}
        AND network = ${network} AND source = ${source} AND peer = ${peer}`;
    if (integerOf(ofSender, 'n') >= (known ? MAX_HOOK_WAITING_PER_KNOWN : MAX_HOOK_WAITING_PER_STRANGER)) return false;
    const counts = this.#store.one`
      SELECT count(*) AS n, coalesce(sum(known = 0), 0) AS strangers,
        coalesce(sum(network = ${network}), 0) AS in_network,
        coalesce(sum(network = ${network} AND source = ${source}), 0) AS at_source
      FROM hook_deliveries WHERE hook = ${hook} AND state = 'waiting'`;
    const isFull = integerOf(counts, 'n') >= MAX_HOOK_WAITING;
    if (known) return !isFull || this.#evict(hook, null, 'total');
    if (network !== THIS_MACHINE) {
      if (integerOf(counts, 'at_source') >= MAX_HOOK_WAITING_PER_SOURCE) return this.#evict(hook, sender, 'source');
      if (integerOf(counts, 'in_network') >= MAX_HOOK_WAITING_PER_NETWORK) return this.#evict(hook, sender, 'network');
    }
    const areFull = integerOf(counts, 'strangers') >= MAX_HOOK_WAITING_OF_STRANGERS;
    return !(isFull || areFull) || this.#evict(hook, sender, 'total');
  }

  /** Evicts the newest delivery of the largest stranger. False if there is none. */
  #evict(hook: string, newcomer: RowHolder | null, full: FullLevel): boolean {
    const holders = this.#store.all`
      SELECT network, source, peer, count(*) AS n, max(id) AS newest FROM hook_deliveries
      WHERE hook = ${hook} AND state = 'waiting' AND known = 0 GROUP BY network, source, peer`.map((row) => ({
      network: textOf(row, 'network'),
      source: textOf(row, 'source'),
      key: textOf(row, 'peer'),
      count: integerOf(row, 'n'),
      newest: integerOf(row, 'newest'),
    }));
    const found = holderToEvict(holders, newcomer, full);
    if (found === null) return false;
    this.#store.run`DELETE FROM hook_deliveries WHERE id = ${found.newest}`;
    this.#skip(hook);
    return true;
  }

  /** Deletes a delivery that waits, by its key. */
  withdraw(hook: string, key: string): void {
    this.#store.run`DELETE FROM hook_deliveries WHERE hook = ${hook} AND key = ${key} AND state = 'waiting'`;
  }

  /**
   * The next delivery of each conversation whose hook has room and is not paused, if it is due: deliveries of known
   * senders first. Later deliveries of a conversation wait. If there are more than `limit`, networks, their sources and
   * their senders have equal shares.
   */
  #heads(now: number, limit: number): DeliveryRow[] {
    // Thousands may wait, each with an output. Only the chosen ones are read as a whole.
    return this.#store.all`
      SELECT d.* FROM (
        SELECT id, row_number() OVER (PARTITION BY known, network ORDER BY in_source, due_at, id) AS turn FROM (
          SELECT id, known, network, due_at,
            row_number() OVER (PARTITION BY known, network, source ORDER BY of_sender, due_at, id) AS in_source
          FROM (
            SELECT d.id, d.known, d.network, d.source, d.due_at,
              row_number() OVER (PARTITION BY d.known, d.peer ORDER BY d.due_at, d.id) AS of_sender
            FROM hook_deliveries AS d
            JOIN (SELECT min(id) AS id FROM hook_deliveries WHERE state IN ('waiting', 'running')
              GROUP BY hook, conversation) AS head ON head.id = d.id
            JOIN hooks AS h ON h.id = d.hook
            WHERE d.state = 'waiting' AND h.paused = 0 AND d.due_at <= ${now} AND h.parallel > (
                SELECT count(*) FROM hook_deliveries WHERE hook = h.id AND state = 'running')
          )
        ) ORDER BY known DESC, turn, due_at, id LIMIT ${limit}
      ) AS next JOIN hook_deliveries AS d ON d.id = next.id
      ORDER BY d.known DESC, next.turn, d.due_at, d.id`.map(DELIVERY.read);
  }

  /** Deliveries whose program was started and has not ended, as far as is known. */
  running(): DeliveryRow[] {
    return DELIVERY.all(this.#store)`WHERE state = 'running' ORDER BY id`;
  }

  /** True if a hook must still handle an item, by the key of its delivery. A dead delivery can be retried. */
  isOpen(hook: string, key: string): boolean {
    return (
      this.#store.one`
        SELECT 1 FROM hook_deliveries WHERE hook = ${hook} AND key = ${key}
          AND state IN ('waiting', 'running', 'dead')` !== undefined
    );
  }

  delivery(id: number): DeliveryRow | null {
    return DELIVERY.one(this.#store)`WHERE id = ${id}`;
  }

  /** Deliveries of a hook before an ID, newest first: in one state or all. */
  page(hook: string, state: DeliveryState | undefined, beforeId: number, limit: number): DeliveryRow[] {
    const only = state ?? null;
    return DELIVERY.all(this.#store)`
      WHERE hook = ${hook} AND id < ${beforeId} AND (${only} IS NULL OR state = ${only})
      ORDER BY id DESC LIMIT ${limit}`;
  }

  /** Deliveries of each hook by state. */
  counts(): Map<string, DeliveryCounts> {
    const counts = new Map<string, DeliveryCounts>();
    for (const row of this.#store.all`
      SELECT hook, state, count(*) AS n FROM hook_deliveries GROUP BY hook, state`) {
      const hook = textOf(row, 'hook');
      counts.set(hook, {
        ...(counts.get(hook) ?? NO_COUNTS),
        [wordOf(row, 'state', DELIVERY_STATES)]: integerOf(row, 'n'),
      });
    }
    return counts;
  }

  /** Marks a waiting delivery as running. Null if it no longer waits. */
  begin(id: number, now: number): DeliveryRow | null {
    const row = this.#store.one`
      UPDATE hook_deliveries SET state = 'running', attempts = attempts + 1, started_at = ${now}, ended_at = NULL,
        exit_code = NULL, problem = '', output = ''
      WHERE id = ${id} AND state = 'waiting' RETURNING *`;
    return row === undefined ? null : DELIVERY.read(row);
  }

  /** Ends a run, or a delivery without one. */
  settle({ id, hook }: Pick<DeliveryRow, 'id' | 'hook'>, result: DeliveryResult, now: number): void {
    const { state, dueAt, failed, begun = true, exitCode, problem, output } = result;
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE hook_deliveries SET state = ${state}, attempts = attempts - ${Number(state === 'gone' || !begun)},
          due_at = ${dueAt}, failures = failures + ${Number(failed)},
          ended_at = ${now}, exit_code = ${exitCode}, problem = ${problem}, output = ${output}
        WHERE id = ${id} AND state IN ('waiting', 'running')`;
      if (state === 'done' || state === 'gone') this.#deleteOldest(hook, state, MAX_HOOK_DONE);
      if (state === 'dead') this.#deleteOldest(hook, state, MAX_HOOK_DEAD);
    });
  }

  /** Deletes excess ended deliveries: of the network and source of strangers with the most first, then the oldest. */
  #deleteOldest(hook: string, state: 'done' | 'gone' | 'dead', max: number): void {
    this.#store.run`
      DELETE FROM hook_deliveries WHERE id IN (
        SELECT id FROM (
          SELECT *, row_number() OVER (PARTITION BY known, network ORDER BY in_source, id DESC) AS in_network FROM (
            SELECT id, known, network, row_number() OVER (PARTITION BY known, network, source ORDER BY id DESC) AS in_source
            FROM hook_deliveries WHERE hook = ${hook} AND state = ${state}
          )
        ) ORDER BY known DESC, in_network, id DESC LIMIT -1 OFFSET ${max})`;
  }

  /** Makes a dead delivery wait again, with all its attempts. False if it is not dead. */
  retry(id: number, now: number): boolean {
    return (
      this.#store.run`
        UPDATE hook_deliveries SET state = 'waiting', due_at = ${now}, attempts = 0, failures = 0
        WHERE id = ${id} AND state = 'dead'` > 0
    );
  }

  /** Deletes a delivery that does not run. False if it runs or does not exist. */
  drop(id: number): boolean {
    return this.#store.run`DELETE FROM hook_deliveries WHERE id = ${id} AND state <> 'running'` > 0;
  }
}
