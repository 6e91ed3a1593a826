/** Requests and responses of HTTP/2 in the form of HTTP/1.1, which services speak. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import type { ServedRequest, ServedResponse } from '../../capabilities/calls/forward.ts';
import { pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';

/**
 * The request of a stream with the headers of HTTP/1.1: `Host` instead of `:authority`, one `Cookie` line (RFC 9113,
 * section 8.2.3), and chunked encoding for a body of unknown length.
 */
export function requestOf(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: RawHeaders): ServedRequest {
  const host = headers[':authority'] ?? headers.host ?? '';
  const cookies: string[] = [];
  const lines: string[] = ['Host', host];
  for (const [name, value] of pairs(raw)) {
    if (name === 'cookie') cookies.push(value);
    else if (!name.startsWith(':') && name !== 'host') lines.push(name, value);
  }
  if (cookies.length > 0) lines.push('Cookie', cookies.join('; '));
  const isStreamed = !stream.endAfterHeaders && headers['content-length'] === undefined;
  const request = Object.assign(stream, {
    method: headers[':method'] ?? '',
    url: headers[':path'] ?? '',
    headers: { ...headers, host, ...(isStreamed ? { 'transfer-encoding': 'chunked' } : {}) },
    rawHeaders: lines,
    rawTrailers: [] as string[],
  });
  stream.once('trailers', (trailers) => {
    request.rawTrailers = Object.entries(trailers).flatMap(([name, value]) =>
      [value ?? []].flat().flatMap((one) => [name, one]),
    );
  });
  return request;
}

/** Headers by name, as HTTP/2 sends them. */
export function byName(raw: RawHeaders): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const [spelled, value] of pairs(raw)) {
    const name = spelled.toLowerCase();
    if (name !== 'http2-settings') (headers[name] ??= []).push(value);
  }
  return headers;
}

/** The response on a stream, written like one of HTTP/1.1. */
export class Http2Reply extends Writable implements ServedResponse {
  readonly req: ServedResponse['req'];
  readonly #stream: ServerHttp2Stream;
  #trailers: RawHeaders = [];

  constructor(stream: ServerHttp2Stream, method: string) {
    super();
    this.req = { method, httpVersion: '1.1' };
    this.#stream = stream;
    stream.on('wantTrailers', () => stream.sendTrailers(byName(this.#trailers)));
    stream.once('close', () => this.destroy());
  }

  /** @param _reason HTTP/2 has none */
  writeHead(status: number, _reason: string, headers: RawHeaders): void {
    this.#stream.respond({ ...byName(headers), [constants.HTTP2_HEADER_STATUS]: status }, { waitForTrailers: true });
  }

  /** Sends a response without a body. Its head may carry what trailers would. */
  endWithHead(status: number, headers: RawHeaders): void {
    this.#stream.respond({ ...byName(headers), [constants.HTTP2_HEADER_STATUS]: status }, { endStream: true });
    this.end();
  }

  addTrailers(trailers: readonly (readonly [string, string])[]): void {
    this.#trailers = trailers.flat();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // A response to HEAD, and one without a body, ends with its head.
    if (chunk.length === 0 || this.#stream.writableEnded) done();
    else this.#stream.write(chunk, done);
  }

  override _final(done: () => void): void {
    if (this.#stream.writableEnded) done();
    else this.#stream.end(done);
  }

  override _destroy(_error: Error | null, done: () => void): void {
    // The client must notice that the response is incomplete.
    if (!this.writableFinished && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    done();
  }
}
