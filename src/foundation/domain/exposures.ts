/** Limits and rules of public addresses. */

/** Callers of a public address: those with a token, also some requests without one, or everyone. */
export const EXPOSURE_MODES = ['tokens', 'only', 'public'] as const;
export type ExposureMode = (typeof EXPOSURE_MODES)[number];

/** Public addresses of a node. */
export const MAX_EXPOSURES = 64;
/** Tokens of a public address. */
export const MAX_EXPOSURE_TOKENS = 100;
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
