/** A database that counts statements and returned rows. */
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';

export interface Work {
  readonly statements: number;
  readonly rows: number;
}

export interface RecordingStore {
  readonly store: Store;
  /** The database work of a function. */
  measure(work: () => unknown): Promise<Work>;
  /** Query plans on a table that scan the whole table or sort. */
  scans(table: string): string[];
}

/** A statement as given to the store, as text or as a template. */
export function sqlText(given: unknown): string {
  return Array.isArray(given) ? given.join('?') : String(given);
}

const ASKING: ReadonlySet<string> = new Set(['one', 'all', 'run']);

export function recordingStore(file = ':memory:'): RecordingStore {
  const real = Store.open(file, MIGRATIONS);
  const asked = new Set<string>();
  let statements = 0;
  let rows = 0;
  const store = new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(value, target, args);
        if (ASKING.has(String(name))) {
          asked.add(sqlText(args[0]));
          statements++;
          rows += Array.isArray(answer) ? answer.length : 1;
        }
        return answer;
      };
    },
  });
  return {
    store,
    measure: async (work) => {
      const before = { statements, rows };
      await work();
      return { statements: statements - before.statements, rows: rows - before.rows };
    },
    scans: (table) =>
      [...asked].flatMap((sql) =>
        sql.startsWith('INSERT') || !sql.includes(table)
          ? []
          : real
              .all(`EXPLAIN QUERY PLAN ${sql}`)
              .map((row) => String(row['detail']))
              .filter((line) => /^SCAN (?!CONSTANT)|TEMP B-TREE/.test(line))
              .map((line) => `${line}: ${sql}`),
      ),
  };
}
