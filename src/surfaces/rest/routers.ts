/**
 * The routers of the API: one for the paths that begin with the same word, made when the first request asks for one of
 * them. A start would spend a fifth of its time on routes of which a day needs a few.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { SvcError } from '../../foundation/errors.ts';
import { createRouter, type RouterTables, servedPaths } from './router.ts';
import type { RouteDependencies } from './routes.ts';
import { type ServedPath, unrouted } from './unrouted.ts';

/** What stands between the first and the second slash: `/agents/{aid}` → `agents`. */
function firstWord(path: string): string {
  return /^\/([^/?]*)/.exec(path)?.[1] ?? '';
}

export class Routers {
  readonly #tables: RouterTables;
  readonly #dependencies: RouteDependencies;
  readonly #served: readonly ServedPath[];
  readonly #words: ReadonlySet<string>;
  readonly #ready = new Map<string | null, FastifyInstance>();
  #unrouted: ReturnType<typeof unrouted> | undefined;
  readonly #made = new Map<string | null, Promise<FastifyInstance>>();

  constructor(tables: RouterTables, dependencies: RouteDependencies) {
    this.#tables = tables;
    this.#dependencies = dependencies;
    this.#served = servedPaths(tables);
    this.#words = new Set(this.#served.map(({ path }) => firstWord(path)));
    for (const word of this.#words) if (word.includes('{')) throw new Error(`the API has a path of ${word} alone`);
  }

  /**
   * Serves a request by the route that takes it.
   * @param failed told where the routes cannot be made, or Fastify throws
   */
  route(request: IncomingMessage, response: ServerResponse, failed: (error: unknown) => void): void {
    const word = firstWord(request.url ?? '');
    // Any other spelling is for a router that has every path: it knows what an encoded one means.
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

  /** The error of a request that no route takes, among all paths of the API. */
  #errorOf(method: string, url: string): SvcError {
    this.#unrouted ??= unrouted(this.#served);
    return this.#unrouted(method, url);
  }

  /** @param word what the paths begin with; null: all of them */
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
