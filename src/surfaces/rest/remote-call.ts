/** Hands a request of this API on to a remote node and its answer back, each as it streams. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakSink, feed } from '../../capabilities/calls/exchange.ts';
import { MAX_HEADERS, pairs, type RawHeaders, withoutIdleTrailer } from '../../capabilities/calls/headers.ts';
import { hopsPassedOn } from '../../capabilities/calls/hops.ts';
import type { CallAnswer, HttpCaller, SwitchedCall } from '../../capabilities/calls/http-caller.ts';
import { protocolsIn } from '../../capabilities/calls/upgrades.ts';
import { SvcError } from '../../foundation/errors.ts';
import { flushHead } from '../../foundation/flush-head.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { StreamExchange, Upgrade } from '../../operations/handlers/exchange.ts';
import { hasUnreadBody, setForeignPolicy, tooManyHeaders } from './answer.ts';
import { type AnswerPlace, sentHeaders, takenHeaders } from './remote-headers.ts';

export type RemoteCaller = Pick<HttpCaller, 'request' | 'upgrade'>;

/** What crosses between a client and the remote side, and how an answer begins. */
export interface RemoteRules {
  readonly sent: (raw: RawHeaders) => string[];
  readonly taken: (raw: RawHeaders, place: AnswerPlace) => string[];
  /** Sets what an answer of the remote side carries beyond its own headers, which are set by then. */
  readonly begin: (response: ServerResponse) => void;
}

/** Below a path of this API: what the client holds for it stays here, and content is shut into its sandbox. */
const BELOW_API: RemoteRules = { sent: sentHeaders, taken: takenHeaders, begin: setForeignPolicy };

/** An answer in another form than the remote side sent it. */
export interface Reshaped {
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

/** A request that goes on to a remote node. */
export type RemoteExchange = Pick<StreamExchange, 'request' | 'response' | 'upgrade'> & {
  readonly context: Pick<StreamExchange['context'], 'signal'>;
};

export interface RemoteTarget {
  readonly caller: RemoteCaller;
  /** The identity here that calls. */
  readonly local: Aid;
  readonly remote: Aid;
  /** Path of this API below which the remote one stands. */
  readonly prefix: string;
  /** Path and query at the remote side. */
  readonly path: string;
  readonly accessToken?: string | undefined;
  /** Those below a path of this API, where they are left out. */
  readonly rules?: RemoteRules;
  /** The body of the request, where it has been read already. */
  readonly body?: Uint8Array;
  /** Another form of the answer; null: as it is. What it throws takes the place of the answer. */
  readonly reshape?: (answer: CallAnswer, place: AnswerPlace) => Promise<Reshaped | null>;
}

/** An answer and by what rules it is handed on. */
interface Way {
  readonly rules: RemoteRules;
  readonly place: AnswerPlace;
}

/** Path and query of a request below the first two segments, as they were written; `/` where nothing is left. */
export function pathBelow(url: string): string {
  const rest = /^\/[^/?]*\/[^/?]*(.*)$/s.exec(url)?.[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Writes the head of a remote answer; the security headers of ours stay. */
function writeHead(response: ServerResponse, answer: CallAnswer | SwitchedCall, { rules, place }: Way): void {
  const seen = new Set<string>();
  for (const [name, value] of pairs(withoutIdleTrailer(rules.taken(answer.headers, place), response, answer.status))) {
    const key = name.toLowerCase();
    // The first one takes the place of ours of that name, further ones come beside it.
    if (seen.has(key)) response.appendHeader(name, value);
    else response.setHeader(name, value);
    seen.add(key);
  }
  rules.begin(response);
  response.writeHead(answer.status, answer.statusText);
}

/** @throws SvcError `protocol_error` where the remote head cannot be passed on */
function begin(response: ServerResponse, answer: CallAnswer | SwitchedCall, way: Way): void {
  try {
    writeHead(response, answer, way);
  } catch (cause) {
    ('socket' in answer ? answer.socket : answer.body).destroy();
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    throw new SvcError('protocol_error', { message: 'The head of the remote answer is malformed.', cause });
  }
}

function passOn(response: ServerResponse, answer: CallAnswer, { rules, place }: Way): Promise<void> {
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
    // The head goes out now: the body may take its time.
    flushHead(response);
    const atEnd = (): void => {
      const trailers = rules.taken(body.rawTrailers, place);
      if (trailers.length > 0) response.addTrailers([...pairs(trailers)]);
    };
    // Without chunks or a length, the end of the connection is the end of the body: a reset says that there is more.
    const broken = (): void => breakSink(response.req.httpVersion === '1.1' ? response : response.req.socket);
    feed(body, response, atEnd, answer.release, broken);
  });
}

/** Joins the two connections after both sides have switched. */
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

/** The head of a switch, written past the response: nothing of HTTP follows it. */
function switchHead(answer: SwitchedCall, { rules, place }: Way): string {
  const headers = [...pairs(rules.taken(answer.headers, place))].map(([name, value]) => `${name}: ${value}`);
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
 * Calls a remote node with the request of an exchange, and answers with what it answers.
 * @throws SvcError as `HttpCaller.request`, as long as no answer has begun
 */
export async function callRemote(exchange: RemoteExchange, target: RemoteTarget): Promise<void> {
  const { request, response, context, upgrade } = exchange;
  const { caller, local, remote, prefix, path, accessToken, rules = BELOW_API, body, reshape } = target;
  const way: Way = { rules, place: { prefix, path, host: request.headers.host } };
  if (request.rawHeaders.length / 2 > MAX_HEADERS) throw tooManyHeaders(MAX_HEADERS);
  const call = {
    method: request.method ?? 'GET',
    path,
    headers: [...rules.sent(request.rawHeaders), ...hopsPassedOn(request)],
    accessToken,
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
