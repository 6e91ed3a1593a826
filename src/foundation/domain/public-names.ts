/** Public names: DNS names at which an entry passes connections on to an agent. Rules that several layers share. */

/** Longest public name, characters. */
export const MAX_PUBLIC_NAME_CHARS = 253;
/** Time after the last claim until a name is free again, days. */
export const NAME_LEASE_DAYS = 30;

/** `waiting`: not confirmed since the start of svcd; `held`: confirmed; `failed`: refused, or the entry is unreachable. */
export const PUBLIC_NAME_STATES = ['waiting', 'held', 'failed'] as const;
export type PublicNameState = (typeof PUBLIC_NAME_STATES)[number];

/** A DNS label without the hyphens that mark encoded Unicode (RFC 5891). */
const LABEL = /^(?!..--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Names that visitors expect to belong to the operator of the domain, or to their own machine. */
const RESERVED: ReadonlySet<string> = new Set(['www', 'api', 'mail', 'localhost']);

/** True for a domain in lower case, without a dot at its end. An IP address is none. */
export function isDomain(text: string): boolean {
  const labels = text.split('.');
  const isShort = text.length <= MAX_PUBLIC_NAME_CHARS;
  return isShort && labels.length > 1 && labels.every(isAnyLabel) && !/^[0-9]+$/.test(labels.at(-1) ?? '');
}

/** A label of a domain, which an agent did not choose. */
function isAnyLabel(label: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label);
}

/** True if an agent may hold this first label of a public name. */
export function isFreeLabel(label: string): boolean {
  return LABEL.test(label) && !RESERVED.has(label);
}

/** True for the label of a name, or for a whole name. */
export function isPublicName(text: string): boolean {
  const [label = ''] = text.split('.', 1);
  return isFreeLabel(label) && (label === text || isDomain(text));
}

/** Length of the token of an invitation to an entry, characters. */
export const ENTRY_TOKEN_CHARS = 22;

export function isEntryToken(value: unknown): value is string {
  return typeof value === 'string' && value.length === ENTRY_TOKEN_CHARS && /^[\w-]+$/.test(value);
}
