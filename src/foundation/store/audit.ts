/** The audit trail of remote administration, with a separate limit for each kind of entry. */
import { aidFromRow, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

const KINDS = ['read', 'write', 'refused'] as const;
export type AuditKind = (typeof KINDS)[number];

/** Entries kept of each kind. The oldest are deleted first. */
const MAX_READS = 3_000;
const MAX_WRITES = 6_000;
const MAX_REFUSALS = 1_000;
/** Limit for refusals of callers that the owner did not name, as a part of all refusals. */
export const MAX_REFUSALS_OF_STRANGERS = 750;
const MAX_ENTRIES: Readonly<Record<AuditKind, number>> = { read: MAX_READS, write: MAX_WRITES, refused: MAX_REFUSALS };

/** The caller of a request. */
export type AuditCaller = Pick<AuditEntry, 'caller' | 'nodeKey' | 'address'>;

export type AuditEntry = Readonly<ReturnType<typeof entryOf>>;

/** Separates the path from each tool in the path column. A path in HTTP contains no blank. */
const TOOL_SEPARATOR = ' ';

function entryOf(row: Row) {
  const [path = null, ...tools] = orNull(textOf, row, 'path')?.split(TOOL_SEPARATOR) ?? [];
  return {
    id: integerOf(row, 'id'),
    kind: wordOf(row, 'kind', KINDS),
    /** Milliseconds since the Unix epoch. */
    at: integerOf(row, 'at'),
    caller: aidFromRow(row, 'caller'),
    /** Key of the caller's node in hex; null for callers on this node. */
    nodeKey: orNull(textOf, row, 'node_key'),
    address: orNull(textOf, row, 'address'),
    method: orNull(textOf, row, 'method'),
    path,
    /** Names of the tools that the request called, without their arguments. */
    tools,
    /** Null while the request runs, and if it was never answered. */
    status: orNull(integerOf, row, 'status'),
    /** Why the caller was rejected; null for other kinds. */
    reason: orNull(textOf, row, 'reason'),
  };
}

export class AuditStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Adds an entry and deletes the oldest excess entries of its kind. Returns its ID.
   * @param named the owner named the caller: refusals of strangers do not displace this entry
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
          (SELECT id FROM admin_audit WHERE kind = ${kind} ORDER BY id DESC LIMIT 1 OFFSET ${MAX_ENTRIES[kind]})`;
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

  /** Stores the status of the response. */
  setStatus(id: number, status: number): void {
    this.#store.run`UPDATE admin_audit SET status = ${status} WHERE id = ${id}`;
  }

  /** The latest accepted request. */
  lastRequest(): AuditEntry | null {
    return this.#first("SELECT * FROM admin_audit WHERE kind IN ('read', 'write') ORDER BY id DESC LIMIT 1");
  }

  lastRefusal(): AuditEntry | null {
    return this.#first("SELECT * FROM admin_audit WHERE kind = 'refused' ORDER BY id DESC LIMIT 1");
  }

  /** Entries from the newest to the oldest, before the entry with the ID `before`. */
  page(limit: number, before: number = Number.MAX_SAFE_INTEGER): AuditEntry[] {
    return this.#store.all`SELECT * FROM admin_audit WHERE id < ${before} ORDER BY id DESC LIMIT ${limit}`.map(entryOf);
  }

  #first(sql: string): AuditEntry | null {
    const row = this.#store.one(sql);
    return row === undefined ? null : entryOf(row);
  }
}
