/** The names of an entry, permitted agents, and invitations. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { integerOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, blob, integer, type RowOf, Table, text } from './table.ts';

const ALLOWED = new Table('entry_allowed', { aid, createdAt: integer });
const INVITATIONS = new Table('entry_invitations', { tokenHash: blob, createdAt: integer });
const NAMES = new Table('entry_names', {
  name: text,
  aid,
  /** A text that is equal for names that look alike. */
  looks: text,
  heldAt: integer,
  /** When its holder claimed it last. */
  seenAt: integer,
});

export type EntryAllowance = RowOf<typeof ALLOWED>;
export type EntryName = RowOf<typeof NAMES>;

export class EntryStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  countAllowed(): number {
    return integerOf(this.#store.one`SELECT count(*) AS n FROM entry_allowed`, 'n');
  }

  allowed(): EntryAllowance[] {
    return ALLOWED.all(this.#store)`ORDER BY created_at, aid`;
  }

  isAllowed(aid: Aid): boolean {
    return ALLOWED.one(this.#store)`WHERE aid = ${aid}` !== null;
  }

  /** False if it was allowed before. */
  allow(row: EntryAllowance): boolean {
    return ALLOWED.insert(this.#store, row, 'ON CONFLICT DO NOTHING') > 0;
  }

  /** False if it was not allowed. */
  deny(aid: Aid): boolean {
    return this.#store.run`DELETE FROM entry_allowed WHERE aid = ${aid}` > 0;
  }

  /** Stores an invitation. Invitations from before `expired` are deleted, and the oldest of more than `max`. */
  invite(tokenHash: Uint8Array, createdAt: number, expired: number, max: number): void {
    this.#store.transaction(() => {
      INVITATIONS.insert(this.#store, { tokenHash, createdAt });
      this.#store.run`
        DELETE FROM entry_invitations WHERE created_at < ${expired} OR token_hash NOT IN
          (SELECT token_hash FROM entry_invitations ORDER BY created_at DESC LIMIT ${max})`;
    });
  }

  /** Deletes an invitation. False if there is none, or it is from before `expired`. */
  redeem(tokenHash: Uint8Array, expired: number): boolean {
    return (
      this.#store.run`
      DELETE FROM entry_invitations WHERE token_hash = ${tokenHash} AND created_at >= ${expired}` > 0
    );
  }

  names(): EntryName[] {
    return NAMES.all(this.#store)`ORDER BY name`;
  }

  find(name: string): EntryName | null {
    return NAMES.one(this.#store)`WHERE name = ${name}`;
  }

  /** Names that look like a name, or are equal to it, and were seen since a time. */
  like(looks: string, since: number): EntryName[] {
    return NAMES.all(this.#store)`WHERE looks = ${looks} AND seen_at >= ${since}`;
  }

  /** Names of an agent that were last seen before a time. */
  expired(aid: Aid, before: number): EntryName[] {
    return NAMES.all(this.#store)`WHERE aid = ${aid} AND seen_at < ${before}`;
  }

  count(aid: Aid): number {
    return integerOf(this.#store.one`SELECT count(*) AS n FROM entry_names WHERE aid = ${aid}`, 'n');
  }

  put(row: EntryName): void {
    NAMES.replace(this.#store, row);
  }

  /** Deletes a name, of any holder or of one. False if there is none. */
  free(name: string, aid: Aid | null = null): boolean {
    return this.#store.run`DELETE FROM entry_names WHERE name = ${name} AND (${aid} IS NULL OR aid = ${aid})` > 0;
  }

  /** Frees all names of an agent. */
  freeAll(aid: Aid): void {
    this.#store.run`DELETE FROM entry_names WHERE aid = ${aid}`;
  }
}
