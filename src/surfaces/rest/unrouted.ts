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

/** True for a parameter that takes the rest of a path. */
function isRest(part: string): boolean {
  return part.endsWith('*}');
}

/** How precisely each part of a path says what it takes: a path that says it more precisely is meant before another one. */
function precision(path: string): string {
  return path
    .split('/')
    .map((part) => (part.startsWith('{') ? (isRest(part) ? 0 : 1) : 2))
    .join('');
}

/**
 * Tells 404 and 405 apart: gives the error of a request that no route took, `method_not_allowed` with what is allowed, or
 * `not_found`. A path is matched as it stands: a slash more or less is another path.
 */
export function unrouted(served: readonly ServedPath[]): (method: string, url: string) => SvcError {
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
    return new SvcError('method_not_allowed', { message: `This path takes ${allow}.`, details: { allow } });
  };
}

/** True where every path of the second form is one of the first as well, and not the other way round. */
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

/** Methods that a path does not take, and that a route for it under another form would: `GET /agents/generate` for `GET /agents/{aid}`. */
export function shadowed(served: readonly ServedPath[]): readonly ServedPath[] {
  return [...Map.groupBy(served, ({ path }) => path)].flatMap(([path, own]) => {
    const taken = new Set(own.flatMap(({ methods }) => methods));
    const wider = served.filter((other) => covers(other.path, path)).flatMap(({ methods }) => methods);
    const methods = [...new Set(wider)].filter((method) => !taken.has(method));
    return methods.length === 0 ? [] : [{ path, methods }];
  });
}
