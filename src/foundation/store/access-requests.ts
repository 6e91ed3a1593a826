/** Requests of callers for access, and exchanges that the owner allowed once. Times are Unix milliseconds. */
import { ASK_KINDS, type AskKind } from '../domain/access.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, integerOf, textOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, flag, integer, named, nullable, type RowOf, Table, text, texts, word } from './table.ts';

const REQUEST = new Table('access_requests', {
  id: text,
  called: aid,
  caller: aid,
  kind: word(ASK_KINDS),
  /** A text of the caller, such as a method and a path. */
  asked: text,
  /** The MCP tool that the caller named; null if none. */
  tool: nullable(text),
  note: text,
  /** The name that the caller gives itself; null without one. */
  name: nullable(text),
  /** Node of the caller, as text. */
  node: text,
  /** Address of that node; null for a caller on this machine. */
  source: nullable(text),
  firstAt: integer,
  lastAt: integer,
  count: integer,
  /** The owner allowed one exchange, which has not begun. */
  isOnce: named('once', flag),
  /** The MCP tools of that exchange; null without a limit. */
  tools: nullable(texts),
  expiresAt: integer,
});

export type AccessRequestRow = RowOf<typeof REQUEST>;

/** A request as it arrives. */
export type AskedRequest = Omit<AccessRequestRow, 'firstAt' | 'lastAt' | 'count' | 'isOnce' | 'tools'> & {
  readonly at: number;
};

export class AccessRequestStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** All rows in the order of their expiry. */
  list(): AccessRequestRow[] {
    return REQUEST.all(this.#store)`ORDER BY expires_at, id`;
  }

  /** The rows of one called agent. */
  listOf(called: Aid): AccessRequestRow[] {
    return REQUEST.all(this.#store)`WHERE called = ${called}`;
  }

  /** IDs of the rows that have expired. */
  expired(now: number): string[] {
    return this.#store.all`SELECT id FROM access_requests WHERE expires_at <= ${now}`.map((row) => textOf(row, 'id'));
  }

  /** Pending requests by called agent. */
  counts(): ReadonlyMap<Aid, number> {
    const rows = this.#store.all`SELECT called, count(*) AS n FROM access_requests WHERE once = 0 GROUP BY called`;
    return new Map(rows.map((row) => [aidFromRow(row, 'called'), integerOf(row, 'n')]));
  }

  get(id: string): AccessRequestRow | null {
    return REQUEST.one(this.#store)`WHERE id = ${id}`;
  }

  /** The request of a caller that waits for the owner. */
  pending(called: Aid, caller: Aid, kind: AskKind): AccessRequestRow | null {
    return REQUEST.one(this.#store)`WHERE called = ${called} AND caller = ${caller} AND kind = ${kind} AND once = 0`;
  }

  /** The exchanges that the owner allowed a caller once, in the order of their expiry. */
  allowed(called: Aid, caller: Aid, kind: AskKind): AccessRequestRow[] {
    return REQUEST.all(this.#store)`
      WHERE called = ${called} AND caller = ${caller} AND kind = ${kind} AND once = 1 ORDER BY expires_at, id`;
  }

  add({ at, ...request }: AskedRequest): void {
    REQUEST.insert(this.#store, { ...request, firstAt: at, lastAt: at, count: 1 });
  }

  /** The caller repeats its request with the same text. */
  repeat({
    id,
    name,
    node,
    source,
    at,
    expiresAt,
  }: Pick<AskedRequest, 'id' | 'name' | 'node' | 'source' | 'at' | 'expiresAt'>): void {
    this.#store.run`
      UPDATE access_requests SET name = ${name}, node = ${node}, source = ${source}, last_at = ${at}, count = count + 1,
        expires_at = ${expiresAt}
      WHERE id = ${id}`;
  }

  /** Turns a waiting request into one allowed exchange. It is on disk when this returns. False without such a request. */
  allowOnce(id: string, tools: readonly string[] | null, expiresAt: number): boolean {
    return this.#store.durableTransaction(
      () => REQUEST.update(this.#store, { isOnce: true, tools, expiresAt }, 'WHERE id = ?', id) > 0,
    );
  }

  /** Deletes an allowed exchange as it begins. It is on disk when this returns. False without such a row. */
  use(id: string): boolean {
    return this.#store.durableTransaction(
      () => this.#store.run`DELETE FROM access_requests WHERE id = ${id} AND once = 1` > 0,
    );
  }

  delete(id: string): void {
    this.#store.run`DELETE FROM access_requests WHERE id = ${id}`;
  }
}
