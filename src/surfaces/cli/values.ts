/** Values from the command line. */
import { InvalidArgumentError } from 'commander';

/** A whole number. */
export function integer(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It is not a whole number.');
  return value;
}

/** One more value of an option that may be repeated. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
