/**
 * Reduces a failing simulation: less time, fewer nodes, agents, users, kinds of faults and single faults, as long as the
 * same guarantee is broken. Prints the remaining options and the events before the violation.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ALL_FAULT_KINDS, DEFAULT_USERS, FAULT_KINDS } from './names.ts';
import { type Outcome, simulate } from './runs.ts';

const ROOT: string = join(import.meta.dirname, '..');
/** Other options give other events, so a smaller world may need another seed. */
const SEEDS_TRIED = 3;
const MIN_NODES = 2;
/** Users, and kinds of faults, that are tried one by one. */
const MAX_ALONE = 4;
/** Maximum number of faults that are omitted one by one. */
const MAX_SINGLE_FAULTS = 12;
const MS_PER_DAY: number = 24 * 3_600_000;
/** Simulated time after a violation. */
const SLACK_DAYS: number = 60_000 / MS_PER_DAY;
const LINES_SHOWN = 60;

/** Options of a simulation that can be reduced. */
export interface Size {
  readonly seed: number;
  readonly nodes: number;
  readonly liars: number;
  readonly days: number;
  readonly agents: number;
  readonly actions: number;
  readonly users: readonly string[];
  readonly faults: readonly string[];
  /** Numbers of omitted faults. */
  readonly without: readonly number[];
  /** Other options. They do not change. */
  readonly fixed: readonly string[];
}

/** How a guarantee was broken. */
interface Failure {
  /** Simulated days with users and faults until then. */
  readonly days: number;
  /** The number of the last fault. */
  readonly lastFault: number;
  /** Kinds of faults that occurred. */
  readonly kinds: readonly string[];
}

/** Runs a simulation. Null if the guarantee holds. */
export type Trial = (size: Size) => Promise<Failure | null>;

export function argsOf({ seed, nodes, liars, days, agents, actions, users, faults, without, fixed }: Size): string[] {
  const numbers = { seed, nodes, liars, days, agents, actions };
  return [
    ...Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, `${value}`]),
    ...['--users', users.join(), '--faults', faults.length === 0 ? 'none' : faults.join()],
    ...(without.length === 0 ? [] : ['--without', without.join()]),
    ...fixed,
  ];
}

/** A smaller size, and how many seeds are worth a trial. */
type Candidate = [size: Size, seeds: number];

/** Smaller sizes to try. */
type Reduction = (size: Size, failure: Failure) => Generator<Candidate>;

/** Each half, or each alone if there are few. */
function partsOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  if (all.length < 2) return [];
  if (all.length <= MAX_ALONE) return all.map((one) => [one]);
  const half = all.length >> 1;
  return [all.slice(0, half), all.slice(half)];
}

/** The reductions that save most come first. */
const REDUCTIONS: readonly Reduction[] = [
  function* endEarlier(size, failure) {
    // Until the violation, the events are the same.
    const enough = failure.days + SLACK_DAYS;
    if (enough < 0.9 * size.days) yield [{ ...size, days: enough }, 1];
  },
  function* occurredKinds(size, { kinds }) {
    if (kinds.length < size.faults.length) yield [{ ...size, faults: kinds, without: [] }, SEEDS_TRIED];
  },
  function* fewUsers(size) {
    for (const users of partsOf(size.users)) yield [{ ...size, users }, SEEDS_TRIED];
  },
  function* fewKindsOfFaults(size) {
    const { faults } = size;
    if (faults.length > 0) yield [{ ...size, faults: [], without: [] }, SEEDS_TRIED];
    for (const some of partsOf(faults)) yield [{ ...size, faults: some, without: [] }, SEEDS_TRIED];
  },
  function* fewerNodes(size) {
    const { nodes, liars } = size;
    if (liars > 0) yield [{ ...size, liars: 0 }, SEEDS_TRIED];
    for (const fewer of new Set([MIN_NODES, Math.ceil(nodes / 2), nodes - 1]))
      if (fewer >= MIN_NODES && fewer < nodes)
        yield [{ ...size, nodes: fewer, liars: Math.min(liars, fewer - 1) }, SEEDS_TRIED];
  },
  function* lessTime(size, failure) {
    if (failure.days >= size.days && size.days > 0.01) yield [{ ...size, days: size.days / 2 }, SEEDS_TRIED];
  },
  function* fewerUsers(size) {
    const { users, agents, actions } = size;
    if (users.length > 2)
      for (const one of users) yield [{ ...size, users: users.filter((other) => other !== one) }, SEEDS_TRIED];
    if (agents > 1) yield [{ ...size, agents: 1 }, SEEDS_TRIED];
    if (actions > 2) yield [{ ...size, actions: Math.ceil(actions / 2) }, SEEDS_TRIED];
  },
  function* fewerKindsOfFaults(size) {
    const { faults } = size;
    if (faults.length > 2)
      for (const one of faults)
        yield [{ ...size, faults: faults.filter((other) => other !== one), without: [] }, SEEDS_TRIED];
  },
  function* fewerFaults(size, { lastFault }) {
    const { without, faults } = size;
    const present = Array.from({ length: lastFault }, (_, index) => index + 1).filter((one) => !without.includes(one));
    if (faults.length === 0) return;
    const leaveOut = (some: readonly number[]): Candidate => [{ ...size, without: [...without, ...some] }, 1];
    if (present.length > MAX_ALONE) for (const some of partsOf(present)) yield leaveOut(some);
    if (present.length <= MAX_SINGLE_FAULTS) for (const one of present) yield leaveOut([one]);
  },
];

