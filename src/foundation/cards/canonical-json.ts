/** Canonical JSON for signatures: RFC 8785, the JSON Canonicalization Scheme (JCS). */
import canonicalize from 'canonicalize';
import { badCard } from './card.ts';

/**
 * The canonical text of a JSON value as returned by `JSON.parse`.
 * @throws SvcError `bad_card` if there is none: an unpaired surrogate, or a number out of range
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (cause) {
    throw badCard('not_canonical', 'it has no canonical form (RFC 8785)', { cause });
  }
  if (text === undefined) throw badCard('not_canonical', 'it is not JSON');
  return text;
}

/**
 * Removes empty texts, lists and objects at any depth. The A2A SDKs sign and verify this form.
 * @returns undefined if everything was empty
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
