/** Reads JSON bodies. */
import { SvcError } from '../../foundation/errors.ts';
import { parseJson } from '../../foundation/json.ts';

/** The largest JSON body. */
export const JSON_BODY_LIMIT_BYTES = 1024 * 1024;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The value of a JSON body; undefined for an empty one.
 * @throws SvcError `invalid_json`
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new SvcError('invalid_json');
  }
  return parseJson(text);
}
