/** Limits and rules of public addresses. */

/** Callers of a public address: clients with a token, also some requests without one, or everyone. */
export const EXPOSURE_MODES = ['tokens', 'only', 'public'] as const;
export type ExposureMode = (typeof EXPOSURE_MODES)[number];

/** `waiting`: for the entry or the certificate. */
export const EXPOSURE_STATES = ['off', 'waiting', 'serves', 'failed'] as const;
export type ExposureState = (typeof EXPOSURE_STATES)[number];

/** Public addresses of a node. */
export const MAX_EXPOSURES = 64;
/** Clients of a public address that are counted. */
export const MAX_PUBLIC_CLIENTS = 100;
/** Tokens of a public address. */
export const MAX_EXPOSURE_TOKENS = 100;
/** Longest token of an invitation to an entry, characters. */
export const MAX_ENTRY_TOKEN_CHARS = 128;
/** Rules of a public address or a token. */
export const MAX_PUBLIC_RULES = 16;
/** Longest rule, characters. */
export const MAX_PUBLIC_RULE_CHARS = 256;
/** The method, or `*` for all, and a path of plain segments without an encoded slash or dot. */
export const PUBLIC_RULE_PATTERN =
  "^(?:\\*|[A-Z]{1,32}) /(?:[A-Za-z0-9_~!$&'()*+,=:@.-]+/)*[A-Za-z0-9_~!$&'()*+,=:@.-]*$";
/** Names a token in lists and in the header for the service. */
export const CLIENT_LABEL_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';
/** Start of a token. */
export const PUBLIC_TOKEN_PREFIX = 'svcp_';

/** Segments that a service could resolve to another path, and encoded characters that could change the segments. */
const UNCLEAR_PATH = /(?:^|\/)(?:\.|%2e){1,2}(?:[/;?#]|$)|\/\/|\\|;|%(?:2f|5c|25|00|3b)|[^!-~]/i;

/**
 * True if one of the rules allows a request. A rule allows its path and all paths below it.
 * @param target path and query
 */
export function ruleAllows(rules: readonly string[], method: string, target: string): boolean {
  const [path = ''] = target.split('?', 1);
  if (UNCLEAR_PATH.test(path)) return false;
  return rules.some((rule) => {
    const [allowed, prefix = ''] = rule.split(' ', 2);
    if (allowed !== '*' && allowed !== method && !(allowed === 'GET' && method === 'HEAD')) return false;
    return path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);
  });
}