/**
 * The smallest size found that breaks the guarantee.
 * @param maxRuns trials at most
 */
export async function shrink(from: Size, failure: Failure, trial: Trial, maxRuns: number): Promise<Size> {
  const tried = new Set<string>();
  let [size, last] = [from, failure];
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const reduce of REDUCTIONS) {
      for (let found = await firstOf(reduce); found !== null; found = await firstOf(reduce)) {
        [size, last] = found;
        isSmaller = true;
      }
    }
  }
  return size;

  async function firstOf(reduce: Reduction): Promise<[Size, Failure] | null> {
    for (const [candidate, seeds] of reduce(size, last)) {
      const found = await firstFailure(candidate, seeds);
      if (found !== null) return found;
    }
    return null;
  }

  async function firstFailure(candidate: Size, seeds: number): Promise<[Size, Failure] | null> {
    for (let seed = candidate.seed; seed < candidate.seed + seeds; seed++) {
      const one = { ...candidate, seed };
      const name = argsOf(one).join(' ');
      if (tried.has(name) || tried.size >= maxRuns) continue;
      tried.add(name);
      const found = await trial(one);
      if (found !== null) return [one, found];
    }
    return null;
  }
}

/** The lines of the timeline up to a violation that name a node, an agent or a text of it, and all faults. */
function story({ timeline }: Outcome, guarantee: string): readonly string[] {
  const at = timeline.findIndex((line) => line.includes(`VIOLATION of "${guarantee}"`));
  const text = timeline[at]?.slice(timeline[at]?.indexOf('VIOLATION')) ?? '';
  const names = text.match(/\b(?:[a-hn]\d+|(?:note|text|entry|connection) \d+)\b|\/call\/\d+/g) ?? [];
  const parts = names.map((name) => new RegExp(`\\b${name.replace(/^\//, '')}\\b`));
  const isPart = (line: string): boolean => line.includes('fault') || parts.some((part) => part.test(line));
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
      liars: { type: 'string', default: '0' },
      days: { type: 'string', default: '0.25' },
      agents: { type: 'string', default: '2' },
      actions: { type: 'string', default: '20' },
      users: { type: 'string', default: DEFAULT_USERS.join() },
      faults: { type: 'string', default: FAULT_KINDS.join() },
      without: { type: 'string', default: '' },
      nat: { type: 'string' },
      burst: { type: 'string' },
      trials: { type: 'string' },
      pause: { type: 'string' },
      healing: { type: 'string' },
      runs: { type: 'string', default: '100' },
    },
  });
  const { nat, burst, trials, pause, healing } = values;
  const size: Size = {
    seed: Number(values.seed),
    nodes: Number(values.nodes),
    liars: Number(values.liars),
    days: Number(values.days),
    agents: Number(values.agents),
    actions: Number(values.actions),
    users: values.users.split(','),
    faults: values.faults === 'none' ? [] : values.faults === 'all' ? ALL_FAULT_KINDS : values.faults.split(','),
    without: values.without === '' ? [] : values.without.split(',').map(Number),
    fixed: Object.entries({ nat, burst, trials, pause, healing }).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`, value],
    ),
  };
  const first = await simulate(ROOT, argsOf(size));
  const [guarantee] = first.guarantees;
  if (guarantee === undefined) {
    if (first.figures !== null) return console.log('All guarantees hold.');
    throw new Error(`The simulation did not end within ${first.seconds.toFixed(0)} s. Simulate fewer days or nodes.`);
  }
  console.error(`broken: ${first.guarantees.join('; ')}`);
  let runs = 1;
  const trial: Trial = async (one) => {
    const outcome = await simulate(ROOT, argsOf(one));
    const failure = outcome.guarantees.includes(guarantee) ? failureOf(outcome, guarantee, one) : null;
    const result = failure === null ? 'passes' : 'fails too';
    console.error(`run ${++runs}, ${outcome.seconds.toFixed(0)} s: ${result}: ${argsOf(one).join(' ')}`);
    return failure;
  };
  const smallest = await shrink(size, failureOf(first, guarantee, size), trial, Number(values.runs));
  const outcome = await simulate(ROOT, [...argsOf(smallest), '--timeline']);
  console.log(`After ${runs} runs:\nnpm run sim -- ${argsOf(smallest).join(' ')}`);
  for (const line of story(outcome, guarantee)) console.log(line);
}

/** How a guarantee was broken. A process that ended without figures may have had every kind of fault. */
function failureOf({ figures }: Outcome, guarantee: string, { days, faults }: Size): Failure {
  const violation = figures?.violations?.find((one) => one.guarantee === guarantee);
  const actedMs = violation === undefined ? Number.POSITIVE_INFINITY : violation.atMs - (figures?.begunMs ?? 0);
  const kinds = figures?.faults === undefined ? faults : Object.keys(figures.faults);
  return { days: Math.min(days, actedMs / MS_PER_DAY), lastFault: figures?.lastFault ?? 0, kinds };
}
