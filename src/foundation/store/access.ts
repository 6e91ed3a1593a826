/** Stored access lists: one row for each subject with changes, one for each entry. */
import { ACCESS_POLICIES, type AccessListName, type AccessPolicy } from '../domain/access.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

interface EntryBase {
  readonly id: string;
  /** Milliseconds since the Unix epoch. */
  readonly createdAt: number;
}

export interface AidEntry extends EntryBase {
  readonly aid: Aid;
  readonly label: string | null;
  /** Milliseconds since the Unix epoch; null means never. */
  readonly expiresAt: number | null;
  /** The MCP tools that the entry is limited to; null means no limit. Only in allow lists. */
  readonly tools: readonly string[] | null;
}

/** A caller that a temporary service allows while it is bound. */
export interface ServiceCaller extends EntryBase {
  readonly aid: Aid;
  /** The address of the service. */
  readonly service: string;
  /** The MCP tools that the caller is limited to; null means no limit. */
  readonly tools: readonly string[] | null;
}

export interface SecretEntry extends EntryBase {
  /** scrypt of the secret with the subject's salt. */
  readonly secretHash: Uint8Array;
  readonly label: string | null;
  readonly expiresAt: number | null;
}

export interface StoredAccess {
  readonly policy: AccessPolicy;
  /** The policy that returns when the temporary service ends; null if the policy is permanent. */
  readonly policyBefore: AccessPolicy | null;
  readonly salt: Uint8Array;
  readonly allow: readonly (AidEntry | SecretEntry)[];
  readonly deny: readonly AidEntry[];
  /** Of all temporary services, also of those that another one replaced. */
  readonly serviceCallers: readonly ServiceCaller[];
}

