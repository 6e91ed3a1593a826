/**
 * The routers of the API: one for each first path segment, created on its first request. Most runs need few routes, and
 * creating all of them would take a fifth of the start time.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { SvcError } from '../../foundation/errors.ts';
import { createRouter, type RouterTables, servedPaths } from './router.ts';
import type { RouteDependencies } from './routes.ts';
import { type ServedPath, unmatchedError } from './unrouted.ts';

/** The first path segment: `/agents/{aid}` → `agents`. */
function firstWord(path: string): string {
  return /^\/([^/?]*)/.exec(path)?.[1] ?? '';
}

export class Routers {
  readonly #tables: RouterTables;
  readonly #dependencies: RouteDependencies;
  readonly #served: readonly ServedPath[];
  readonly #words: ReadonlySet<string>;
  readonly #ready = new Map<string | null, FastifyInstance>();
  #unrouted: ReturnType<typeof unmatchedError> | undefined;
  readonly #made = new Map<string | null, Promise<FastifyInstance>>();

  constructor(tables: RouterTables, dependencies: RouteDependencies) {
    this.#tables = tables;
    this.#dependencies = dependencies;
    this.#served = servedPaths(tables);
    this.#words = new Set(this.#served.map(({ path }) => firstWord(path)));
    for (const word of this.#words)
      if (word.includes('{')) throw new Error(`the API has a path that starts with the parameter ${word}`);
  }

  /**
   * Serves a request with the route that matches.
   * @param failed called if the routes cannot be created, or if Fastify throws
   */
  route(request: IncomingMessage, response: ServerResponse, failed: (error: unknown) => void): void {
    const word = firstWord(request.url ?? '');
    // Other spellings go to a router with all paths, which decodes them.
    const key = this.#words.has(word) ? word : null;
    const ready = this.#ready.get(key);
    if (ready !== undefined) return ready.routing(request, response);
    this.#make(key)
      .then((router) => router.routing(request, response))
      .catch(failed);
  }

  async close(): Promise<void> {
    for (const router of await Promise.all(this.#made.values())) await router.close();
  }

  /** The error of a request that no path of the API matches. */
  #errorOf(method: string, url: string): SvcError {
    this.#unrouted ??= unmatchedError(this.#served);
    return this.#unrouted(method, url);
  }

  /** @param word first path segment; null for all paths */
  #make(word: string | null): Promise<FastifyInstance> {
    const isOf = ({ declaration: { path } }: { readonly declaration: { readonly path?: string } }): boolean =>
      word === null || (path !== undefined && firstWord(path) === word);
    let made = this.#made.get(word);
    if (made === undefined) {
      const { operations, streams } = this.#tables;
      const own = { operations: operations.filter(isOf), streams: streams.filter(isOf) };
      const router = createRouter(own, (method, url) => this.#errorOf(method, url), this.#dependencies);
      made = Promise.resolve(router.ready()).then(() => {
        this.#ready.set(word, router);
        return router;
      });
      this.#made.set(word, made);
    }
    return made;
  }
}
