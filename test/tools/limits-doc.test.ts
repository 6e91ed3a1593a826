import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { constantsIn, evaluate, isLimit, withUnit } from '../../tools/limits-doc.ts';

const SOURCE = `/** Not of the constant below. */
import { x } from './x.ts';

const MAX_MUTE = 3;
/** Longest thing,
 *  over two lines. */
export const MAX_THING_BYTES: number = 64 * 1024;
const KEY_BYTES = 32;
/** Not of a number. */
const MAX_NAME = 'a';
  const MAX_INNER = 1;
/** Time. */
const WAIT_MS =
  2 * 60_000;
/** No limit. */
const OTHER = 5;
`;

test('finds top-level numbers with names of limits', () => {
  assert.deepEqual(constantsIn(SOURCE).filter(isLimit), [
    { name: 'MAX_MUTE', source: '3', meaning: '', isExported: false },
    { name: 'MAX_THING_BYTES', source: '64 * 1024', meaning: 'Longest thing, over two lines.', isExported: true },
    { name: 'WAIT_MS', source: '2 * 60_000', meaning: 'Time.', isExported: false },
  ]);
});

test('evaluates products, sums, differences, powers and names', () => {
  const named = new Map([
    ['A', '2 * B'],
    ['B', '1_000'],
    ['LOOP', 'LOOP + 1'],
  ]);
  const cases: [string, number | undefined][] = [
    ['5', 5],
    ['2 + 3 * 4', 14],
    ['4096 - 3 - 1', 4092],
    ['A + 1', 2001],
    ['1024 ** 2 * 2', 2_097_152],
    ['0.5 * B', 500],
    ['UNKNOWN', undefined],
    ['LOOP', undefined],
    ['Math.max(1, 2)', undefined],
  ];
  for (const [source, value] of cases) assert.equal(evaluate(source, named), value, source);
});

test('shows a number in the unit of its name', () => {
  const cases: [string, number, string][] = [
    ['A_BYTES', 65_536, '64 KiB'],
    ['A_BYTES', 1000, '1,000 bytes'],
    ['A_BYTES_PER_AGENT', 1024, '1 KiB'],
    ['A_MS', 500, '500 ms'],
    ['A_MS', 90_000, '90 s'],
    ['A_S', 3600, '1 h'],
    ['A_S', 86_400, '24 h'],
    ['A_S', 604_800, '7 days'],
    ['A_S', 0.5, '500 ms'],
    ['A_PER_S', 0.1, '0.1 per s'],
    ['MAX_A', 10_000, '10,000'],
    ['MAX_A', 0.5, '0.5'],
    ['A_MS', 0, '0 ms'],
  ];
  for (const [name, value, text] of cases) assert.equal(withUnit(name, value), text, `${name} ${value}`);
});

test('docs/limits.md is up to date', () => {
  const { status, stderr } = spawnSync(process.execPath, ['tools/limits-doc.ts', '--check'], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});
