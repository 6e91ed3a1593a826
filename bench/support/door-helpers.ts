/** The two helpers of the benchmarks without UDP. */
import { LabDaemon } from '../../test/support/lab/daemons.ts';
import { type Internet, OTHER_PUBLIC } from '../../test/support/lab/internet.ts';

/** In two networks, for which nodes wait. */
const HELPERS = ['203.0.113.10', '198.51.100.11'];
export const BOOTSTRAP: readonly string[] = HELPERS.map((host) => `${host}:4121`);
export const NO_HELP = 'help_others = false\n';
/** A called node that refuses to meet at a helper. */
export const NO_LANE = `${NO_HELP}disable_relay = true\n`;

export type Start = typeof LabDaemon.start;

/** Starts daemons that stop with the stack. */
export function startWith(daemons: AsyncDisposableStack): Start {
  return async (...args) => daemons.use(await LabDaemon.start(...args));
}

/** Starts both helpers. @param config lines of their configuration files */
export async function startHelpers(internet: Internet, start: Start, config = ''): Promise<readonly LabDaemon[]> {
  const helpers = [
    await start(await internet.publicMachine('helper', [10]), [], config),
    await start(await internet.publicMachine('helper2', [11], OTHER_PUBLIC[0]), BOOTSTRAP.slice(0, 1), config),
  ];
  for (const one of helpers) await one.until('strangers reach a helper', ({ nat_type }) => nat_type === 1);
  return helpers;
}
