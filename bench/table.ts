/** The shape of a benchmark's result, and how it is printed. */

export interface BenchRow {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The same measurement of a plain program in the same run. */
  readonly yardstick?: number;
  /** Value over yardstick. */
  readonly ratio?: number;
  /** Target as text: `≥ 0.2`, `≤ 5 ms`. */
  readonly aim?: string;
  /** Whether the aim is reached. */
  readonly ok?: boolean;
}

export interface BenchTable {
  readonly title: string;
  readonly rows: readonly BenchRow[];
}

/** Three significant digits: more would be noise. */
function short(value: number): string {
  return Math.abs(value) >= 1000 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString();
}

/** The table as text, one line a row. */
export function formatTable({ title, rows }: BenchTable): string {
  const head = ['what', 'value', 'yardstick', 'ratio', 'aim', ''];
  const cells = rows.map((row) => [
    row.what,
    `${short(row.value)} ${row.unit}`,
    row.yardstick === undefined ? '' : `${short(row.yardstick)} ${row.unit}`,
    row.ratio === undefined ? '' : row.ratio.toFixed(2),
    row.aim ?? '',
    row.ok === undefined ? '' : row.ok ? 'ok' : 'missed',
  ]);
  const widths = head.map((name, i) => Math.max(name.length, ...cells.map((line) => line[i]?.length ?? 0)));
  const line = (texts: readonly string[]): string =>
    texts
      .map((t, i) => t.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [title, line(head), line(widths.map((w) => '─'.repeat(w))), ...cells.map(line)].join('\n');
}

/** The p-quantile (0 to 1) of samples, by the nearest rank. */
export function quantile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length) - 1))];
  if (value === undefined) throw new RangeError('no samples');
  return value;
}
