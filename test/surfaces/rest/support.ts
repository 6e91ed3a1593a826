/** A REST server with a small operations table, and raw requests to it. */

import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { connect } from 'node:net';
import { Type } from 'typebox';
import { formatAddress } from '../../../src/foundation/address.ts';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Log } from '../../../src/foundation/log.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { declare } from '../../../src/operations/declare.ts';
import type { BoundStream } from '../../../src/operations/handlers/exchange.ts';
import { type BoundOperation, bind, type CallContext } from '../../../src/operations/operation.ts';
import { AidParams, AidText, AnyObject, closed, nullable } from '../../../src/operations/schemas.ts';
import { RestServer, type RestServerDependencies, type RestServerOptions } from '../../../src/surfaces/rest/server.ts';

const COMMON = { tag: 'Test' };

export const testOperations = declare(COMMON, {
  ping: {
    summary: 'Answers.',
    route: 'GET /ping',
    query: closed({ n: Type.Optional(Type.Integer({ minimum: 0 })) }),
    output: Type.Object({ origin: Type.String(), n: nullable(Type.Integer()) }),
  },
  echo: {
    summary: 'Returns its input.',
    route: 'POST /things/{aid}/echo',
    params: AidParams,
    body: closed({
      text: Type.Optional(Type.String()),
      meta: Type.Optional(AnyObject),
      to: Type.Optional(Type.Array(AidText)),
    }),
    output: AnyObject,
    status: 201,
  },
  change: {
    summary: 'Has no body.',
    route: 'DELETE /things/{aid}',
    params: AidParams,
    output: AnyObject,
  },
  secret: {
    summary: 'Only here.',
    route: 'GET /secret',
    output: AnyObject,
    permission: 'local_only',
  },
  broken: {
    summary: 'Fails as requested.',
    route: 'GET /broken/{how}',
    params: closed({ how: Type.String() }),
    output: AnyObject,
    errors: ['not_found'],
  },
  wait: {
    summary: 'Waits until its client disconnects.',
    route: 'GET /wait',
    output: AnyObject,
  },
});

export interface World {
  readonly server: RestServer;
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** Log lines of level warn and above. */
  readonly logged: { readonly fields: object; readonly message: string }[];
  /** Contexts of the `wait` operation, in order of arrival. */
  readonly waiting: CallContext[];
  request(method: string, path: string, options?: Ask): Promise<Answer>;
}

export interface Ask {
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Uint8Array;
  /** Another local address for the connection. */
  readonly host?: string;
  readonly agent?: RequestOptions['agent'];
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The text as JSON; undefined if it is not JSON. */
  readonly json: unknown;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sends a request with only the given headers and `Host`. */
export function ask(host: string, port: number, method: string, path: string, options: Ask = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, agent = false } = options;
    // Node frames the body of a DELETE only if its length is given.
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const headers = { ...length, ...options.headers };
    const request = httpRequest({ host, port, method, path, headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: tryJson(text) });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Writes text to a raw connection and returns the received text after it was closed. */
export function speak(host: string, port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, host, () => socket.write(text));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      answer += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

export interface WorldOptions extends Partial<Pick<RestServerOptions, 'apiAddr' | 'requireLocalToken'>> {
  readonly token?: string | (() => string);
  readonly clock?: Clock;
  readonly operations?: readonly BoundOperation[];
  readonly streams?: readonly BoundStream[];
  readonly metrics?: RestServerDependencies['metrics'];
  readonly isServiceConnection?: RestServerDependencies['isServiceConnection'];
  readonly proofKey?: Uint8Array;
  readonly sessions?: NonNullable<RestServerDependencies['sessions']>;
}

/** Starts a server on a free port. It is stopped when the test ends. */
export async function startWorld(
  t: { after(task: () => Promise<void>): void },
  options: WorldOptions = {},
): Promise<World> {
  const { token = '' } = options;
  const logged: World['logged'] = [];
  const waiting: CallContext[] = [];
  const keep = (fields: object, message: string): void => void logged.push({ fields, message });
  const log: Log = { ...silentLog, warn: keep, error: keep };
  const operations =
    options.operations ??
    bind(testOperations, {
      ping: ({ n }, { origin }) => ({ origin, n: n ?? null }),
      echo: (input) => input,
      change: (input) => input,
      secret: () => ({ key: 'value' }),
      broken: ({ how }) => {
        if (how === 'known') throw new SvcError('not_found', { details: { what: 'thing' } });
        if (how === 'aborted') throw new DOMException('gone', 'AbortError');
        throw new TypeError('the password is hunter2');
      },
      wait: async (_input, context) => {
        waiting.push(context);
        await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()));
        return {};
      },
    });
  const server = new RestServer(
    {
      apiAddr: options.apiAddr ?? '127.0.0.1:0',
      requireLocalToken: options.requireLocalToken ?? false,
      version: '1.2.3',
    },
    {
      operations,
      streams: options.streams ?? [],
      token: typeof token === 'string' ? () => token : token,
      proofKey: options.proofKey ?? new Uint8Array(32),
      isServiceConnection: options.isServiceConnection ?? (() => false),
      metrics: options.metrics ?? [],
      ...(options.sessions === undefined ? {} : { sessions: options.sessions }),
      clock: options.clock ?? systemClock,
      log,
    },
  );
  await server.start();
  t.after(() => server.stop());
  const { port, host: bound } = server.address;
  const host = bound === '::' || bound === '0.0.0.0' ? '127.0.0.1' : bound;
  return {
    server,
    host,
    port,
    url: `http://${formatAddress({ host, port })}`,
    logged,
    waiting,
    request: (method, path, more = {}) => ask(more.host ?? host, port, method, path, more),
  };
}

/** Headers of a JSON write. */
export const JSON_HEADERS = { 'content-type': 'application/json' };
