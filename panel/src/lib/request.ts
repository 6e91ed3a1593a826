/** Converts an operation and its input to a request for `fetch`. */

/** A request to the daemon. */
export interface WireRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body: string | null;
}

/** Prefix of a body member in the flat input if the path has a parameter with the same name. */
const BODY_PREFIX = 'body_';

/**
 * Splits the flat input of an operation into path, query and body. For `GET` and `DELETE`, everything outside
 * the path is the query.
 *
 * @param route method and path, such as `GET /agents/{aid}`
 * @param input an object
 * @throws TypeError if a path parameter is missing, or if a URL parser would remove it
 */
export function wireRequest(route: string, input: unknown): WireRequest {
  const members = typeof input === 'object' && input !== null ? Object.entries<unknown>({ ...input }) : [];
  const given = new Map(members);
  const [method = 'GET', template = '/'] = route.split(' ');
  const inPath = new Set<string>();
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name);
    const value: unknown = given.get(name);
    const text = typeof value === 'string' || typeof value === 'number' ? `${value}` : '';
    if (text === '' || text === '.' || text === '..') throw new TypeError(`"${text}" cannot be ${name}`);
    return encodeURIComponent(text);
  });
  const rest = [...given].filter(([key, value]) => !inPath.has(key) && value !== undefined);
  if (method !== 'GET' && method !== 'DELETE') {
    const renamed = rest.map(([key, value]) => [
      key.startsWith(BODY_PREFIX) && inPath.has(key.slice(BODY_PREFIX.length)) ? key.slice(BODY_PREFIX.length) : key,
      value,
    ]);
    return { method, path, body: JSON.stringify(Object.fromEntries(renamed)) };
  }
  const query = new URLSearchParams(rest.map(([key, value]): [string, string] => [key, String(value)]));
  const whole = query.size === 0 ? path : `${path}?${query.toString()}`;
  return { method, path: whole, body: method === 'GET' ? null : '{}' };
}
