/** Certificates of public addresses. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import type { ErrorCode } from '../errors.ts';
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { dueRows } from './due-rows.ts';
import { blobOf, orNull, textOf } from './row.ts';
import type { Store } from './store.ts';
import { type Column, errorCode, integer, nullable, type RowOf, Table, text } from './table.ts';

function keyIn(secrets: StoredSecrets): Column<string | null> {
  const purposeOf = (host: string): string => `public_certificates ${host}`;
  return {
    name: 'sealed_key',
    read: (row) => {
      const sealed = orNull(blobOf, row, 'sealed_key');
      return sealed === null ? null : secrets.open(purposeOf(textOf(row, 'host')), sealed);
    },
    write: (key, { host }) => (key === null ? null : secrets.seal(purposeOf(String(host)), key)),
  };
}

function tableOf(secrets: StoredSecrets) {
  return new Table('public_certificates', {
    host: text,
    /** PEM; null if there is no certificate yet. */
    chain: nullable(text),
    key: keyIn(secrets),
    notBefore: nullable(integer),
    notAfter: nullable(integer),
    /** Time of the next order; null if the host is not exposed. */
    dueAt: nullable(integer),
    /** The reason why the last order failed. */
    errorCode: nullable(errorCode),
    errorText: nullable(text),
  });
}

export type CertificateRow = RowOf<ReturnType<typeof tableOf>>;

export class CertificateStore {
  readonly #store: Store;
  readonly #table: ReturnType<typeof tableOf>;
  readonly due: DueTable<CertificateRow>;
  /** The earliest time of the next order, if the server named one. */
  readonly #notBefore = new Map<string, number>();

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#table = tableOf(secrets);
    this.due = dueRows(
      store,
      { table: 'public_certificates', dueAt: 'due_at', id: 'host', key: 'host' },
      this.#table.read,
      ({ host }, at) => {
        const next = Math.max(at, this.#notBefore.get(host) ?? 0);
        store.run`UPDATE public_certificates SET due_at = ${next}, attempts = attempts + 1 WHERE host = ${host}`;
      },
    );
  }

  find(host: string): CertificateRow | null {
    return this.#table.one(this.#store)`WHERE host = ${host}`;
  }

  /** Plans an order for a host; null: none. */
  plan(host: string, at: number | null): void {
    this.#store.run`INSERT INTO public_certificates (host, due_at) VALUES (${host}, ${at})
      ON CONFLICT (host) DO UPDATE SET due_at = excluded.due_at, attempts = 0`;
  }

  /** Stores a new certificate. */
  put(row: CertificateRow): void {
    this.#table.replace(this.#store, row);
  }

  /** Sets the earliest time of the next order. */
  notBefore(host: string, at: number): void {
    if (at === 0) this.#notBefore.delete(host);
    else this.#notBefore.set(host, at);
  }

  failed(host: string, code: ErrorCode, message: string): void {
    this.#store.run`UPDATE public_certificates SET error_code = ${code}, error_text = ${message} WHERE host = ${host}`;
  }
}
