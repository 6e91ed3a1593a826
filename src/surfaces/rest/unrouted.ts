/** Requests that no route takes: an unknown path, or a known one with a wrong method. */
import { SvcError } from '../../foundation/errors.ts';

export interface ServedPath {
  /** OpenAPI form. */
  readonly path: string;
  readonly methods: readonly string[];
}

function patternOf(path: string): string {
  const parts = path.split(/(\{\w+\*?\})/);
  const source = parts.map((part) => {
    if (/^\{\w+\*\}$/.test(part)) return '.*';
    return /^\{\w+\}$/.test(part) ? '[^/]+' : RegExp.escape(part);
  });
  return `^${source.join('')}$`;
}

/** The error of a path that is not served. */
export function unknownPath(): SvcError {
  return new SvcError('not_found', { message: 'There is no such path. The whole API is at /openapi.json and /docs.' });
}

/**
 * Tells 404 and 405 apart: gives the error of a request that no route took, `method_not_allowed` with what is allowed, or
 * `not_found`. A path is matched as it stands: a slash more or less is another path.
 */
export function unrouted(served: readonly ServedPath[]): (method: string, url: string) => SvcError {
  const byPattern = Map.groupBy(served, ({ path }) => patternOf(path));
  const patterns = [...byPattern].map(([source, paths]) => ({
    regex: new RegExp(source),
    methods: paths.flatMap(({ methods }) => methods),
  }));
  return (method, url) => {
    const [path = ''] = url.split('?', 1);
    const allowed = new Set(patterns.filter(({ regex }) => regex.test(path)).flatMap(({ methods }) => methods));
    if (allowed.size === 0 || allowed.has(method)) return unknownPath();
    const allow = [...allowed].sort().join(', ');
    return new SvcError('method_not_allowed', { message: `This path takes ${allow}.`, details: { allow } });
  };
}
