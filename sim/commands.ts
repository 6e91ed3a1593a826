/** The command line of the simulator: `npm run sim -- records --seed 1 --nodes 100 --hours 1`. */
import { parseArgs } from 'node:util';
import { SimulatedRecordNetwork } from './record-network.ts';
import { random, schedule } from './take-over.ts';

const HELP = `npm run sim -- records [options]

Runs the record network of many nodes in virtual time, and looks up agents all the time.

  --seed N      everything that is random comes from this number (default 1)
  --nodes N     nodes at one time (default 100)
  --hours H     simulated hours after all have joined (default 1)
  --session M   median minutes that a node stays; 0: no node leaves (default 60)
  --lookups R   look-ups per second (default 2)
  --nat P       part of the nodes that are behind a NAT, 0 to 1 (default 0.3)
  --faults      lost datagrams, partitions, machines that sleep
  --aim P       exit with status 1 if a smaller part of the look-ups succeeds, 0 to 1 (default 0.999)

Equal options give the same events on every machine: compare \`eventHash\`.`;

function numberOf(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= min && value <= max))
    throw new RangeError(`--${name}: a number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
}

/** @param seed of this simulation */
export async function main(seed: number): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      nodes: { type: 'string', default: '100' },
      hours: { type: 'string', default: '1' },
      session: { type: 'string', default: '60' },
      lookups: { type: 'string', default: '2' },
      nat: { type: 'string', default: '0.3' },
      faults: { type: 'boolean', default: false },
      aim: { type: 'string', default: '0.999' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || positionals[0] !== 'records') {
    console.log(HELP);
    process.exit(values.help ? 0 : 2);
  }
  const network = new SimulatedRecordNetwork(
    {
      nodes: numberOf('nodes', values.nodes, 2, 100_000),
      hours: numberOf('hours', values.hours, 0, 10_000),
      medianSessionMinutes: numberOf('session', values.session, 0, 1_000_000),
      lookupsPerSecond: numberOf('lookups', values.lookups, 0.001, 10_000),
      behindNat: numberOf('nat', values.nat, 0, 1),
      hasFaults: values.faults,
    },
    schedule,
    random,
  );
  const figures = await network.run((text) => console.error(`${process.uptime().toFixed(0)} s: ${text}`));
  console.log(JSON.stringify({ seed, ...figures, events: schedule.ran }, null, 2));
  for (const miss of network.missed) console.error(miss);
  process.exit(figures.found >= numberOf('aim', values.aim, 0, 1) * figures.lookups ? 0 : 1);
}
