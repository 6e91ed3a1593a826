/** The routes of the API: finds the operation or stream of a request, checks the request, and runs it. */
import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import type { Clock } from '../../foundation/clock.ts';
import { encodeLongText } from '../../foundation/collected-bytes.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import type { BoundStream, Upgrade } from '../../operations/handlers/exchange.ts';
import { compileInput, type ParseAid } from '../../operations/input.ts';
import type { BoundOperation } from '../../operations/operation.ts';
import { NONE } from '../../operations/schemas.ts';
import { RestContext } from './context.ts';
import { type AdmittedRequest, checkMediaType, checkPermission, isWrite, limitBodyTime } from './gate.ts';
import { JSON_BODY_LIMIT_BYTES, readJsonBody } from './json-body.ts';
import { JSON_TYPE, sendError } from './response.ts';

/** Longest path parameter, in characters. The whole head of a request has its own limit. */
const MAX_PARAM_LENGTH = 8 * 1024;
/** Responses of at least this length are written as bytes instead of text, in characters. */
const LONG_ANSWER_CHARS = 64 * 1024;

/** A request that passed the gate. */
export interface RoutedRequest {
  readonly admission: AdmittedRequest;
  /** Set if the client requests a WebSocket. */
  readonly upgrade: Upgrade | undefined;
  /** Called for each tool call, if an audit log is written. */
  readonly audit: ((tool: string) => void) | undefined;
  /** Name of the operation; empty until a route matched. */
  operation: string;
}

type Params = Readonly<Record<string, string>>;
type Query = Readonly<Record<string, unknown>>;

/** Serves a request whose path and method match. */
type Serve = (
  request: IncomingMessage,
  response: ServerResponse,
  input: { readonly params: Params; readonly query: Query },
  state: RoutedRequest,
) => Promise<void>;

interface Route {
  /** Names of the path's parameters, in order. Methods of the same path may use different names. */
  readonly names: readonly string[];
  readonly serve: Serve;
}

/** A position in the tree of paths, one level per segment. */
interface PathNode {
  readonly literals: Map<string, PathNode>;
  /** The child for any non-empty segment. */
  parameter: PathNode | undefined;
  /** The routes of paths that match the rest of any path from here, by method. */
  readonly rest: Map<string, Route>;
  /** The routes of the path that ends here, by method. */
  readonly routes: Map<string, Route>;
}

interface Match {
  readonly routes: ReadonlyMap<string, Route>;
  /** Values of the parameters, in the order of the path. */
  readonly values: readonly string[];
}

function emptyNode(): PathNode {
  return { literals: new Map(), parameter: undefined, rest: new Map(), routes: new Map() };
}

/** The error for an unknown path. */
function unknownPath(): SvcError {
  return new SvcError('not_found', { message: 'Not found. See /openapi.json and /docs for all paths.' });
}

function notAllowed(methods: Iterable<string>): SvcError {
  const allow = [...methods].sort().join(', ');
  return new SvcError('method_not_allowed', { message: `Method not allowed. Use ${allow}.`, details: { allow } });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new SvcError('invalid_request', { message: 'The path has invalid percent-encoding.' });
  }
}

/**
 * The most precise path that matches: in each segment, a literal before a parameter before the rest of a path. An
 * additional or missing slash makes a different path.
 */
function find(node: PathNode, segments: readonly string[], at = 0): Match | null {
  const segment = segments[at];
  if (segment === undefined) return node.routes.size > 0 ? { routes: node.routes, values: [] } : null;
  const literal = node.literals.get(segment);
  const exact = literal === undefined ? null : find(literal, segments, at + 1);
  if (exact !== null) return exact;
  const child = segment === '' ? undefined : node.parameter;
  const named = child === undefined ? null : find(child, segments, at + 1);
  if (named !== null) return { ...named, values: [segment, ...named.values] };
  return node.rest.size > 0 ? { routes: node.rest, values: [segments.slice(at).join('/')] } : null;
}

export interface RouterTables {
  readonly operations: readonly BoundOperation[];
  readonly streams: readonly BoundStream[];
}

interface RouterParts {
  readonly clock: Clock;
  readonly parseAid: ParseAid;
  /** Converts a thrown value to the error to show. Unexpected errors are logged. */
  readonly shown: (error: unknown, operation: string) => SvcError;
}

export class Router {
  readonly #parts: RouterParts;
  readonly #root = emptyNode();

