/** Seeds from the test vectors. */
import { hex, readVectors } from '../../support/vectors.ts';

/** The values at a path such as `valid.*.record_hex`; a star selects every member. */
function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  const [key, ...rest] = path;
  if (key === undefined) return value === undefined ? [] : [value];
  if (typeof value !== 'object' || value === null) return [];
  if (key === '*') return Object.values(value).flatMap((member: unknown) => valuesAt(member, rest));
  return valuesAt(Reflect.get(value, key), rest);
}

/** The texts of a vector file at a path such as `valid.*.text`. */
export function vectorTexts(file: string, path: string): string[] {
  const texts = valuesAt(readVectors(file), path.split('.')).filter((value) => typeof value === 'string');
  if (texts.length === 0) throw new Error(`${file} has nothing at ${path}`);
  return texts;
}

/** The same for values in hex, decoded. */
export function vectorBytes(file: string, path: string): Uint8Array[] {
  return vectorTexts(file, path).map(hex);
}
