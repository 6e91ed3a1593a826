/**
 * A full-text index of tools: SQLite FTS5 in memory, filled from the catalog. Each word of a question counts once for
 * each tool, itself or as another word with the same meaning.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { spaced, type ToolDefinition } from './definition.ts';
import { type Concept, conceptsIn, everyWord, intentOf, stemsIn } from './words.ts';

/** Weights of the columns: name, title, description, parameters, agent. */
const WEIGHTS = '8, 6, 3, 1, 5';
/** Weight of another word with the same meaning, compared with the word itself. */
const OTHER_WORD = 0.55;
/** Bonus of a tool for each further word of the question that it matches. */
const COVERAGE = 0.35;
/** Weight of the matches of all tools of an agent, compared with the tool itself. */
const SOURCE = 2;
/** An agent with fewer tools counts as if it had this many. */
const MIN_SOURCE_TOOLS = 5;
/** Bonus of a tool whose whole name matches, and of a tool whose agent is named. */
const NAME = 1;
const AGENT = 1;
/** Matches that are read for one word. */
const MAX_MATCHES = 600;

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

interface ToolName {
  readonly name: string;
  readonly stems: readonly string[];
  /** Stems in the name of the agent. */
  readonly agent: readonly string[];
}

const NO_NAME: ToolName = { name: '', stems: [], agent: [] };

/** The part of some stems that a set contains, 0 to 1. */
function share(stems: readonly string[], known: ReadonlySet<string>): number {
  return stems.length === 0 ? 0 : stems.filter((one) => known.has(one)).length / stems.length;
}

export class SearchIndex {
  readonly #db = new DatabaseSync(':memory:');
  readonly #insert: StatementSync;
  readonly #delete: StatementSync;
  readonly #match: StatementSync;
  /** The rows of each agent. */
  readonly #rows = new Map<number, readonly number[]>();
  readonly #sourceOf = new Map<number, number>();
  readonly #names = new Map<number, ToolName>();

