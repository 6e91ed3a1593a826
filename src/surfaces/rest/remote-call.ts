/** Streams a request of this API to a remote node, and its response back. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { askOptions } from '../../capabilities/calls/ask-options.ts';
import { breakSink, feed } from '../../capabilities/calls/exchange.ts';
import { MAX_HEADERS, pairs, type RawHeaders, withoutUnusedTrailer } from '../../capabilities/calls/headers.ts';
import { forwardedHops } from '../../capabilities/calls/hops.ts';
import type { CallResponse, HttpCaller, SwitchedCall } from '../../capabilities/calls/http-caller.ts';
import { protocolsIn } from '../../capabilities/calls/upgrades.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { flushHead } from '../../foundation/sockets.ts';
import type { StreamExchange, Upgrade } from '../../operations/handlers/exchange.ts';
import { acceptedHeaders, type ResponsePlace, sentHeaders } from './remote-headers.ts';
import { hasUnreadBody, setForeignPolicy, tooManyHeaders } from './response.ts';

export type RemoteCaller = Pick<HttpCaller, 'request' | 'upgrade'>;

/** Headers that cross between a client and the remote side, and how a response starts. */
export interface RemoteRules {
  readonly sent: (raw: RawHeaders) => string[];
  readonly accepted: (raw: RawHeaders, place: ResponsePlace) => string[];
  /** Sets additional headers of a response, after the remote headers are set. */
  readonly begin: (response: ServerResponse) => void;
}

/** Rules for paths of this API: credentials of the client stay here, and remote content is sandboxed. */
const API_PATH_RULES: RemoteRules = { sent: sentHeaders, accepted: acceptedHeaders, begin: setForeignPolicy };

