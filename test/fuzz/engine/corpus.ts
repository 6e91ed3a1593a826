/** The corpus: inputs that once broke a target. They are stored in files and tested in every run. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '..', 'corpus');

/** The stored inputs of a target. */
export function corpusOf(target: string): Uint8Array[] {
  const folder = join(FOLDER, target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((name) => new Uint8Array(readFileSync(join(folder, name))));
}

/** Names of all targets with stored inputs. */
export function corpusNames(): string[] {
  return existsSync(FOLDER) ? readdirSync(FOLDER) : [];
}

/** Stores an input and returns its file. */
export function storeInput(target: string, input: Uint8Array): string {
  const file = join(FOLDER, target, `${createHash('sha256').update(input).digest('hex').slice(0, 16)}.bin`);
  mkdirSync(join(FOLDER, target), { recursive: true });
  writeFileSync(file, input);
  return file;
}
