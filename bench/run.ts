/**
 * `npm run bench [name …]`: runs the benchmarks of this folder, prints their tables and appends them to bench/results/.
 * A module with an exported `run` is a benchmark.
 */
import { appendFileSync, mkdirSync, readdirSync } from 'node:fs';
import { arch, cpus, totalmem } from 'node:os';
import { type BenchTable, formatTable } from './table.ts';

interface BenchModule {
  readonly run?: () => Promise<BenchTable>;
}

const SUPPORT = new Set(['run.ts', 'table.ts']);
const results = new URL('results/', import.meta.url);
const selected = process.argv.slice(2);
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && !SUPPORT.has(file))
  .map((file) => file.slice(0, -'.ts'.length))
  .filter((name) => selected.length === 0 || selected.includes(name));

const machine = {
  node: process.version,
  arch: arch(),
  cpus: cpus().length,
  memory_gib: Math.round(totalmem() / 2 ** 30),
};
mkdirSync(results, { recursive: true });
let missed = 0;
for (const name of names) {
  const { run }: BenchModule = await import(`./${name}.ts`);
  if (run === undefined) continue;
  const table = await run();
  console.log(`\n${formatTable(table)}`);
  missed += table.rows.filter((row) => row.ok === false).length;
  appendFileSync(
    new URL(`${name}.jsonl`, results),
    `${JSON.stringify({ at: new Date().toISOString(), machine, rows: table.rows })}\n`,
  );
}
console.log(missed === 0 ? '\nAll aims reached.' : `\n${missed} aims missed.`);
process.exit(0);
