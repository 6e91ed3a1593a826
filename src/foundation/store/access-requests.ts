/** Requests of callers for access, and exchanges that the owner allowed once. Times are Unix milliseconds. */
import { ASK_KINDS, type AskKind } from '../domain/access.ts';
import type { Aid } from '../identity/aid.ts';
import { toolsOf } from './access.ts';
import { aidFromRow, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type AccessRequestRow = Readonly<ReturnType<typeof requestOf>>;

function requestOf(row: Row) {
  return {
    id: textOf(row, 'id'),
    called: aidFromRow(row, 'called'),
    caller: aidFromRow(row, 'caller'),
    kind: wordOf(row, 'kind', ASK_KINDS),
    /** A text of the caller, such as a method and a path. */
    asked: textOf(row, 'asked'),
    /** The MCP tool that the caller named; null if none. */
    tool: orNull(textOf, row, 'tool'),
    note: textOf(row, 'note'),
    /** Node of the caller, as text. */
    node: textOf(row, 'node'),
    /** Address of that node; null for a caller on this machine. */
    source: orNull(textOf, row, 'source'),
    firstAt: integerOf(row, 'first_at'),
    lastAt: integerOf(row, 'last_at'),
    count: integerOf(row, 'count'),
    /** The owner allowed one exchange, which has not begun. */
    isOnce: integerOf(row, 'once') === 1,
    /** The MCP tools of that exchange; null without a limit. */
    tools: orNull(toolsOf, row, 'tools'),
    expiresAt: integerOf(row, 'expires_at'),
  };
}

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
    return this.#store.all`SELECT * FROM access_requests ORDER BY expires_at, id`.map(requestOf);
  }

  /** The rows of one called agent. */
  listOf(called: Aid): AccessRequestRow[] {
    return this.#store.all`SELECT * FROM access_requests WHERE called = ${called}`.map(requestOf);
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
    return oneOf(this.#store.one`SELECT * FROM access_requests WHERE id = ${id}`);
  }

  /** The request of a caller that waits for the owner. */
  pending(called: Aid, caller: Aid, kind: AskKind): AccessRequestRow | null {
    return oneOf(this.#store.one`
      SELECT * FROM access_requests WHERE called = ${called} AND caller = ${caller} AND kind = ${kind} AND once = 0`);
  }

  /** The exchanges that the owner allowed a caller once, in the order of their expiry. */
  allowed(called: Aid, caller: Aid, kind: AskKind): AccessRequestRow[] {
    return this.#store.all`
      SELECT * FROM access_requests WHERE called = ${called} AND caller = ${caller} AND kind = ${kind} AND once = 1
      ORDER BY expires_at, id`.map(requestOf);
  }

  add({ id, called, caller, kind, asked, tool, note, node, source, at, expiresAt }: AskedRequest): void {
    this.#store.run`
      INSERT INTO access_requests
        (id, called, caller, kind, asked, tool, note, node, source, first_at, last_at, count, expires_at)
      VALUES
        (${id}, ${called}, ${caller}, ${kind}, ${asked}, ${tool}, ${note}, ${node}, ${source}, ${at}, ${at}, 1,
         ${expiresAt})`;
  }

  /** The caller repeats its request with the same text. */
  repeat({ id, node, source, at, expiresAt }: Pick<AskedRequest, 'id' | 'node' | 'source' | 'at' | 'expiresAt'>): void {
    this.#store.run`
      UPDATE access_requests SET node = ${node}, source = ${source}, last_at = ${at}, count = count + 1,
        expires_at = ${expiresAt}
      WHERE id = ${id}`;
  }

  /** Turns a waiting request into one allowed exchange. It is on disk when this returns. False without such a request. */
  allowOnce(id: string, tools: readonly string[] | null, expiresAt: number): boolean {
    const names = tools === null ? null : JSON.stringify(tools);
    return this.#store.durableTransaction(
      () =>
        this.#store.run`
          UPDATE access_requests SET once = 1, tools = ${names}, expires_at = ${expiresAt} WHERE id = ${id}` > 0,
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

function oneOf(row: Row | undefined): AccessRequestRow | null {
  return row === undefined ? null : requestOf(row);
}
