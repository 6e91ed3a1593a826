/** Creates one route for each declaration of the operations table. */
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../foundation/clock.ts';
import { encodeLongText } from '../../foundation/collected-bytes.ts';
import type { SvcError } from '../../foundation/errors.ts';
import type { BoundStream } from '../../operations/handlers/exchange.ts';
import { compileInput, type ParseAid } from '../../operations/input.ts';
import type { BoundOperation } from '../../operations/operation.ts';
import { NONE } from '../../operations/schemas.ts';
import { RestContext } from './context.ts';
import type { RequestStates } from './request-state.ts';
import { JSON_TYPE, sendError } from './response.ts';
import { checkMediaType, checkPermission, isWrite, limitBodyTime } from './route-checks.ts';
import { type ServedPath, unknownPath } from './unrouted.ts';

export interface RouteDependencies {
  readonly clock: Clock;
  readonly states: RequestStates;
  readonly parseAid: ParseAid;
  /** Converts a thrown value to the error to show. Unexpected errors are logged. */
  readonly shown: (error: unknown, operation: string) => SvcError;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body is read and discarded. */
    ignoresBody?: boolean;
  }
}

/** Creates the error of a request that no route matches. */
export type ErrorOf = (method: string, url: string) => SvcError;

type Values = Readonly<Record<string, unknown>>;

/** Responses of at least this length are written as bytes instead of text, in characters. */
const LONG_ANSWER_CHARS = 64 * 1024;

/** A `{name*}` at the end of a path: a parameter that matches the rest of the path. */
const REST = /\{(\w+)\*\}$/;

function routerPath(path: string): string {
  return path.replace(REST, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

/**
 * @throws SvcError `not_found` if a parameter is empty, because the router matches `/agents/` as an agent without a
 *   name
 */
function checkParams(params: Values): void {
  for (const name in params) if (params[name] === '' && name !== '*') throw unknownPath();
}

/** Adds a route that rejects all requests, so that a more general path does not match them. */
export function addRejection(app: FastifyInstance, { path, methods }: ServedPath, errorOf: ErrorOf): void {
  app.route({
    method: [...methods],
    url: routerPath(path),
    exposeHeadRoute: false,
    onRequest: (request) => {
      throw errorOf(request.method, request.raw.url ?? '');
    },
    handler: () => {
      throw new Error('a rejected request reached its handler');
    },
  });
}

/** Adds the route of an operation with a path. */
export function addOperation(app: FastifyInstance, operation: BoundOperation, dependencies: RouteDependencies): void {
  const { declaration } = operation;
  if (declaration.path === undefined) return;
  const { clock, states } = dependencies;
  const read = compileInput(declaration, dependencies.parseAid);
  const write = isWrite(declaration.method);
  app.route<{ Params: Values; Querystring: Values; Body: unknown }>({
    method: declaration.method,
    url: routerPath(declaration.path),
    ...(declaration.bodyLimit === undefined ? {} : { bodyLimit: declaration.bodyLimit }),
    config: { ignoresBody: declaration.ignoresBody === true },
    onRequest: (request, reply, done) => {
      const state = states.of(request.raw);
      state.operation = declaration.name;
      checkPermission(declaration.permission, state.admission);
      checkParams(request.params);
      if (write) {
        checkMediaType(request.raw, 'application/json');
        limitBodyTime(request.raw, reply.raw, clock);
      }
      done();
    },
    handler: async ({ params, query, body, raw }, reply) => {
      const { admission, audit } = states.of(raw);
      const context = new RestContext(admission, reply.raw, audit, declaration.carriesBytes);
      const output = await operation.run(read({ params, query, body: write ? body : undefined }), context);
      reply.code(context.status ?? declaration.status ?? 200).type(declaration.produces ?? JSON_TYPE);
      const text = JSON.stringify(output);
      const { inlined } = context;
      if (inlined === undefined && text.length < LONG_ANSWER_CHARS) return reply.send(text);
      // For strings, Node allocates three bytes per character and leaves them to the garbage collector.
      const bytes = inlined?.into(text) ?? encodeLongText(text);
      reply.raw.once('finish', () => bytes.buffer.transfer(0));
      return reply.send(bytes);
    },
  });
}

/**
 * Adds the route of a stream, whose handler reads and writes the connection itself. The instance must not parse bodies.
 */
export function addStream(app: FastifyInstance, stream: BoundStream, dependencies: RouteDependencies): void {
  const { declaration } = stream;
  const { states, shown } = dependencies;
  const read = compileInput(
    { params: declaration.params, query: declaration.query, body: NONE },
    dependencies.parseAid,
  );
  const rest = REST.exec(declaration.path)?.[1];
  app.route<{ Params: Values; Querystring: Values }>({
    method: declaration.methods === 'ANY' ? app.supportedMethods : [...declaration.methods],
    url: routerPath(declaration.path),
    exposeHeadRoute: false,
    onRequest: ({ raw, params }, _reply, done) => {
      const state = states.of(raw);
      state.operation = declaration.name;
      checkPermission(declaration.permission, state.admission);
      checkParams(params);
      if (declaration.accepts !== undefined) checkMediaType(raw, declaration.accepts);
      done();
    },
    // Runs here instead of in the handler, because Fastify's checks of bodies and media types do not apply to streams.
    preParsing: async ({ params, query, raw }, reply) => {
      const { '*': remainder, ...named } = params;
      const input = read({
        params: rest === undefined ? named : { ...named, [rest]: remainder },
        query,
        body: undefined,
      });
      const { admission, upgrade, audit } = states.of(raw);
      const context = new RestContext(admission, reply.raw, audit);
      const exchange = { request: raw, response: reply.raw, input, context };
      reply.hijack();
      try {
        await stream.handle(upgrade === undefined ? exchange : { ...exchange, upgrade });
      } catch (error) {
        const answer = shown(error, declaration.name);
        if (reply.raw.headersSent) reply.raw.destroy();
        else sendError(reply.raw, answer);
      }
    },
    handler: () => {
      throw new Error('a stream was not hijacked');
    },
  });
}
