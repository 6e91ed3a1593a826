/**
 * Declared tables. The columns of a table give the type of its rows, their reader, and the statements that write them.
 * A field `sentAt` is the column `sent_at`, unless `named` says otherwise.
 */
import { type ErrorCode, isErrorCode } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, aidsOf, blobOf, flagOf, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, SqlValue, Store } from './store.ts';

/** How a field is stored in a column. */
export interface Column<T> {
  /** The column, if it is not the name of the field in snake case. */
  readonly name?: string;
  /** @throws TypeError if the value has another type */
  read(this: void, row: Row | undefined, column: string): T;
  /** @param values the fields of the row that are written */
  write(this: void, value: T, values: Readonly<Record<string, unknown>>): SqlValue;
}

type Columns = Readonly<Record<string, Column<unknown>>>;

/** A row of a table with these columns. */
type Fields<C extends Columns> = { readonly [F in keyof C]: C[F] extends Column<infer T> ? T : never };
export type RowOf<T> = T extends Table<infer C> ? Fields<C> : never;

function itself(value: SqlValue): SqlValue {
  return value;
}

export const text: Column<string> = { read: textOf, write: itself };
export const integer: Column<number> = { read: integerOf, write: itself };
export const blob: Column<Uint8Array> = { read: blobOf, write: itself };
export const flag: Column<boolean> = { read: flagOf, write: Number };
export const aid: Column<Aid> = { read: aidFromRow, write: itself };
export const aids: Column<readonly Aid[]> = { read: aidsOf, write: (value) => value.join(' ') };
/** A list of texts as JSON. Other items are ignored. */
export const texts: Column<readonly string[]> = {
  read: (row, column) => {
    const list: unknown = JSON.parse(textOf(row, column));
    return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
  },
  write: (list) => JSON.stringify(list),
};
/** Bytes that are lower-case hex in the interface. */
export const hex: Column<string> = {
  read: (row, column) => Buffer.from(blobOf(row, column)).toString('hex'),
  write: (value) => new Uint8Array(Buffer.from(value, 'hex')),
};

/** Unknown codes of other versions are `internal`. */
export const errorCode: Column<ErrorCode> = {
  read: (row, column) => {
    const code = textOf(row, column);
    return isErrorCode(code) ? code : 'internal';
  },
  write: itself,
};

/** One of several words. */
export function word<const T extends string>(words: readonly T[]): Column<T> {
  return { read: (row, column) => wordOf(row, column, words), write: itself };
}

/** One of several words, stored as its place in the list. Other numbers are `fallback`. */
export function ordinal<const T extends string>(words: readonly T[], fallback: T): Column<T> {
  return { read: (row, column) => words[integerOf(row, column)] ?? fallback, write: (value) => words.indexOf(value) };
}

export function nullable<T>({ read, write }: Column<T>): Column<T | null> {
  return {
    read: (row, column) => orNull(read, row, column),
    write: (value, values) => (value === null ? null : write(value, values)),
  };
}

/** A field whose column has another name. */
export function named<T>(name: string, column: Column<T>): Column<T> {
  return { ...column, name };
}

interface Field {
  readonly name: string;
  readonly column: string;
  readonly type: Column<unknown>;
}

/** A statement that writes some fields of a table. */
interface Write {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/**
 * The methods that write use the fields of `values` that the table declares, and ignore other members. A missing field
 * gets the default of its column. The SQL in their arguments is constant.
 */
export class Table<const C extends Columns> {
  readonly columns: C;
  readonly #name: string;
  readonly #fields: readonly Field[];
  readonly #select: string;
  /** Statements by the text after the name of the table. */
  readonly #selects = new Map<TemplateStringsArray, string>();
  /** Statements by their start, their end and the columns that they write. */
  readonly #writes = new Map<string, string>();

