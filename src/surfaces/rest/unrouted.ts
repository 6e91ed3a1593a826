/** Errors for requests that no route matches: an unknown path, or a wrong method. */
import { SvcError } from '../../foundation/errors.ts';

export interface ServedPath {
  /** In OpenAPI notation. */
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

/** The error for an unknown path. */
export function unknownPath(): SvcError {
  return new SvcError('not_found', { message: 'Not found. See /openapi.json and /docs for all paths.' });
}

/** True for a parameter that matches the rest of a path. */
function isRest(part: string): boolean {
  return part.endsWith('*}');
}

/** Sort key for the precision of each path segment. More precise paths match first. */
function precision(path: string): string {
  return path
    .split('/')
    .map((part) => (part.startsWith('{') ? (isRest(part) ? 0 : 1) : 2))
    .join('');
}

/**
 * Distinguishes 404 from 405. The returned function creates the error of an unmatched request: `method_not_allowed`
 * with the allowed methods, or `not_found`. An additional or missing slash makes a different path.
 */
export function unmatchedError(served: readonly ServedPath[]): (method: string, url: string) => SvcError {
  const byPattern = Map.groupBy(served, ({ path }) => patternOf(path));
  const patterns = [...byPattern]
    .map(([source, paths]) => ({
      regex: new RegExp(source),
      methods: new Set(paths.flatMap(({ methods }) => methods)),
      precision: precision(paths[0]?.path ?? ''),
    }))
    .sort((one, other) => other.precision.localeCompare(one.precision));
  return (method, url) => {
    const [path = ''] = url.split('?', 1);
    const allowed = patterns.find(({ regex }) => regex.test(path))?.methods;
    if (allowed === undefined || allowed.has(method)) return unknownPath();
    const allow = [...allowed].sort().join(', ');
    return new SvcError('method_not_allowed', { message: `Method not allowed. Use ${allow}.`, details: { allow } });
  };
}

/** True if the first path matches every request of the second, but not the other way round. */
function covers(path: string, other: string): boolean {
  const [parts, others] = [path.split('/'), other.split('/')];
  return (
    parts.length === others.length &&
    !parts.some(isRest) &&
    !others.some(isRest) &&
    parts.every((part, i) => part === others[i] || part.startsWith('{')) &&
    precision(path) !== precision(other)
  );
}

/**
 * Methods that a path does not have but a more general route would match: `GET /agents/generate` for `GET
 * /agents/{aid}`.
 */
export function shadowed(served: readonly ServedPath[]): readonly ServedPath[] {
  return [...Map.groupBy(served, ({ path }) => path)].flatMap(([path, own]) => {
    const taken = new Set(own.flatMap(({ methods }) => methods));
    const wider = served.filter((other) => covers(other.path, path)).flatMap(({ methods }) => methods);
    const methods = [...new Set(wider)].filter((method) => !taken.has(method));
    return methods.length === 0 ? [] : [{ path, methods }];
  });
}
