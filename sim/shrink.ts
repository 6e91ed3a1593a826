/**
 * Reduces a failing simulation: less time, fewer nodes, agents, users and kinds of faults, as long as the same guarantee is
 * broken. Prints the remaining options and the end of the timeline.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FAULT_KINDS, USER_NAMES } from './names.ts';
import { type Outcome, simulate } from './runs.ts';

const ROOT: string = join(import.meta.dirname, '..');
/** Other options give other events, so a smaller world may need another seed. */
const SEEDS_TRIED = 3;
const MIN_NODES = 2;
const LINES_SHOWN = 60;

interface Size {
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly agents: number;
  readonly actions: number;
  readonly users: readonly string[];
  readonly faults: readonly string[];
}

function argsOf({ seed, nodes, days, agents, actions, users, faults }: Size): string[] {
  const numbers = { seed, nodes, days, agents, actions };
  return [
    ...Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, `${value}`]),
    ...['--users', users.join(), '--faults', faults.length === 0 ? 'none' : faults.join()],
  ];
}

/** Smaller sizes to try, the smallest first. */
function* smaller(size: Size): Generator<Size> {
  const { nodes, days, agents, actions, users, faults } = size;
  if (faults.length > 0) yield { ...size, faults: [] };
  for (const part of [4, 2]) if (days > 0.01) yield { ...size, days: days / part };
  for (let fewer = MIN_NODES; fewer < nodes; fewer++) yield { ...size, nodes: fewer };
  if (users.length > 1) for (const one of users) yield { ...size, users: [one] };
  if (users.length > 1) for (const one of users) yield { ...size, users: users.filter((other) => other !== one) };
  if (faults.length > 1) for (const one of faults) yield { ...size, faults: [one] };
  for (const one of faults) yield { ...size, faults: faults.filter((other) => other !== one) };
  if (agents > 1) yield { ...size, agents: 1 };
  if (actions > 2) yield { ...size, actions: actions / 2 };
}

/** The smallest size found that breaks the guarantee. */
async function shrink(size: Size, guarantee: string): Promise<Size> {
  for (const candidate of smaller(size)) {
    for (let seed = size.seed; seed < size.seed + SEEDS_TRIED; seed++) {
      const smallerOne = { ...candidate, seed };
      const { guarantees, seconds } = await simulate(ROOT, argsOf(smallerOne));
      const isSame = guarantees.includes(guarantee);
      console.error(`${isSame ? 'fails too' : 'passes'} (${seconds.toFixed(0)} s): ${argsOf(smallerOne).join(' ')}`);
      if (isSame) return await shrink(smallerOne, guarantee);
    }
  }
  return size;
}

/** The lines of the timeline up to a violation that name a node or an agent of it, and all faults. */
function story({ timeline }: Outcome, guarantee: string): readonly string[] {
  const at = timeline.findIndex((line) => line.includes(`VIOLATION of "${guarantee}"`));
  const names = new Set(timeline[at]?.match(/\b[a-h]?n?\d+\b/g) ?? []);
  const isPart = (line: string): boolean => line.includes('fault') || [...names].some((name) => line.includes(name));
  return timeline
    .slice(0, at + 1)
    .filter(isPart)
    .slice(-LINES_SHOWN);
}

export async function main(): Promise<void> {
  const { values } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '6' },
      days: { type: 'string', default: '0.25' },
      agents: { type: 'string', default: '2' },
      actions: { type: 'string', default: '20' },
      users: { type: 'string', default: USER_NAMES.join() },
      faults: { type: 'string', default: FAULT_KINDS.join() },
    },
  });
  const size: Size = {
    seed: Number(values.seed),
    nodes: Number(values.nodes),
    days: Number(values.days),
    agents: Number(values.agents),
    actions: Number(values.actions),
    users: values.users.split(','),
    faults: values.faults === 'none' ? [] : values.faults.split(','),
  };
  const { guarantees } = await simulate(ROOT, argsOf(size));
  const [guarantee] = guarantees;
  if (guarantee === undefined) return console.log('All guarantees hold.');
  console.error(`broken: ${guarantees.join('; ')}`);
  const smallest = await shrink(size, guarantee);
  const outcome = await simulate(ROOT, [...argsOf(smallest), '--timeline']);
  console.log(`npm run sim -- ${argsOf(smallest).join(' ')}`);
  for (const line of story(outcome, guarantee)) console.log(line);
}