/** A modified response. */
export interface ReshapedResponse {
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

/** A request to a remote node. */
export type RemoteExchange = Pick<StreamExchange, 'request' | 'response' | 'upgrade'> & {
  readonly context: Pick<StreamExchange['context'], 'signal'>;
};

export interface RemoteTarget {
  readonly caller: RemoteCaller;
  /** The calling local identity. */
  readonly local: Aid;
  readonly remote: Aid;
  /** Path prefix of this API that represents the remote service. */
  readonly prefix: string;
  /** Path and query on the remote side. */
  readonly path: string;
  readonly accessToken?: string | undefined;
  /** Default: the rules for paths of this API. */
  readonly rules?: RemoteRules;
  /** The request body, if it was already read. */
  readonly body?: Uint8Array;
  /** Modifies the response; null keeps it unchanged. If it throws, its error replaces the response. */
  readonly reshape?: (answer: CallResponse, place: ResponsePlace) => Promise<ReshapedResponse | null>;
}

/** The rules and the place of a response. */
interface ResponseRules {
  readonly rules: RemoteRules;
  readonly place: ResponsePlace;
}

/** Path and query of a request below the first two segments, with unchanged encoding; `/` if there are no further segments. */
export function pathBelow(url: string): string {
  const rest = /^\/[^/?]*\/[^/?]*(.*)$/s.exec(url)?.[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Writes the head of a remote response and keeps our security headers. */
function writeHead(
  response: ServerResponse,
  answer: CallResponse | SwitchedCall,
  { rules, place }: ResponseRules,
): void {
  const seen = new Set<string>();
  for (const [name, value] of pairs(
    withoutUnusedTrailer(rules.accepted(answer.headers, place), response, answer.status),
  )) {
    const key = name.toLowerCase();
    // The first header with a name replaces ours; further headers are appended.
    if (seen.has(key)) response.appendHeader(name, value);
    else response.setHeader(name, value);
    seen.add(key);
  }
  rules.begin(response);
  response.writeHead(answer.status, answer.statusText);
}

/** @throws SvcError `protocol_error` if the remote head is invalid */
function begin(response: ServerResponse, answer: CallResponse | SwitchedCall, way: ResponseRules): void {
  try {
    writeHead(response, answer, way);
  } catch (cause) {
    ('socket' in answer ? answer.socket : answer.body).destroy();
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    throw new SvcError('protocol_error', { message: 'The remote node sent an invalid response head.', cause });
  }
}

function passOn(response: ServerResponse, answer: CallResponse, { rules, place }: ResponseRules): Promise<void> {
  return new Promise((resolve) => {
    const { body } = answer;
    body.on('error', () => {});
    response.once('close', () => {
      body.destroy();
      resolve();
    });
    if (response.destroyed) {
      body.destroy();
      return resolve();
    }
    // Send the head now, because the body may be slow.
    flushHead(response);
    const atEnd = (): void => {
      const trailers = rules.accepted(body.rawTrailers, place);
      if (trailers.length > 0) response.addTrailers([...pairs(trailers)]);
    };
    // Without chunked encoding or a length, the end of the connection ends the body. A reset signals that it is
    // incomplete.
    const broken = (): void => breakSink(response.req.httpVersion === '1.1' ? response : response.req.socket);
    feed(body, response, atEnd, answer.release, broken);
  });
}

/** Connects the two sockets after both sides switched protocols. */
function join({ request, response }: RemoteExchange, { socket, head }: Upgrade, answer: SwitchedCall): void {
  const remote = answer.socket;
  remote.on('error', () => remote.destroy());
  socket.once('close', () => remote.destroy());
  if (socket.destroyed) return void remote.destroy();
  if (answer.head.length > 0) socket.write(answer.head);
  if (head.length > 0) remote.write(head);
  feed(socket, remote, () => {});
  feed(
    remote,
    socket,
    () => {},
    undefined,
    () => breakSink(request.socket),
  );
  response.statusCode = answer.status;
}

/** The head of a 101 response, written directly to the socket because no HTTP follows. */
function switchHead(answer: SwitchedCall, { rules, place }: ResponseRules): string {
  const headers = [...pairs(rules.accepted(answer.headers, place))].map(([name, value]) => `${name}: ${value}`);
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${answer.protocol}`, ...headers];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function bodyOf(request: IncomingMessage): { body: IncomingMessage | null; bodyLength?: number } {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined) return { body: request };
  const bodyLength = Number(length ?? 0);
  return bodyLength > 0 ? { body: request, bodyLength } : { body: null };
}

/**
 * Sends the request of an exchange to a remote node and returns the response.
 * @throws SvcError as `HttpCaller.request`, if no response has begun
 */
export async function callRemote(exchange: RemoteExchange, target: RemoteTarget): Promise<void> {
  const { request, response, context, upgrade } = exchange;
  const { caller, local, remote, prefix, path, accessToken, rules = API_PATH_RULES, body, reshape } = target;
  const way: ResponseRules = { rules, place: { prefix, path, host: request.headers.host } };
  if (request.rawHeaders.length / 2 > MAX_HEADERS) throw tooManyHeaders(MAX_HEADERS);
  const call = {
    method: request.method ?? 'GET',
    path,
    headers: [...rules.sent(request.rawHeaders), ...forwardedHops(request)],
    accessToken,
    access: askOptions((name) => request.headers[name]),
  };
  const { signal } = context;
  const sent = { ...call, ...(body === undefined ? bodyOf(request) : { body }), signal };
  const answer =
    upgrade === undefined
      ? await caller.request(local, remote, sent)
      : await caller.upgrade(local, remote, sent, protocolsIn(request.headers.upgrade));
  if (upgrade !== undefined && 'socket' in answer) {
    upgrade.socket.write(switchHead(answer, way), 'latin1');
    return join(exchange, upgrade, answer);
  }
  if ('socket' in answer) return void answer.socket.destroy();
  if (hasUnreadBody(request)) response.shouldKeepAlive = false;
  const reshaped = reshape === undefined ? null : await reshape(answer, way.place);
  if (reshaped !== null) {
    begin(response, { ...answer, headers: reshaped.headers }, way);
    return void response.end(reshaped.body);
  }
  begin(response, answer, way);
  await passOn(response, answer, way);
}
