/**
 * Requests for services that speak only HTTP/2, as gRPC does (https://grpc.io, "gRPC over HTTP2"). Each client has its own
 * connection to the service.
 */
import {
  type ClientHttp2Session,
  connect,
  constants,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { feed } from '../../capabilities/calls/exchange.ts';
import { pairs, type RawHeaders, withoutDaemonHeaders } from '../../capabilities/calls/headers.ts';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { faultOf, serviceFailure } from '../../foundation/service-failure.ts';
import { byName, type Http2Reply } from './http2.ts';

/** True for the content type of gRPC. */
export function isGrpc(type: string | undefined): boolean {
  return /^application\/grpc(?:[+;]|$)/i.test(type ?? '');
}

/** Opens a connection to a service, without TLS. */
export function openHttp2(address: Address, open: (address: Address) => Socket): ClientHttp2Session {
  // Clients may repeat any header.
  const options = { createConnection: () => open(address), strictSingleValueFields: false };
  const session = connect(`http://${formatAddress(address)}`, options);
  session.on('error', () => {});
  return session;
}

interface GrpcRequest {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** For the service. */
  readonly headers: RawHeaders;
  readonly signal: AbortSignal;
}

/**
 * Forwards a request. Settles when the response is complete or broken off.
 * @throws SvcError `inbound_unreachable` if no response has begun
 */
export async function forwardGrpc(
  session: ClientHttp2Session,
  stream: ServerHttp2Stream,
  reply: Http2Reply,
  { method, path, authority, headers, signal }: GrpcRequest,
): Promise<void> {
  const head: OutgoingHttpHeaders = {
    [constants.HTTP2_HEADER_METHOD]: method,
    [constants.HTTP2_HEADER_PATH]: path,
    [constants.HTTP2_HEADER_AUTHORITY]: authority,
    ...byName(headers),
    te: 'trailers',
  };
  const request = session.request(head, { endStream: stream.endAfterHeaders });
  const { promise: answered, resolve, reject } = Promise.withResolvers<{ raw: RawHeaders; isWhole: boolean }>();
  request.once('response', (_headers, flags: number, raw: string[]) =>
    resolve({ raw, isWhole: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 }),
  );
  request.on('error', reject);
  request.once('close', () => reject(new Error('closed')));
  request.on('trailers', (_trailers, _flags, raw: string[]) =>
    reply.addTrailers([...pairs(withoutDaemonHeaders(raw))]),
  );
  const end = (): void => request.close(constants.NGHTTP2_CANCEL);
  signal.addEventListener('abort', end, { once: true });
  if (!stream.endAfterHeaders) feed(stream, request, () => {});
  try {
    const { raw, isWhole } = await answered;
    const status = Number(raw[raw.indexOf(constants.HTTP2_HEADER_STATUS) + 1]);
    const kept = [...pairs(withoutDaemonHeaders(raw))].filter(([name]) => !name.startsWith(':'));
    if (isWhole) {
      request.resume();
      return reply.endWithHead(status, kept.flat());
    }
    reply.writeHead(status, '', kept.flat());
  } catch (cause) {
    end();
    throw signal.aborted ? signal.reason : serviceFailure(faultOf(cause), cause);
  }
  const closed = new Promise<void>((done) => reply.once('close', () => done()));
  feed(request, reply, () => {});
  await closed;
  end();
}
