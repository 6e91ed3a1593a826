/**
 * `npm run fuzz -- [options] [target …]`: feeds made-up inputs to every decoder and protocol that a
 * stranger reaches, or to the named ones, and says how many and what broke. See CONTRIBUTING.md.
 *
 * `--seconds 60` for each target, or `--inputs 1000000` however long they take; `--seed 1` which inputs; `--list` only names the targets. What broke
 * a target is kept in `test/fuzz/corpus/`, and the tests feed it again.
 */
import { relative } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { corpusOf, keep } from '../test/fuzz/engine/corpus.ts';
import { Fuzzer, type FuzzReport } from '../test/fuzz/engine/fuzzer.ts';
import type { FuzzTarget } from '../test/fuzz/engine/target.ts';
import { TARGETS } from '../test/fuzz/targets/index.ts';

/** Seconds that this process has computed. */
function worked(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Errors that nobody waited for: whoever made them, it was the input of that moment. */
let escaped: unknown;
const ESCAPES = ['uncaughtException', 'unhandledRejection'] as const;

function escape(error: unknown): void {
  escaped ??= error ?? new Error('nothing was thrown');
}

function show(target: FuzzTarget, { inputs, outcomes, finding, slowest }: FuzzReport, seconds: number): void {
  const rate = Math.round(inputs / seconds).toLocaleString('en-US');
  const { ms, input } = slowest;
  console.log(
    `${target.name.padEnd(26)} ${inputs.toLocaleString('en-US').padStart(11)} inputs ${rate.padStart(8)}/s of CPU ${String(outcomes.size).padStart(5)} outcomes  slowest ${ms.toFixed(1)} ms (${input.length} bytes)`,
  );
  if (finding === null) return;
  const { error } = finding;
  console.log(styleText('red', `  ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`));
  console.log(`  kept as ${relative(process.cwd(), keep(target.name, finding.input))}`);
}

/** How long to go on with a target: so many seconds, or so many inputs where they are given. */
interface Length {
  readonly seconds: number;
  readonly inputs: number | null;
}

async function fuzz(target: FuzzTarget, length: Length, seed: number): Promise<boolean> {
  const prepared = await target.prepare();
  for (const event of ESCAPES) process.on(event, escape);
  const begin = worked();
  const end = performance.now() + 1000 * length.seconds;
  try {
    const isOver = (inputs: number) =>
      length.inputs === null ? inputs % 64 === 0 && performance.now() >= end : inputs >= length.inputs;
    const isEnough = (inputs: number) => escaped !== undefined || isOver(inputs);
    const run = async (input: Uint8Array) => {
      const said = await prepared.run(input);
      if (escaped === undefined) return said;
      const error = escaped;
      escaped = undefined;
      throw error;
    };
    const report = await new Fuzzer(target, { ...prepared, run }, seed).run(corpusOf(target.name), isEnough);
    show(target, report, worked() - begin);
    return report.finding === null;
  } finally {
    for (const event of ESCAPES) process.off(event, escape);
    await prepared.close?.();
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    inputs: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    list: { type: 'boolean', default: false },
  },
});
const unknown = positionals.filter((name) => !TARGETS.some((target) => target.name === name));
if (unknown.length > 0) throw new Error(`there is no target ${unknown.join(', ')}`);
const chosen = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (values.list) for (const { name } of chosen) console.log(name);
else {
  const inputs = values.inputs === undefined ? null : Number(values.inputs);
  const length = { seconds: Number(values.seconds), inputs };
  const each = inputs === null ? `${values.seconds} s` : `${values.inputs} inputs`;
  console.log(`${chosen.length} targets, ${each} each, --seed ${values.seed}`);
  let broken = 0;
  for (const target of chosen) if (!(await fuzz(target, length, Number(values.seed)))) broken++;
  console.log(broken === 0 ? 'no findings' : `${broken} targets with findings`);
  process.exit(broken === 0 ? 0 : 1);
}
