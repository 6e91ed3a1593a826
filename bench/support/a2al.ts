/**
 * The Go daemon of A2AL, beside which svcd is measured where it is installed: `SVCD_BENCH_A2AL` is the path of its
 * program, `a2al/bin/a2ald` of the Python wheel `a2al`. `PolledDaemon` starts it.
 */
import type { Command } from './polled-daemon.ts';

const program = process.env['SVCD_BENCH_A2AL'];

/** Null where there is none to compare with. */
export const A2AL: Command | null = program === undefined || program === '' ? null : [program];
