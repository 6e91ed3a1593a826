/** The audit trail of remote administration on disk, each kind of entry in a room of its own. */
import { aidFromRow, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

const KINDS = ['read', 'write', 'refused'] as const;
export type AuditKind = (typeof KINDS)[number];

/** Entries that are kept of each kind; the oldest go first. */
const MAX_READS = 3_000;
const MAX_WRITES = 6_000;
const MAX_REFUSALS = 1_000;
/** Of these, refusals of callers that the owner did not name. */
export const MAX_REFUSALS_OF_STRANGERS = 750;
/** Room of each kind. */
const ROOM: Readonly<Record<AuditKind, number>> = { read: MAX_READS, write: MAX_WRITES, refused: MAX_REFUSALS };

/** Who came. */
export type AuditCaller = Pick<AuditEntry, 'caller' | 'nodeKey' | 'address'>;

export type AuditEntry = Readonly<ReturnType<typeof entryOf>>;

/** Stands between the path and each tool in the column of the path: no path of HTTP has a blank in it. */
const TOOL_SEPARATOR = ' ';

function entryOf(row: Row) {
  const [path = null, ...tools] = orNull(textOf, row, 'path')?.split(TOOL_SEPARATOR) ?? [];
  return {
    id: integerOf(row, 'id'),
    kind: wordOf(row, 'kind', KINDS),
    /** Milliseconds since the Unix epoch. */
    at: integerOf(row, 'at'),
    caller: aidFromRow(row, 'caller'),
    /** Key of the caller's node in hex; null on this very daemon. */
    nodeKey: orNull(textOf, row, 'node_key'),
    address: orNull(textOf, row, 'address'),
    method: orNull(textOf, row, 'method'),
    path,
    /** Names of the tools that the request called, never what they were given. */
    tools,
    /** Null while the request runs, and where it was never answered. */
    status: orNull(integerOf, row, 'status'),
    /** Why the caller was refused; null for the other kinds. */
    reason: orNull(textOf, row, 'reason'),
  };
}

export class AuditStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Adds an entry and forgets the oldest of its kind where there are too many. Returns its id.
   * @param named the owner named the caller: refusals of strangers do not push out this one
   */
  add(entry: Omit<AuditEntry, 'id'>, named = false): number {
    const { kind, at, caller, nodeKey, address, method, tools, status, reason } = entry;
    const path = entry.path === null ? null : [entry.path, ...tools].join(TOOL_SEPARATOR);
    return this.#store.transaction(() => {
      const row = this.#store.one`
        INSERT INTO admin_audit (kind, at, caller, node_key, address, method, path, status, reason, named)
        VALUES (${kind}, ${at}, ${caller}, ${nodeKey}, ${address}, ${method}, ${path}, ${status}, ${reason}, ${Number(named)})
        RETURNING id`;
      this.#store.run`
        DELETE FROM admin_audit WHERE kind = ${kind} AND id <=
          (SELECT id FROM admin_audit WHERE kind = ${kind} ORDER BY id DESC LIMIT 1 OFFSET ${ROOM[kind]})`;
      if (kind === 'refused' && !named)
        this.#store.run`
          DELETE FROM admin_audit WHERE kind = 'refused' AND named = 0 AND id <=
            (SELECT id FROM admin_audit WHERE kind = 'refused' AND named = 0
             ORDER BY id DESC LIMIT 1 OFFSET ${MAX_REFUSALS_OF_STRANGERS})`;
      return integerOf(row, 'id');
    });
  }

  /** Adds the name of a tool that a request calls. */
  addTool(id: number, name: string): void {
    this.#store.run`UPDATE admin_audit SET path = path || ${TOOL_SEPARATOR + name} WHERE id = ${id}`;
  }

  /** Says how a request was answered. */
  setStatus(id: number, status: number): void {
    this.#store.run`UPDATE admin_audit SET status = ${status} WHERE id = ${id}`;
  }

  /** The newest request that was let in. */
  lastRequest(): AuditEntry | null {
    return this.#first("SELECT * FROM admin_audit WHERE kind IN ('read', 'write') ORDER BY id DESC LIMIT 1");
  }

  lastRefusal(): AuditEntry | null {
    return this.#first("SELECT * FROM admin_audit WHERE kind = 'refused' ORDER BY id DESC LIMIT 1");
  }

  /** Entries from the newest on; `before` goes on behind the entry of that id. */
  page(limit: number, before: number = Number.MAX_SAFE_INTEGER): AuditEntry[] {
    return this.#store.all`SELECT * FROM admin_audit WHERE id < ${before} ORDER BY id DESC LIMIT ${limit}`.map(entryOf);
  }

  #first(sql: string): AuditEntry | null {
    const row = this.#store.one(sql);
    return row === undefined ? null : entryOf(row);
  }
}