  constructor(name: string, columns: C) {
    this.columns = columns;
    this.#name = name;
    this.#fields = Object.entries(columns).map(([field, type]) => {
      const column = type.name ?? field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return { name: field, column, type };
    });
    this.#select = `SELECT ${this.#fields.map(({ column }) => column).join(', ')} FROM ${name} `;
  }

  /** Reads a row of any statement that has these columns. */
  readonly read = (row: Row): Fields<C> => {
    const values: Record<string, unknown> = {};
    for (const { name, column, type } of this.#fields) values[name] = type.read(row, column);
    return values as Fields<C>;
  };

  /** The first row, or null: table.one(store)`WHERE id = ${id}`. */
  one(store: Store): (rest: TemplateStringsArray, ...values: SqlValue[]) => Fields<C> | null {
    return (rest, ...values) => {
      const row = store.one(this.#selectSql(rest), ...values);
      return row === undefined ? null : this.read(row);
    };
  }

  /** All rows: table.all(store)`WHERE aid = ${aid} ORDER BY id`. */
  all(store: Store): (rest: TemplateStringsArray, ...values: SqlValue[]) => Fields<C>[] {
    return (rest, ...values) => store.all(this.#selectSql(rest), ...values).map(this.read);
  }

  #selectSql(rest: TemplateStringsArray): string {
    const known = this.#selects.get(rest);
    if (known !== undefined) return known;
    const sql = this.#select + rest.join('?');
    this.#selects.set(rest, sql);
    return sql;
  }

  /**
   * Inserts a row.
   * @param conflict such as `ON CONFLICT DO NOTHING`
   * @returns the number of changed rows
   */
  insert(store: Store, values: Partial<Fields<C>>, conflict = ''): number {
    const write = this.#insertion('INSERT', values, conflict);
    return store.run(write.sql, ...write.values);
  }

  /** Inserts a row, and returns it as it is stored. */
  add(store: Store, values: Partial<Fields<C>>, conflict = ''): Fields<C> {
    const write = this.#insertion('INSERT', values, `${conflict} RETURNING *`);
    return this.read(store.one(write.sql, ...write.values) ?? {});
  }

  /** Inserts a row, or replaces the one with the same key. */
  replace(store: Store, values: Partial<Fields<C>>): void {
    const write = this.#insertion('INSERT OR REPLACE', values);
    store.run(write.sql, ...write.values);
  }

  /** Inserts a row. False if its agent is not registered here, or a row with its key exists. */
  insertForAgent(store: Store, values: Partial<Fields<C>> & { readonly aid: Aid }): boolean {
    const write = this.#insertion('INSERT', values, 'FROM agents WHERE aid = ? ON CONFLICT DO NOTHING');
    return store.run(write.sql, ...write.values, values.aid) > 0;
  }

  /** Updates rows. Returns the number of changed rows. */
  update(store: Store, values: Partial<Fields<C>>, where: string, ...rest: SqlValue[]): number {
    const write = this.#write(`UPDATE ${this.#name} SET`, values, where, (columns) =>
      columns.map((column) => `${column} = ?`).join(', '),
    );
    return store.run(write.sql, ...write.values, ...rest);
  }

  #insertion(verb: string, values: Partial<Fields<C>>, rest = ''): Write {
    return this.#write(`${verb} INTO ${this.#name}`, values, rest, (columns) => {
      const places = columns.map(() => '?').join(', ');
      return `(${columns.join(', ')}) ${rest.startsWith('FROM') ? `SELECT ${places}` : `VALUES (${places})`}`;
    });
  }

  #write(start: string, values: Partial<Fields<C>>, end: string, middle: (columns: string[]) => string): Write {
    const fields = this.#fields.filter(({ name }) => values[name] !== undefined);
    const columns = fields.map(({ column }) => column);
    const key = `${start} ${columns.join()} ${end}`;
    const sql = this.#writes.get(key) ?? `${start} ${middle(columns)} ${end}`;
    this.#writes.set(key, sql);
    return { sql, values: fields.map(({ name, type }) => type.write(values[name], values)) };
  }
}
