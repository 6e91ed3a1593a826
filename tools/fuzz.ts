/**
 * `npm run fuzz -- [options] [target …]`: fuzzes every decoder and protocol that strangers can reach, or the named
 * targets. See CONTRIBUTING.md.
 *
 * `--seconds 60` per target, or `--inputs 1000000` per target. `--seed 1` selects the inputs. `--list` prints the
 * targets. Failing inputs are stored in `test/fuzz/corpus/`, and the tests run them again.
 */
import { relative } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { corpusOf, storeInput } from '../test/fuzz/engine/corpus.ts';
import { Fuzzer, type FuzzReport } from '../test/fuzz/engine/fuzzer.ts';
import type { FuzzTarget } from '../test/fuzz/engine/target.ts';
import { TARGETS } from '../test/fuzz/targets/index.ts';

/** CPU seconds that this process has used. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Unhandled errors. They belong to the input that is running. */
let unhandled: unknown;
const UNHANDLED_EVENTS = ['uncaughtException', 'unhandledRejection'] as const;

function recordUnhandled(error: unknown): void {
  unhandled ??= error ?? new Error('an empty value was thrown');
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
  console.log(`  stored as ${relative(process.cwd(), storeInput(target.name, finding.input))}`);
}

/** Length of a run: `inputs` if given, otherwise `seconds`. */
interface Length {
  readonly seconds: number;
  readonly inputs: number | null;
}

async function fuzz(target: FuzzTarget, length: Length, seed: number): Promise<boolean> {
  const prepared = await target.prepare();
  for (const event of UNHANDLED_EVENTS) process.on(event, recordUnhandled);
  const begin = cpuSeconds();
  const end = performance.now() + 1000 * length.seconds;
  try {
    const isOver = (inputs: number) =>
      length.inputs === null ? inputs % 64 === 0 && performance.now() >= end : inputs >= length.inputs;
    const isEnough = (inputs: number) => unhandled !== undefined || isOver(inputs);
    const run = async (input: Uint8Array) => {
      const outcome = await prepared.run(input);
      if (unhandled === undefined) return outcome;
      const error = unhandled;
      unhandled = undefined;
      throw error;
    };
    const report = await new Fuzzer(target, { ...prepared, run }, seed).run(corpusOf(target.name), isEnough);
    show(target, report, cpuSeconds() - begin);
    return report.finding === null;
  } finally {
    for (const event of UNHANDLED_EVENTS) process.off(event, recordUnhandled);
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
if (unknown.length > 0) throw new Error(`Unknown target: ${unknown.join(', ')}. Use --list to see all targets.`);
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
