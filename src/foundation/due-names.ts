/** Due times in memory for a `DueQueue`. The work of a name is stored elsewhere, and is found again after a restart. */
import type { Due, DueTable } from './due-queue.ts';

interface Plan {
  readonly at: number;
  readonly attempts: number;
}

export class DueNames implements DueTable<string> {
  readonly #plans = new Map<string, Plan>();
  readonly #keyOf: (name: string) => string;

  /** @param keyOf see `Due.key`. Default: the name */
  constructor(keyOf: (name: string) => string = (name) => name) {
    this.#keyOf = keyOf;
  }

  has(name: string): boolean {
    return this.#plans.has(name);
  }

  /** Plans a name for a time, or keeps an earlier one. */
  plan(name: string, at: number): void {
    const known = this.#plans.get(name);
    if (known === undefined || at < known.at) this.#plans.set(name, { at, attempts: known?.attempts ?? 0 });
  }

  cancel(name: string): void {
    this.#plans.delete(name);
  }

  due(now: number, limit: number, except: readonly string[]): readonly Due<string>[] {
    const skipped = new Set(except);
    return [...this.#plans]
      .filter(([name, { at }]) => at <= now && !skipped.has(this.#keyOf(name)))
      .sort(([, a], [, b]) => a.at - b.at)
      .slice(0, limit)
      .map(([name, { attempts }]) => ({ id: name, key: this.#keyOf(name), attempts, item: name }));
  }

  nextDue(after: number): number | null {
    const times = [...this.#plans.values()].map(({ at }) => at).filter((at) => at > after);
    return times.length === 0 ? null : times.reduce((first, at) => Math.min(first, at));
  }

  postpone({ item, attempts }: Due<string>, at: number): void {
    this.#plans.set(item, { at, attempts: attempts + 1 });
  }

  makeDue(now: number, after: number, until: number): void {
    for (const [name, { at, attempts }] of this.#plans)
      if (at > after && at <= until) this.#plans.set(name, { at: now, attempts });
  }
}
