/** A full-text index of tools: SQLite FTS5 in memory, filled from the catalog and ranked by BM25. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { spaced, type ToolDefinition } from './definition.ts';

/** Weights of the columns: name, title, description, parameters, agent. */
const WEIGHTS = '8, 6, 3, 1, 5';
/** Words of a question that are searched. */
const MAX_WORDS = 24;
/** Matches that are read. */
const MAX_MATCHES = 300;

export interface IndexedTool {
  readonly id: number;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: string;
  /** The name of the agent. */
  readonly agent: string;
}

export interface Match {
  readonly id: number;
  /** Higher is better. Only comparable within one search. */
  readonly score: number;
}

/** The words of a text in lower case, each once. */
function wordsIn(text: string): string[] {
  return [...new Set(text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu))];
}

export class SearchIndex {
  readonly #db = new DatabaseSync(':memory:');
  readonly #insert: StatementSync;
  readonly #delete: StatementSync;
  readonly #match: StatementSync;
  /** The rows of each agent. */
  readonly #rows = new Map<number, readonly number[]>();

  constructor() {
    this.#db.exec(`CREATE VIRTUAL TABLE tools USING fts5 (name, title, description, parameters, agent,
      tokenize = 'porter unicode61 remove_diacritics 2')`);
    this.#insert = this.#db.prepare(
      'INSERT INTO tools (rowid, name, title, description, parameters, agent) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#delete = this.#db.prepare('DELETE FROM tools WHERE rowid = ?');
    this.#match = this.#db.prepare(`SELECT rowid AS id, -bm25(tools, ${WEIGHTS}) AS score FROM tools
      WHERE tools MATCH ?1 AND (?2 IS NULL OR rowid IN (SELECT value FROM json_each(?2)))
      ORDER BY score DESC, id LIMIT ${MAX_MATCHES}`);
  }

  /** Replaces the tools of an agent. */
  replace(source: number, tools: readonly IndexedTool[]): void {
    this.#db.exec('BEGIN');
    this.remove(source);
    for (const { id, name, title, description, parameters, agent } of tools)
      this.#insert.run(id, name, title, description, parameters, agent);
    this.#db.exec('COMMIT');
    this.#rows.set(
      source,
      tools.map(({ id }) => id),
    );
  }

  /** Removes an agent with its tools. */
  remove(source: number): void {
    for (const id of this.#rows.get(source) ?? []) this.#delete.run(id);
    this.#rows.delete(source);
  }

  /** The agents in the index, also those without tools. */
  sources(): number[] {
    return [...this.#rows.keys()];
  }

  /** The tools of all agents or of one that match at least one word of a text, the best first. */
  search(text: string, source?: number): Match[] {
    // No word contains a quote, so no word is an operator.
    const words = wordsIn(text).slice(0, MAX_WORDS);
    if (words.length === 0) return [];
    const rows = source === undefined ? null : JSON.stringify(this.#rows.get(source) ?? []);
    return this.#match
      .all(words.map((word) => `"${word}"`).join(' OR '), rows)
      .map((row) => ({ id: Number(row['id']), score: Number(row['score']) }));
  }

  close(): void {
    this.#db.close();
  }
}

// Moves copies of a tool behind other tools, so that a short list of results shows different tools.

/** Part of the words of the shorter description that the longer one contains, if both describe one tool. */
const SAME_DESCRIPTION = 0.5;

interface Words {
  /** The words of the name. */
  readonly name: string;
  readonly description: ReadonlySet<string>;
}

function wordsOf({ name, description = '' }: ToolDefinition): Words {
  return { name: ` ${spaced(name).trim().toLowerCase()}`, description: new Set(wordsIn(description)) };
}

/** True if two names have the same words. One may have a word before them, such as its product. */
function isSameName(a: string, b: string): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  return long.endsWith(short) && long.lastIndexOf(' ', long.length - short.length - 1) <= 0;
}

/** Part of the smaller set that the larger one contains, 0 to 1. */
function contained(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const smaller = Math.min(a.size, b.size);
  return smaller === 0 ? 0 : a.intersection(b).size / smaller;
}

/** The same results with copies of earlier ones at the end. */
export function distinctFirst<T>(results: readonly T[], definitionOf: (result: T) => ToolDefinition): T[] {
  const shown: Words[] = [];
  const [first, copies]: [T[], T[]] = [[], []];
  for (const result of results) {
    const one = wordsOf(definitionOf(result));
    const isCopy = shown.some(
      (other) => isSameName(one.name, other.name) && contained(one.description, other.description) >= SAME_DESCRIPTION,
    );
    (isCopy ? copies : first).push(result);
    if (!isCopy) shown.push(one);
  }
  return [...first, ...copies];
}
