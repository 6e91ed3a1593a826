/** The routes of the API on Fastify. server.ts runs the HTTP server and the gate in front of it. */
import { METHODS } from 'node:http';
import fastify, { type FastifyInstance } from 'fastify';
import { SvcError } from '../../foundation/errors.ts';
import type { BoundStream } from '../../operations/handlers/exchange.ts';
import type { BoundOperation } from '../../operations/operation.ts';
import { JSON_BODY_LIMIT_BYTES, parseJsonBody } from './json-body.ts';
import { errorResponse, hasUnreadBody } from './response.ts';
import { addOperation, addRejection, addStream, type ErrorOf, type RouteDependencies } from './routes.ts';
import { type ServedPath, shadowed } from './unrouted.ts';

/** Longest path parameter, in characters. The whole head of a request has its own limit. */
const MAX_PARAM_LENGTH = 8 * 1024;

export interface RouterTables {
  readonly operations: readonly BoundOperation[];
  readonly streams: readonly BoundStream[];
}

/** Fastify errors as SvcErrors. */
const FASTIFY_ERRORS: Readonly<Record<string, (bodyLimit: number) => SvcError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: (limit) =>
    new SvcError('too_large', {
      message: `The JSON body can have at most ${limit} bytes here.`,
      details: { limit_bytes: limit },
    }),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new SvcError('unsupported_media_type'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new SvcError('invalid_request', { message: 'The length of the body differs from its Content-Length.' }),
  FST_ERR_BAD_URL: () => new SvcError('invalid_request', { message: 'The path has invalid percent-encoding.' }),
  FST_ERR_MAX_PARAM_LENGTH: () => new SvcError('not_found'),
  ECONNRESET: () => new SvcError('cancelled'),
};

function fromFastify(error: unknown, bodyLimit: number = JSON_BODY_LIMIT_BYTES): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return FASTIFY_ERRORS[code]?.(bodyLimit) ?? error;
}

/** All served paths with their methods. */
export function servedPaths({ operations, streams }: RouterTables): ServedPath[] {
  return [
    ...operations.flatMap(({ declaration: { path, method } }) =>
      path === undefined ? [] : [{ path, methods: method === 'GET' ? ['GET', 'HEAD'] : [method] }],
    ),
    ...streams.map(({ declaration: { path, methods } }) => ({ path, methods: methods === 'ANY' ? METHODS : methods })),
  ];
}

function noCompiler(): never {
  throw new Error('a route has a Fastify schema, but operations validate their own input');
}

/**
 * Builds the routes. After `ready` settles, requests enter through `routing`.
 * @param errorOf creates the error of a request that no route matches
 */
export function createRouter(tables: RouterTables, errorOf: ErrorOf, dependencies: RouteDependencies): FastifyInstance {
  const { states, shown } = dependencies;
  const app = fastify({
    logger: false,
    bodyLimit: JSON_BODY_LIMIT_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // No route uses Fastify schemas. Loading the compilers would add 30 ms to every start.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors: (error, _request, reply) => {
      // Fastify's reply life cycle has not started, so write directly to the response.
      const { status, headers, body } = errorResponse(shown(fromFastify(error), ''));
      reply.raw.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    done(null, request.routeOptions.config.ignoresBody === true ? undefined : parseJsonBody(body));
  });
  app.setErrorHandler((error, { raw, routeOptions }, reply) => {
    const known = fromFastify(error, routeOptions.bodyLimit);
    const { status, headers, body } = errorResponse(shown(known, states.of(raw).operation));
    if (hasUnreadBody(raw)) reply.header('connection', 'close');
    return reply.code(status).headers(headers).send(body);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    // Throw here instead of in a handler, so that the body is not read.
    if (request.is404) throw errorOf(request.method, request.raw.url ?? '');
    done();
  });
  for (const operation of tables.operations) addOperation(app, operation, dependencies);
  for (const refused of shadowed(servedPaths(tables))) addRejection(app, refused, errorOf);
  void app.register(async (scope) => {
    for (const method of METHODS) {
      if (method !== 'CONNECT' && !scope.supportedMethods.includes(method))
        scope.addHttpMethod(method, { hasBody: true });
    }
    // The handler reads the body.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const stream of tables.streams) addStream(scope, stream, dependencies);
  });
  return app;
}
