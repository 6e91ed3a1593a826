/** The newest log lines in memory, as the logger writes them, without secrets. */
import { isObject, parseJson } from './json.ts';
import { LOG_LEVELS, type LogLevel } from './log.ts';

/** Maximum number of lines. */
export const MAX_LOG_LINES = 2_000;
/** Maximum size of all lines, in characters. */
const MAX_LOG_CHARS = 2 * 1024 * 1024;

/** A line of the log. */
export interface LogLine {
  /** Increases by one with each line since the start. */
  readonly seq: number;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly level: LogLevel;
  /** The component that logged the line; null for the daemon itself. */
  readonly component: string | null;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Kept {
  readonly seq: number;
  readonly json: string;
}

function lineOf({ seq, json }: Kept): LogLine[] {
  const parsed = parseJson(json);
  if (!isObject(parsed)) return [];
  const { time, level, component, msg, ...fields } = parsed;
  const known = LOG_LEVELS.find((one) => one === level);
  if (known === undefined) return [];
  const from = typeof component === 'string' ? component : null;
  return [{ seq, at: String(time), level: known, component: from, message: String(msg), fields }];
}

export class RecentLog {
  readonly #lines: Kept[] = [];
  #chars = 0;
  #seq = 0;

  /** Adds a line as the logger wrote it, in JSON. */
  add(json: string): void {
    this.#lines.push({ seq: ++this.#seq, json });
    this.#chars += json.length;
    while (this.#lines.length > MAX_LOG_LINES || this.#chars > MAX_LOG_CHARS)
      this.#chars -= this.#lines.shift()?.json.length ?? this.#chars;
  }

  /** The number of the newest line; 0 if there is none. */
  get lastSeq(): number {
    return this.#seq;
  }

  /** The newest lines after `afterSeq` with at least this level, oldest first. */
  read(level: LogLevel, limit: number, afterSeq: number): readonly LogLine[] {
    const least = LOG_LEVELS.indexOf(level);
    const found: LogLine[] = [];
    for (const kept of this.#lines.toReversed()) {
      if (kept.seq <= afterSeq || found.length >= limit) break;
      found.push(...lineOf(kept).filter((line) => LOG_LEVELS.indexOf(line.level) >= least));
    }
    return found.reverse();
  }
}
