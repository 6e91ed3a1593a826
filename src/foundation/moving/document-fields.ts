/** Checks the fields of a moved agent that its schema does not check. */
import { fromBase64 } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { type Aid, parseAid } from '../identity/aid.ts';

/**
 * An invalid field of a document.
 * @param path JSON pointer of the member, never its value
 */
export function badDocument(path: string, problem: string): SvcError {
  return new SvcError('bad_file', {
    message: `Invalid agent document: ${path} ${problem}. Nothing was imported. Export the agent again.`,
    details: { in: 'body', path, problem },
  });
}

/** @throws SvcError `bad_file` */
export function aidAt(path: string, text: string): Aid {
  try {
    return parseAid(text);
  } catch {
    throw badDocument(path, 'is not an AID');
  }
}

/**
 * Decodes base64 of at most `max` bytes.
 * @throws SvcError `bad_file`
 */
export function base64At(path: string, text: string, max: number): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes === null || bytes.length > max) throw badDocument(path, 'is not base64, or is too long');
  return bytes;
}

/** Decodes hex that the schema has checked. */
export function hexBytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}

/** @throws SvcError `bad_file` if a name occurs twice */
export function checkDistinct(path: string, names: readonly (string | number)[]): void {
  if (new Set(names).size !== names.length) throw badDocument(path, 'contains a duplicate');
}
