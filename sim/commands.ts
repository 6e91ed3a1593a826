/** The command line of the simulator. */
import { parseArgs } from 'node:util';
import {
  ALL_FAULT_KINDS,
  DEFAULT_USERS,
  FAULT_KINDS,
  type FaultKind,
  MORE_FAULT_KINDS,
  TRIAL_NAMES,
  type TrialName,
  USER_NAMES,
} from './names.ts';
import { Process } from './process.ts';
import { SimulatedRecordNetwork } from './record-network.ts';
import { random, schedule } from './take-over.ts';
import { TripsWorld } from './trips.ts';
import { World } from './world.ts';

const HELP = `npm run sim -- [options]

Runs complete nodes with users in virtual time, with faults, and checks that every guarantee holds.

  --seed N      everything that is random comes from this number (default 1)
  --nodes K     nodes (default 6)
  --days D      simulated days with users and faults (default 0.25)
  --agents N    agents of each node (default 2)
  --liars N     dishonest nodes among them (default 0)
  --actions N   actions of each agent per hour (default 20)
  --burst N     notes or texts that one action sends (default 1)
  --faults LIST kinds of faults, separated by commas, or all, or none. Default:
                ${FAULT_KINDS.join(', ')}. All are these and
                ${MORE_FAULT_KINDS.join(', ')}
  --without LIST  numbers of omitted faults, as in the timeline
  --healing M   minutes from the end of all faults until every guarantee must hold (default 40)
  --users LIST  which users act, separated by commas. Default: all but trials of
                ${USER_NAMES.join(', ')}
  --trials LIST which trials take place, separated by commas. Default: all of
                ${TRIAL_NAMES.join(', ')}
  --pause M     minutes between two faults, on average (default 20)
  --timeline    print everything that users did and that went wrong
  --trace       print every datagram
  --origins     print the origins of timers that remain after a stop

npm run sim -- shrink [options]     reduces a failing simulation, with the options above
npm run sim -- defects [--only NAMES] [--seeds N] [--seconds N] [--jobs N]
                                    puts defects of the past back, and looks for them

npm run sim -- coverage          users and answers of each operation in the gate
npm run sim -- trips             round trips of single steps

npm run sim -- records [options]

Runs only the record network of many nodes, and looks up agents all the time.

  --seed N      everything that is random comes from this number (default 1)
  --nodes N     nodes at one time (default 100)
  --hours H     simulated hours after all have joined (default 1)
  --session M   median minutes that a node stays; 0: no node leaves (default 60)
  --lookups R   look-ups per second (default 2)
  --nat P       part of the nodes that are behind a NAT, 0 to 1 (default 0.3)
  --faults all  lost datagrams, partitions, machines that sleep
  --report M    simulated minutes from one line with interim figures to the next (default 10)
  --aim P       exit with status 1 if a smaller part of the look-ups succeeds, 0 to 1 (default 0.999)

Equal options give the same events on every machine: compare \`eventHash\`.`;