  constructor() {
    this.#db.exec(`CREATE VIRTUAL TABLE tools USING fts5 (name, title, description, parameters, agent,
      tokenize = 'porter unicode61 remove_diacritics 2')`);
    this.#insert = this.#db.prepare(
      'INSERT INTO tools (rowid, name, title, description, parameters, agent) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#delete = this.#db.prepare('DELETE FROM tools WHERE rowid = ?');
    this.#match = this.#db.prepare(`SELECT rowid AS id, -bm25(tools, ${WEIGHTS}) AS score FROM tools
      WHERE tools MATCH ? ORDER BY bm25(tools, ${WEIGHTS}) LIMIT ${MAX_MATCHES}`);
  }

  /** Replaces the tools of an agent. */
  replace(source: number, tools: readonly IndexedTool[]): void {
    this.#db.exec('BEGIN');
    this.remove(source);
    for (const { id, name, title, description, parameters, agent } of tools) {
      this.#insert.run(id, name, title, description, parameters, agent);
      this.#sourceOf.set(id, source);
      this.#names.set(id, { name: name.toLowerCase(), stems: stemsIn(name), agent: stemsIn(agent) });
    }
    this.#db.exec('COMMIT');
    this.#rows.set(
      source,
      tools.map(({ id }) => id),
    );
  }

  /** Removes an agent with its tools. */
  remove(source: number): void {
    for (const id of this.#rows.get(source) ?? []) {
      this.#delete.run(id);
      this.#sourceOf.delete(id);
      this.#names.delete(id);
    }
    this.#rows.delete(source);
  }

  /** The agents in the index, also those without tools. */
  sources(): number[] {
    return [...this.#rows.keys()];
  }

  /** The tools that match a question, the best first. */
  search(text: string): Match[] {
    const scores = new Map<number, { sum: number; words: number }>();
    const ofSources = new Map<number, number>();
    const concepts = conceptsIn(text);
    for (const concept of concepts) {
      const sums = new Map<number, number>();
      for (const [id, score] of this.#scoresOf(concept)) {
        const before = scores.get(id) ?? { sum: 0, words: 0 };
        scores.set(id, { sum: before.sum + score, words: before.words + 1 });
        const source = this.#sourceOf.get(id) ?? 0;
        sums.set(source, (sums.get(source) ?? 0) + score);
      }
      // A word that many tools of an agent match shows what the agent is for.
      for (const [source, sum] of sums) {
        const share = sum / Math.max(MIN_SOURCE_TOOLS, this.#rows.get(source)?.length ?? 0);
        ofSources.set(source, (ofSources.get(source) ?? 0) + share);
      }
    }
    const intent = intentOf(text);
    const words = new Set(stemsIn(text));
    const meant = new Set(concepts.flatMap(({ word, others }) => stemsIn([word, ...others].join(' '))));
    return [...scores]
      .map(([id, { sum, words: count }]) => {
        const own = sum * (1 + COVERAGE * (count - 1)) + SOURCE * (ofSources.get(this.#sourceOf.get(id) ?? 0) ?? 0);
        const { name, stems, agent } = this.#names.get(id) ?? NO_NAME;
        const named = 1 + NAME * share(stems, meant) + AGENT * share(agent, words);
        return { id, score: own * named * intent(name) };
      })
      .sort((a, b) => b.score - a.score || a.id - b.id);
  }

  close(): void {
    this.#db.close();
  }

  #scoresOf({ word, others }: Concept): Map<number, number> {
    const scores = new Map<number, number>();
    // No word contains a quote.
    const add = (one: string, factor: number): void => {
      for (const row of this.#match.all(`"${one}"`)) {
        const [id, score] = [Number(row['id']), Number(row['score']) * factor];
        if (score > (scores.get(id) ?? 0)) scores.set(id, score);
      }
    };
    add(word, 1);
    for (const other of others) add(other, OTHER_WORD);
    return scores;
  }
}

// Moves copies of a tool behind other tools, so that a short list of results shows different tools.

/** Part of the words of the shorter description that the longer one contains, if both describe one tool. */
const SAME_DESCRIPTION = 0.5;
/** Results whose copies are found. Later ones keep their order. */
const MAX_COMPARED = 60;

interface Told {
  /** The words of the name, in order. */
  readonly name: readonly Concept[];
  readonly description: ReadonlySet<string>;
}

function told({ name, description = '' }: ToolDefinition): Told {
  const stems = conceptsIn(description).flatMap(({ word }) => stemsIn(word));
  return { name: everyWord(spaced(name)), description: new Set(stems) };
}

/** True if two names have the same words, or words with the same meaning. One may have a prefix, such as its product. */
function isSameName(a: readonly Concept[], b: readonly Concept[]): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (long.length - short.length > 1) return false;
  const rest = long.slice(long.length - short.length);
  return short.every(({ word }, at) => rest[at]?.word === word || rest[at]?.others.includes(word) === true);
}

/** Part of the smaller set that the larger one contains, 0 to 1. */
function contained(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const smaller = Math.min(a.size, b.size);
  return smaller === 0 ? 0 : a.intersection(b).size / smaller;
}

/** The same results with copies of earlier ones at the end. */
export function distinctFirst<T>(results: readonly T[], definitionOf: (result: T) => ToolDefinition): T[] {
  const shown: Told[] = [];
  const [first, copies]: [T[], T[]] = [[], []];
  for (const result of results.slice(0, MAX_COMPARED)) {
    const one = told(definitionOf(result));
    const isCopy = shown.some(
      (other) => isSameName(one.name, other.name) && contained(one.description, other.description) >= SAME_DESCRIPTION,
    );
    (isCopy ? copies : first).push(result);
    if (!isCopy) shown.push(one);
  }
  return [...first, ...copies, ...results.slice(MAX_COMPARED)];
}
