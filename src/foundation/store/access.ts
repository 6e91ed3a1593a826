/** Stored access lists: one row for each subject with changes, one for each entry. */
import { ACCESS_POLICIES, type AccessListName, type AccessPolicy } from '../domain/access.ts';
import type { Aid } from '../identity/aid.ts';
import { blobOf, integerOf, textOf, wordOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, blob, integer, nullable, type RowOf, Table, text, texts, word } from './table.ts';

/** An entry of a list: an AID, or the hash of a secret. */
const ENTRY = new Table('access_entries', {
  id: text,
  subject: text,
  list: word(['allow', 'deny']),
  aid: nullable(aid),
  /** scrypt of the secret with the subject's salt. */
  secretHash: nullable(blob),
  label: nullable(text),
  /** Milliseconds since the Unix epoch. */
  createdAt: integer,
  /** Milliseconds since the Unix epoch; null means never. */
  expiresAt: nullable(integer),
  /** The MCP tools that the entry is limited to; null means no limit. Only in allow lists, with an AID. */
  tools: nullable(texts),
});

/** A caller that a temporary service allows while it is bound. */
const SERVICE_CALLER = new Table('service_callers', {
  id: text,
  aid,
  /** The address of the service. */
  service: text,
  /** The MCP tools that the caller is limited to; null means no limit. */
  tools: nullable(texts),
  /** Milliseconds since the Unix epoch. */
  createdAt: integer,
});
const STORED_CALLER = new Table('service_callers', { ...SERVICE_CALLER.columns, subject: text });

type EntryRow = RowOf<typeof ENTRY>;
type EntryBase = Pick<EntryRow, 'id' | 'label' | 'createdAt' | 'expiresAt'>;

export interface AidEntry extends EntryBase, Pick<EntryRow, 'tools'> {
  readonly aid: Aid;
}

export interface SecretEntry extends EntryBase {
  readonly secretHash: Uint8Array;
}

export type ServiceCaller = RowOf<typeof SERVICE_CALLER>;

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

function entryOf({ id, label, createdAt, expiresAt, aid, secretHash, tools }: EntryRow): AidEntry | SecretEntry {
  const common = { id, label, createdAt, expiresAt };
  if (secretHash !== null) return { ...common, secretHash };
  if (aid === null) throw new TypeError('an access entry has neither an AID nor a secret');
  return { ...common, aid, tools };
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
      serviceCallers: SERVICE_CALLER.all(this.#store)`WHERE subject = ${subject} ORDER BY created_at, id`,
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
    return ENTRY.all(this.#store)`WHERE subject = ${subject} AND list = ${list} ORDER BY created_at, id`.map(entryOf);
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
    const { id, createdAt } = this.#store.durableTransaction(() =>
      ENTRY.add(
        this.#store,
        { ...entry, subject, list },
        'ON CONFLICT DO UPDATE SET label = excluded.label, expires_at = excluded.expires_at, tools = excluded.tools',
      ),
    );
    return { ...entry, id, createdAt };
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
    const { id, createdAt } = this.#store.durableTransaction(() =>
      STORED_CALLER.add(this.#store, { ...entry, subject }, 'ON CONFLICT DO UPDATE SET tools = excluded.tools'),
    );
    return { ...entry, id, createdAt };
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
