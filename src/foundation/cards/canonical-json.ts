/** JSON in the one spelling that is signed: RFC 8785, the JSON Canonicalization Scheme (JCS). */
import canonicalize from 'canonicalize';
import { badCard } from './bad-card.ts';

/**
 * The canonical text of a JSON value, as `JSON.parse` gives it.
 * @throws SvcError `bad_card` for what has no canonical form: half a surrogate pair, a number beyond JSON's
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (cause) {
    throw badCard('not_canonical', 'it has no canonical form (RFC 8785)', { cause });
  }
  if (text === undefined) throw badCard('not_canonical', 'it is no JSON');
  return text;
}

/**
 * A value without empty texts, lists and objects, however deep: the form over which the SDKs of A2A sign and verify.
 * @returns undefined where nothing is left
 */
export function withoutEmpty(value: unknown): unknown {
  if (value === null || value === '') return undefined;
  if (Array.isArray(value)) {
    const kept = value.map(withoutEmpty).filter((item) => item !== undefined);
    return kept.length === 0 ? undefined : kept;
  }
  if (typeof value !== 'object') return value;
  const kept = Object.entries(value).flatMap(([key, member]) => {
    const one = withoutEmpty(member);
    return one === undefined ? [] : [[key, one] as const];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
