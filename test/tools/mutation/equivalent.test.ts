import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isEquivalent } from '../../../tools/mutation/equivalent.ts';
import { applyMutant, mutantsOf } from '../../../tools/mutation/generate.ts';

/** The mutants of a source text that change nothing. */
function equivalents(source: string): string[] {
  const all = mutantsOf('src/x.ts', source);
  return all.filter((mutant) => isEquivalent(source, mutant)).map((mutant) => applyMutant(source, mutant));
}

test('a selection of the larger or smaller value does not depend on equal values', () => {
  assert.deepEqual(equivalents('export const f = (a: number, b: number) => (a < b ? a : b);'), [
    'export const f = (a: number, b: number) => (a <= b ? a : b);',
  ]);
  assert.deepEqual(equivalents('export const f = (a: number, b: number) => (a > b ? 1 : -1);'), [
    'export const f = (a: number, b: number) => (a >= b ? 1 : -1);',
  ]);
  assert.deepEqual(equivalents('export const f = (a: number, b: number) => (a < b ? 2 : 1);'), []);
});

test('faults that leave the compiled code as it is change nothing', () => {
  assert.deepEqual(equivalents('export function f(a: boolean): void { if (a) return; }'), [
    'export function f(a: boolean): void { if (true) return; }',
    'export function f(a: boolean): void { if (false) return; }',
  ]);
  assert.deepEqual(equivalents('export function f(a: () => void): void { if (true) a(); }'), []);
});