  constructor({ operations, streams }: RouterTables, parts: RouterParts) {
    this.#parts = parts;
    for (const operation of operations) {
      const { path, method } = operation.declaration;
      if (path !== undefined)
        this.#add(path, method === 'GET' ? ['GET', 'HEAD'] : [method], this.#operation(operation));
    }
    for (const stream of streams) {
      const { path, methods } = stream.declaration;
      this.#add(path, methods === 'ANY' ? METHODS : methods, this.#stream(stream));
    }
  }

  /** Serves a request. Errors become its response. */
  serve(request: IncomingMessage, response: ServerResponse, state: RoutedRequest): void {
    const { url = '', method = '' } = request;
    const queryAt = url.indexOf('?');
    const path = queryAt === -1 ? url : url.slice(0, queryAt);
    const segments = path.split('/').map(decoded);
    const match = find(this.#root, segments);
    if (match === null || match.values.some(({ length }) => length > MAX_PARAM_LENGTH)) throw unknownPath();
    const route = match.routes.get(method);
    if (route === undefined) throw notAllowed(match.routes.keys());
    const params = Object.fromEntries(route.names.map((name, i) => [name, match.values[i] ?? '']));
    const query = queryAt === -1 ? {} : parseQuery(url.slice(queryAt + 1), '&', '=', { maxKeys: 0 });
    detach(
      route.serve(request, response, { params, query }, state).catch((error: unknown) => {
        const shown = this.#parts.shown(error, state.operation);
        // The client must not accept a partial response as complete.
        if (response.headersSent) response.destroy();
        else sendError(response, shown);
      }),
    );
  }

  #add(path: string, methods: readonly string[], serve: Serve): void {
    let node = this.#root;
    let routes: Map<string, Route> | undefined;
    const names: string[] = [];
    for (const segment of path.split('/')) {
      const [, name, isRest] = /^\{(\w+)(\*?)\}$/.exec(segment) ?? [];
      if (name !== undefined) names.push(name);
      if (isRest === '*') routes = node.rest;
      else if (name !== undefined) node = node.parameter ??= emptyNode();
      else {
        const known: PathNode = node.literals.get(segment) ?? emptyNode();
        node.literals.set(segment, known);
        node = known;
      }
    }
    routes ??= node.routes;
    for (const method of methods) routes.set(method, { names, serve });
  }

  /** The route of an operation: JSON in, JSON out. */
  #operation(operation: BoundOperation): Serve {
    const { declaration } = operation;
    const { clock, parseAid } = this.#parts;
    // Compiling all inputs would take a fifth of the start time, and most runs need few.
    const read = lazy(() => compileInput(declaration, parseAid));
    const limitBytes = declaration.bodyLimit ?? JSON_BODY_LIMIT_BYTES;
    return async (request, response, { params, query }, state) => {
      state.operation = declaration.name;
      const { admission, audit } = state;
      checkPermission(declaration.permission, admission);
      let body: unknown;
      if (isWrite(declaration.method)) {
        checkMediaType(request, 'application/json');
        limitBodyTime(request, response, clock);
        body = await readJsonBody(request, limitBytes, declaration.ignoresBody === true);
      }
      const context = new RestContext(admission, response, audit, declaration.carriesBytes);
      const output = await operation.run(read()({ params, query, body }), context);
      const text = JSON.stringify(output);
      const { inlined } = context;
      let bytes: Buffer<ArrayBuffer> | undefined;
      if (inlined !== undefined || text.length >= LONG_ANSWER_CHARS) {
        // For strings, Node allocates three bytes per character and leaves them to the garbage collector.
        bytes = inlined?.into(text) ?? encodeLongText(text);
        const { buffer } = bytes;
        response.once('finish', () => buffer.transfer(0));
      }
      response.writeHead(context.status ?? declaration.status ?? 200, {
        'content-type': declaration.produces ?? JSON_TYPE,
        'content-length': bytes?.length ?? Buffer.byteLength(text),
      });
      response.end(request.method === 'HEAD' ? undefined : (bytes ?? text));
    };
  }

  /** The route of a stream, whose handler reads and writes the connection itself. */
  #stream({ declaration, handle }: BoundStream): Serve {
    const { params, query, permission, accepts, bodiless, name } = declaration;
    const read = lazy(() => compileInput({ params, query, body: NONE }, this.#parts.parseAid));
    return async (request, response, found, state) => {
      state.operation = name;
      const { admission, upgrade, audit } = state;
      checkPermission(permission, admission);
      const isBodiless = bodiless?.some((one) => one === request.method) === true;
      if (accepts !== undefined && !isBodiless) checkMediaType(request, accepts);
      const input = read()({ ...found, body: undefined });
      const exchange = { request, response, input, context: new RestContext(admission, response, audit) };
      await handle(upgrade === undefined ? exchange : { ...exchange, upgrade });
    };
  }
}
