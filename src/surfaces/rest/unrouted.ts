/** Requests that no route takes: an unknown path, or a known one with a wrong method. */
import { SvcError } from '../../foundation/errors.ts';

export interface ServedPath {
  /** OpenAPI form. */
  readonly path: string;
  readonly methods: readonly string[];
}

interface Pattern {
  readonly regex: RegExp;
  readonly methods: Set<string>;
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

/** Tells 404 and 405 apart. A path is matched as it stands: a slash more or less is another path. */
export class Unrouted {
  readonly #patterns: readonly Pattern[];

  constructor(served: readonly ServedPath[]) {
    const patterns = new Map<string, Pattern>();
    for (const { path, methods } of served) {
      const source = patternOf(path);
      const pattern = patterns.get(source) ?? { regex: new RegExp(source), methods: new Set<string>() };
      for (const method of methods) pattern.methods.add(method);
      patterns.set(source, pattern);
    }
    this.#patterns = [...patterns.values()];
  }

  /** The error of a request that no route took: `method_not_allowed` with what is allowed, or `not_found`. */
  errorOf(method: string, url: string): SvcError {
    const path = url.split('?', 1)[0] ?? '';
    const allowed = new Set(
      this.#patterns.filter(({ regex }) => regex.test(path)).flatMap(({ methods }) => [...methods]),
    );
    if (allowed.size === 0 || allowed.has(method)) return unknownPath();
    const allow = [...allowed].sort().join(', ');
    return new SvcError('method_not_allowed', { message: `This path takes ${allow}.`, details: { allow } });
  }
}
