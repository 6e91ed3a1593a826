/** The table of local agents. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { type Delegation, encodeDelegation } from '../identity/delegation.ts';
import { LruCache } from '../lru-cache.ts';
import { aidFromRow, flagOf, orNull, orZero, textOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, blob, type Column, flag, integer, named, type RowOf, Table, text } from './table.ts';

/** Cached pages of the list. Two panels with different pages keep theirs. */
const MAX_CACHED_PAGES = 4;

/** Services in one text; null if there are none. */
const services: Column<readonly string[]> = {
  read: (row, column) => orNull(textOf, row, column)?.split('\n') ?? NO_SERVICES,
  write: (lines) => (lines.length === 0 ? null : lines.join('\n')),
};

/** The columns that lists use. Keys and proofs would take four times as long to read. */
const LISTED = new Table('agents', {
  /** Increases with every registration: the order and the cursor of lists. */
  id: integer,
  aid,
  issuedAt: integer,
  expiresAt: integer,
  /** `host:port` or URL of the bound service; empty if there is none. */
  serviceTcp: text,
  /** Services that temporary ones replaced, the most recent first; empty if no temporary service is bound. */
  servicesBefore: named('service_before', services),
  heartbeatAt: integer,
});

const AGENT = new Table('agents', {
  ...LISTED.columns,
  /** Name of the operational key in the key store. */
  keyName: text,
  /** Ed25519 public key, as in the delegation. */
  operationalKey: blob,
  /** The encoded proof, which lists do not decode. */
  delegation: blob,
  registeredAt: integer,
  /** Published only on request. */
  isHeld: flag,
});

export type ListedAgent = ReturnType<typeof withWindow<RowOf<typeof LISTED>>>;
export type AgentRow = ReturnType<typeof withWindow<RowOf<typeof AGENT>>>;

function withWindow<R extends RowOf<typeof LISTED>>({ issuedAt, expiresAt, ...row }: R) {
  return {
    ...row,
    /** Validity of the delegation, Unix seconds; an end of 0 means never. */
    window: { issuedAt, expiresAt },
  };
}

export interface NewAgent extends Pick<AgentRow, 'keyName' | 'serviceTcp' | 'registeredAt'> {
  readonly delegation: Delegation;
}

const NO_SERVICES: readonly string[] = [];