function numberOf(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= min && value <= max))
    throw new RangeError(`--${name}: a number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
}

function faultsOf(text: string | undefined): readonly FaultKind[] {
  if (text === undefined) return FAULT_KINDS;
  if (text === 'all') return ALL_FAULT_KINDS;
  const names = text === 'none' ? [] : text.split(',');
  const kinds = ALL_FAULT_KINDS.filter((kind) => names.includes(kind));
  if (kinds.length !== names.length) throw new RangeError(`--faults: some of ${ALL_FAULT_KINDS.join(', ')}`);
  return kinds;
}

function usersOf(text: string | undefined): readonly string[] {
  const names = text?.split(',') ?? DEFAULT_USERS;
  const unknown = names.find((name) => !USER_NAMES.some((known) => known === name));
  if (unknown !== undefined) throw new RangeError(`--users: some of ${USER_NAMES.join(', ')}`);
  return names;
}

function trialsOf(text: string | undefined): readonly TrialName[] {
  const names = text?.split(',') ?? TRIAL_NAMES;
  const trials = TRIAL_NAMES.filter((name) => names.includes(name));
  if (trials.length !== names.length) throw new RangeError(`--trials: some of ${TRIAL_NAMES.join(', ')}`);
  return trials;
}

function progress(text: string): void {
  console.error(`${process.uptime().toFixed(0)} s: ${text}`);
}

/** @param seed of this simulation */
export async function main(seed: number): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      nodes: { type: 'string' },
      days: { type: 'string', default: '0.25' },
      liars: { type: 'string', default: '0' },
      agents: { type: 'string', default: '2' },
      actions: { type: 'string', default: '20' },
      burst: { type: 'string', default: '1' },
      pause: { type: 'string', default: '20' },
      timeline: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      origins: { type: 'boolean', default: false },
      hours: { type: 'string', default: '1' },
      session: { type: 'string', default: '60' },
      lookups: { type: 'string', default: '2' },
      nat: { type: 'string', default: '0.3' },
      faults: { type: 'string' },
      without: { type: 'string' },
      users: { type: 'string' },
      trials: { type: 'string' },
      healing: { type: 'string', default: '40' },
      report: { type: 'string', default: '10' },
      aim: { type: 'string', default: '0.999' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || (positionals.length > 0 && !['records', 'trips'].includes(positionals[0] ?? ''))) {
    console.log(HELP);
    process.exit(values.help ? 0 : 2);
  }
  Process.tracesTimers = values.origins;
  if (values.trace) {
    schedule.trace = (what, bytes) => console.error(what, Buffer.from(bytes).toString('hex'));
  }
  if (positionals[0] === 'trips') {
    console.log(JSON.stringify(await new TripsWorld(schedule, random).run(), null, 2));
    process.exit(0);
  }
  if (positionals.length === 0) {
    const world = new World(
      {
        nodes: numberOf('nodes', values.nodes ?? '6', 2, 1000),
        agentsPerNode: numberOf('agents', values.agents, 1, 8),
        hours: numberOf('days', values.days, 0, 10_000) * 24,
        actionsPerHour: numberOf('actions', values.actions, 0.01, 100_000),
        burst: numberOf('burst', values.burst, 1, 1000),
        behindNat: numberOf('nat', values.nat, 0, 1),
        liars: numberOf('liars', values.liars, 0, 500),
        faults: faultsOf(values.faults),
        withoutFaults: (values.without?.split(',') ?? []).map((one) => numberOf('without', one, 1, 1_000_000)),
        healingMs: numberOf('healing', values.healing, 0, 100_000) * 60_000,
        users: usersOf(values.users),
        trials: trialsOf(values.trials),
        faultPauseMinutes: numberOf('pause', values.pause, 0.1, 1_000_000),
      },
      schedule,
      random,
    );
    const figures = await world.run(progress);
    if (values.timeline) for (const line of world.timeline) console.error(line);
    const cpuSeconds = process.cpuUsage().user / 1e6;
    console.error(`${((figures.nodeDays * 3600) / cpuSeconds).toFixed(0)} node-days per hour of one core`);
    console.log(JSON.stringify({ seed, ...figures, events: schedule.ran, cpuSeconds }, null, 2));
    process.exit(figures.violations.length === 0 ? 0 : 1);
  }
  const network = new SimulatedRecordNetwork(
    {
      nodes: numberOf('nodes', values.nodes ?? '100', 2, 100_000),
      hours: numberOf('hours', values.hours, 0, 10_000),
      medianSessionMinutes: numberOf('session', values.session, 0, 1_000_000),
      lookupsPerSecond: numberOf('lookups', values.lookups, 0.001, 10_000),
      behindNat: numberOf('nat', values.nat, 0, 1),
      hasFaults: values.faults !== undefined && values.faults !== 'none',
      reportMinutes: numberOf('report', values.report, 0.01, 100_000),
    },
    schedule,
    random,
  );
  const figures = await network.run(progress);
  console.log(JSON.stringify({ seed, ...figures, events: schedule.ran }, null, 2));
  for (const miss of network.missed) console.error(miss);
  process.exit(figures.found >= numberOf('aim', values.aim, 0, 1) * figures.lookups ? 0 : 1);
}
