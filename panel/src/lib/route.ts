/** The current place in the panel. It is in the hash, because `/agents` is a path of the API. */

export interface Route {
  /** Segments of the path: `['agents', 'aid1…', 'access']`. */
  readonly path: readonly string[];
  /** The state of a screen: filter, order, selection. */
  readonly query: Readonly<Record<string, string>>;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parses a hash such as `#/agents?q=a`. */
export function parseHash(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The hash of a route. Empty values are omitted. */
export function hashOf(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  return `#/${path.map(encodeURIComponent).join('/')}${kept.size === 0 ? '' : `?${kept.toString()}`}`;
}