export class AgentStore {
  readonly #store: Store;
  /** Cached pages, until any row of them may have changed. */
  readonly #pages = new LruCache<string, readonly ListedAgent[]>({ maxEntries: MAX_CACHED_PAGES });

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  get(aid: Aid): AgentRow | null {
    const row = AGENT.one(this.#store)`WHERE aid = ${aid}`;
    return row === null ? null : withWindow(row);
  }

  /** Up to `limit` agents after `afterId`, in the order of their registration. */
  page(afterId: number, limit: number): readonly ListedAgent[] {
    const key = `${afterId} ${limit}`;
    const known = this.#pages.get(key);
    if (known !== undefined) return known;
    const listed = LISTED.all(this.#store)`WHERE id > ${afterId} ORDER BY id LIMIT ${limit}`.map((row) =>
      withWindow(row),
    );
    this.#pages.set(key, listed);
    return listed;
  }

  count(): number {
    return orZero(this.#store.one('SELECT count(*) AS n FROM agents'), 'n');
  }

  /** Adds an agent, which counts as its first heartbeat, or replaces the key, delegation and service of a known one. */
  put({ keyName, delegation, serviceTcp, registeredAt }: NewAgent): void {
    const { agent, operationalKey, issuedAt, expiresAt } = delegation;
    this.#pages.clear();
    const changed = this.#store.one`
      SELECT 1 FROM agents
      WHERE aid = ${agent} AND (operational_key <> ${operationalKey} OR service_tcp <> ${serviceTcp})`;
    const insert = (): number => this.#store.run`
      INSERT INTO agents
        (aid, key_name, operational_key, delegation, issued_at, expires_at, service_tcp, registered_at, heartbeat_at)
      VALUES (${agent}, ${keyName}, ${operationalKey}, ${encodeDelegation(delegation)}, ${issuedAt}, ${expiresAt},
        ${serviceTcp}, ${registeredAt}, ${registeredAt})
      ON CONFLICT (aid) DO UPDATE SET
        key_name = excluded.key_name, operational_key = excluded.operational_key,
        delegation = excluded.delegation, issued_at = excluded.issued_at, expires_at = excluded.expires_at,
        service_tcp = excluded.service_tcp,
        service_before = iif(excluded.service_tcp = agents.service_tcp, agents.service_before, NULL)`;
    // A key that was replaced, perhaps because it leaked, must not return.
    if (changed === undefined) insert();
    else this.#store.durableTransaction(insert);
  }

  /** Sets whether an agent is published only on request. */
  setHeld(aid: Aid, isHeld: boolean): void {
    const row = this.#store.one`SELECT is_held FROM agents WHERE aid = ${aid}`;
    // A durable transaction costs several flushes, and a new agent is not held.
    if (row === undefined || flagOf(row, 'is_held') === isHeld) return;
    this.#store.durableTransaction(
      () => this.#store.run`UPDATE agents SET is_held = ${isHeld ? 1 : 0} WHERE aid = ${aid}`,
    );
  }

  /** True if the calls of an agent carry evidence; false also if the agent is not registered here. */
  givesEvidence(aid: Aid): boolean {
    const row = this.#store.one`SELECT gives_evidence FROM agents WHERE aid = ${aid}`;
    return row !== undefined && flagOf(row, 'gives_evidence');
  }

  setEvidence(aid: Aid, gives: boolean): void {
    this.#store.run`UPDATE agents SET gives_evidence = ${gives ? 1 : 0} WHERE aid = ${aid}`;
  }

  /** @param before services that a temporary one replaces, the most recent first; empty if the service is permanent */
  setService(aid: Aid, serviceTcp: string, before: readonly string[] = NO_SERVICES): void {
    this.#pages.clear();
    const lines = before.length === 0 ? null : before.join('\n');
    this.#store.durableTransaction(
      () =>
        this.#store.run`UPDATE agents SET service_tcp = ${serviceTcp}, service_before = ${lines} WHERE aid = ${aid}`,
    );
  }

  /** Stores the times of heartbeats, in one transaction. */
  setHeartbeats(heartbeats: readonly (readonly [Aid, number])[]): void {
    this.#pages.clear();
    this.#store.transaction(() => {
      for (const [aid, at] of heartbeats) this.#store.run`UPDATE agents SET heartbeat_at = ${at} WHERE aid = ${aid}`;
    });
  }

  /** True if the agent existed. Its rows in other tables are deleted too. */
  delete(aid: Aid): boolean {
    this.#pages.clear();
    return this.#store.run`DELETE FROM agents WHERE aid = ${aid}` > 0;
  }

  /** Names of the keys in use. */
  keyNames(): Set<string> {
    return new Set(this.#store.all('SELECT key_name FROM agents').map((row) => textOf(row, 'key_name')));
  }

  /** Registers a key that is about to be written before its agent exists. Without an agent it will be deleted. */
  expectKey(name: string): void {
    this.#store.run`
      INSERT OR IGNORE INTO retired_keys (name)
      SELECT ${name} WHERE NOT EXISTS (SELECT 1 FROM agents WHERE key_name = ${name})`;
  }

  /** Names of keys without an agent, which must be deleted. */
  retiredKeys(): string[] {
    return this.#store.all('SELECT name FROM retired_keys').map((row) => textOf(row, 'name'));
  }

  /** Removes a retired key after its file was deleted. */
  removeRetiredKey(name: string): void {
    this.#store.run`DELETE FROM retired_keys WHERE name = ${name}`;
  }

  /** Up to `limit` agents that are bound to a service. */
  agentsBoundTo(service: string, limit: number): Aid[] {
    const rows = this.#store.all`SELECT aid FROM agents WHERE service_tcp = ${service} ORDER BY id LIMIT ${limit}`;
    return rows.map((row) => aidFromRow(row, 'aid'));
  }

  /** The distinct services that agents are bound to. */
  boundServices(): string[] {
    const rows = this.#store.all("SELECT DISTINCT service_tcp FROM agents WHERE service_tcp <> ''");
    return rows.map((row) => textOf(row, 'service_tcp'));
  }
}
