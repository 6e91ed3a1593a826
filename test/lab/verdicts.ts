/** Compares the results of a pair with the promised ones. */
import { quantile } from '../../bench/table.ts';
import { isConePair, type Pair, pairName, promised } from './places.ts';
import { isRelayedPath, type Tried } from './tries.ts';

/** Deadline for every connection, milliseconds. */
const CONNECT_MS = 3_000;
/** Deadline for the error that only a relay would work, milliseconds. */
const REFUSE_MS = 3_000;
/** 95th percentile of the setup time if both routers keep ports, at a round trip of 40 ms: milliseconds. */
const CONE_MS = 300;
/** The same if only a relay works. */
const RELAY_MS = 500;
/** Required share of attempts that become direct, if a direct path is promised. */
const DIRECT_PART = 0.99;

export interface Verdict {
  readonly pair: Pair;
  /** One table row. */
  readonly cells: readonly string[];
  /** Missed promises, in words. */
  readonly missed: readonly string[];
}

export const HEAD = ['pair', 'tries', 'connected', 'p50', 'p95', 'max', 'first by', 'direct', 'direct p95', '412'];

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}

/** A count and its share: `19 (95 %)`. */
function share(some: number, all: number): string {
  const percent = (100 * some) / all;
  return `${some} (${Number.isInteger(percent) ? percent : percent.toFixed(1)} %)`;
}

/** How often each path was first: `punched 19, relay 1`. */
function counted(paths: readonly string[]): string {
  return [...new Set(paths)]
    .map((path) => `${path === '' ? 'none' : path} ${paths.filter((one) => one === path).length}`)
    .join(', ');
}

export function judge(pair: Pair, tries: readonly Tried[]): Verdict {
  const missed: string[] = [];
  const hold = (isKept: boolean, what: string): void => {
    if (!isKept) missed.push(`${pairName(pair)}: ${what}`);
  };
  const connected = tries.filter(({ error }) => error === undefined);
  const setUps = tries.map((one) => one.ms);
  const [p50, p95, max] = [quantile(setUps, 0.5), quantile(setUps, 0.95), Math.max(...setUps)];
  const direct = connected.filter(({ last }) => !isRelayedPath(last));
  const promise = promised(pair);
  const isDirect = promise === 'direct';
  hold(connected.length === tries.length, `${tries.length - connected.length} of ${tries.length} tries failed`);
  hold(max <= CONNECT_MS, `connected after ${ms(max)}, promised within ${ms(CONNECT_MS)}`);
  if (isDirect) hold(direct.length >= DIRECT_PART * tries.length, `${direct.length} of ${tries.length} became direct`);
  if (isConePair(pair)) hold(p95 <= CONE_MS, `set-up of ${ms(p95)} (p95), promised ${ms(CONE_MS)}`);
  if (promise === 'relay') hold(p95 <= RELAY_MS, `by relay after ${ms(p95)} (p95), promised ${ms(RELAY_MS)}`);
  const refusals = tries.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal]));
  const refused = refusals.filter(({ status }) => status === 412);
  const slowest = Math.max(0, ...refusals.map((one) => one.ms));
  hold(refused.length === refusals.length, `without relays: ${refusals.map(({ status }) => status).join(', ')}`);
  hold(slowest <= REFUSE_MS, `412 after ${ms(slowest)}, promised within ${ms(REFUSE_MS)}`);
  return {
    pair,
    cells: [
      pairName(pair),
      String(tries.length),
      share(connected.length, tries.length),
      ms(p50),
      ms(p95),
      ms(max),
      counted(tries.map(({ first }) => first)),
      isDirect ? share(direct.length, tries.length) : '–',
      isDirect && direct.length > 0
        ? ms(
            quantile(
              direct.map((one) => one.lastMs),
              0.95,
            ),
          )
        : '–',
      refusals.length === 0 ? '–' : `${refused.length}, ${ms(slowest)}`,
    ],
    missed,
  };
}

/** Summary of all attempts in one line: connected ones, and direct ones among those expected to be direct. */
export function pooled(results: ReadonlyMap<Pair, readonly Tried[]>): string {
  const all = [...results.values()].flat();
  const promising = [...results].flatMap(([pair, tries]) => (promised(pair) === 'direct' ? tries : []));
  const connected = all.filter(({ error }) => error === undefined).length;
  const direct = promising.filter(({ error, last }) => error === undefined && !isRelayedPath(last)).length;
  const parts = [`${share(connected, all.length)} of ${all.length} tries connected`];
  if (promising.length > 0)
    parts.push(`${share(direct, promising.length)} of the ${promising.length} that are promised it became direct`);
  return `Together: ${parts.join('; ')}.`;
}

/** Text rows as columns. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
