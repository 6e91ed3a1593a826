/** Reads the fields of a moved agent beyond what the schema says of them. */
import { fromBase64 } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { type Aid, parseAid } from '../identity/aid.ts';

/** What does not hold in a document. @param path JSON pointer of the member, never its value */
export function badDocument(path: string, problem: string): SvcError {
  return new SvcError('bad_file', {
    message: `The document of the agent does not hold: ${path} ${problem}. Nothing was imported.`,
    details: { in: 'body', path, problem },
  });
}

/** @throws SvcError `bad_file` */
export function aidAt(path: string, text: string): Aid {
  try {
    return parseAid(text);
  } catch {
    throw badDocument(path, 'is no AID');
  }
}

/** Bytes of base64, at most `max`. @throws SvcError `bad_file` */
export function base64At(path: string, text: string, max: number): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes === null || bytes.length > max) throw badDocument(path, 'is not base64, or too long');
  return bytes;
}

/** Bytes of hex whose form the schema has checked. */
export function hexBytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}

/** @throws SvcError `bad_file` where two of the names are the same */
export function checkDistinct(path: string, names: readonly (string | number)[]): void {
  if (new Set(names).size !== names.length) throw badDocument(path, 'names something twice');
}
