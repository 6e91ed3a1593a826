/**
 * A2AL's Go daemon, for comparison. `SVCD_BENCH_A2AL` is the path of its program, `a2al/bin/a2ald` of the Python wheel
 * `a2al`. `PolledDaemon` starts it.
 */
import type { Command } from './polled-daemon.ts';

const program = process.env['SVCD_BENCH_A2AL'];

/** Null without a program to compare with. */
export const A2AL: Command | null = program === undefined || program === '' ? null : [program];
