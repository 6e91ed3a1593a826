import { readFileSync } from 'node:fs';
import { fromHex } from '../../src/foundation/bytes.ts';
import { type ErrorCode, SvcError } from '../../src/foundation/errors.ts';

/** The content of a test vector file. The caller knows its shape. */
export function readVectors(name: string): unknown {
  const path = new URL(`../vectors/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** Decodes a valid hex text. */
export function hex(text: string): Uint8Array {
  const bytes = fromHex(text);
  if (bytes === null) throw new Error(`not hex: ${text}`);
  return bytes;
}

/** For `assert.throws`: an error with one of these codes. */
export function failsWith(...codes: readonly ErrorCode[]): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && codes.includes(error.code);
}