/** The tool names in a JSON column. */
export function toolsOf(row: Row | undefined, column: string): readonly string[] {
  const names: unknown = JSON.parse(textOf(row, column));
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

function entryOf(row: Row): AidEntry | SecretEntry {
  const common = {
    id: textOf(row, 'id'),
    label: orNull(textOf, row, 'label'),
    createdAt: integerOf(row, 'created_at'),
    expiresAt: orNull(integerOf, row, 'expires_at'),
  };
  const secretHash = orNull(blobOf, row, 'secret_hash');
  if (secretHash !== null) return { ...common, secretHash };
  return { ...common, aid: aidFromRow(row, 'aid'), tools: orNull(toolsOf, row, 'tools') };
}

function serviceCallerOf(row: Row): ServiceCaller {
  return {
    id: textOf(row, 'id'),
    aid: aidFromRow(row, 'aid'),
    service: textOf(row, 'service'),
    tools: orNull(toolsOf, row, 'tools'),
    createdAt: integerOf(row, 'created_at'),
  };
}

function isAidEntry(entry: AidEntry | SecretEntry): entry is AidEntry {
  return 'aid' in entry;
}

/** The columns of a policy. */
function columnsOf(policy: AccessPolicy): [policy: string, askOwner: number] {
  return policy === 'ask' ? ['deny', 1] : [policy, 0];
}

export class AccessRepository {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The list of a subject; null if it was never changed. */
  load(subject: string): StoredAccess | null {
    const row = this.#store.one(
      'SELECT policy, ask_owner, policy_before, salt FROM access_subjects WHERE subject = ?',
      subject,
    );
    if (row === undefined) return null;
    return {
      policy: integerOf(row, 'ask_owner') === 1 ? 'ask' : wordOf(row, 'policy', ACCESS_POLICIES),
      policyBefore: row['policy_before'] === null ? null : wordOf(row, 'policy_before', ACCESS_POLICIES),
      salt: blobOf(row, 'salt'),
      allow: this.#entries(subject, 'allow'),
      deny: this.#entries(subject, 'deny').filter(isAidEntry),
      serviceCallers: this.#store.all`
        SELECT * FROM service_callers WHERE subject = ${subject} ORDER BY created_at, id`.map(serviceCallerOf),
    };
  }

  /** The given subjects with changed lists. */
  changed(subjects: readonly string[]): Set<string> {
    const rows = this.#store.all`
      SELECT subject FROM access_subjects WHERE subject IN (SELECT value FROM json_each(${JSON.stringify(subjects)}))`;
    return new Set(rows.map((row) => textOf(row, 'subject')));
  }

  /** In the order of their creation. */
  #entries(subject: string, list: AccessListName): (AidEntry | SecretEntry)[] {
    const rows = this.#store.all`
      SELECT * FROM access_entries WHERE subject = ${subject} AND list = ${list} ORDER BY created_at, id`;
    return rows.map(entryOf);
  }

  /** Creates the row of a subject if there is none. Returns the stored salt. */
  create(subject: string, policy: AccessPolicy, salt: Uint8Array): Uint8Array {
    const row = this.#store.one('SELECT salt FROM access_subjects WHERE subject = ?', subject);
    if (row !== undefined) return blobOf(row, 'salt');
    this.#store.durableTransaction(() =>
      this.#store.run(
        'INSERT INTO access_subjects (subject, policy, ask_owner, salt) VALUES (?, ?, ?, ?)',
        subject,
        ...columnsOf(policy),
        salt,
      ),
    );
    return salt;
  }

  /** @param before the policy that returns when the temporary service ends; null if the new one is permanent */
  setPolicy(subject: string, policy: AccessPolicy, before: AccessPolicy | null): void {
    this.#store.durableTransaction(() =>
      this.#store.run(
        'UPDATE access_subjects SET policy = ?, ask_owner = ?, policy_before = ? WHERE subject = ?',
        ...columnsOf(policy),
        before,
        subject,
      ),
    );
  }

  /**
   * Adds an entry. An existing entry with the same AID or secret keeps its ID and gets the new label, expiry and tools.
   * Returns the stored entry.
   */
  put<E extends AidEntry | SecretEntry>(subject: string, list: AccessListName, entry: E): E {
    const { id, label, createdAt, expiresAt } = entry;
    const aid = 'aid' in entry ? entry.aid : null;
    const secretHash = 'secretHash' in entry ? entry.secretHash : null;
    const tools = 'aid' in entry && entry.tools !== null ? JSON.stringify(entry.tools) : null;
    const row = this.#store.durableTransaction(
      () => this.#store.one`
        INSERT INTO access_entries (id, subject, list, aid, secret_hash, label, created_at, expires_at, tools)
        VALUES (${id}, ${subject}, ${list}, ${aid}, ${secretHash}, ${label}, ${createdAt}, ${expiresAt}, ${tools})
        ON CONFLICT DO UPDATE SET label = excluded.label, expires_at = excluded.expires_at, tools = excluded.tools
        RETURNING id, created_at`,
    );
    return { ...entry, id: textOf(row, 'id'), createdAt: integerOf(row, 'created_at') };
  }

  /** True if the entry existed. */
  remove(subject: string, list: AccessListName, id: string): boolean {
    return this.#store.durableTransaction(
      () =>
        this.#store.run('DELETE FROM access_entries WHERE subject = ? AND list = ? AND id = ?', subject, list, id) > 0,
    );
  }

  /** Adds a caller of a temporary service, or changes its tools. Returns the stored row. */
  putServiceCaller(subject: string, entry: ServiceCaller): ServiceCaller {
    const { id, service, aid, createdAt } = entry;
    const tools = entry.tools === null ? null : JSON.stringify(entry.tools);
    const row = this.#store.durableTransaction(
      () => this.#store.one`
        INSERT INTO service_callers (id, subject, service, aid, tools, created_at)
        VALUES (${id}, ${subject}, ${service}, ${aid}, ${tools}, ${createdAt})
        ON CONFLICT DO UPDATE SET tools = excluded.tools RETURNING id, created_at`,
    );
    return { ...entry, id: textOf(row, 'id'), createdAt: integerOf(row, 'created_at') };
  }

  /** True if the row existed. */
  removeServiceCaller(subject: string, id: string): boolean {
    return this.#store.durableTransaction(
      () => this.#store.run`DELETE FROM service_callers WHERE subject = ${subject} AND id = ${id}` > 0,
    );
  }

  /** Deletes the callers of all services except these. */
  keepServiceCallers(subject: string, services: readonly string[]): void {
    const kept = JSON.stringify(services);
    this.#store.durableTransaction(
      () => this.#store.run`
        DELETE FROM service_callers WHERE subject = ${subject} AND service NOT IN (SELECT value FROM json_each(${kept}))`,
    );
  }

  /** Deletes all rows of a subject. */
  removeSubject(subject: string): void {
    this.#store.durableTransaction(() => this.#store.run('DELETE FROM access_subjects WHERE subject = ?', subject));
  }
}
