/** Responses written directly to a stream that no HTTP server handles anymore, and connections that switch protocols. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import { lingerThenDestroy } from '../../network/peers/wire.ts';
import { daemonErrorResponse } from './error-response.ts';
import { feed, type HttpResponse } from './exchange.ts';
import { pairs, type RawHeaders, reasonPhrase, withoutDaemonHeaders } from './headers.ts';

/** Writes the head of a response. Names and values come from an HTTP parser, so they contain no line breaks. */
function writeHead(stream: Duplex, status: number, statusText: string, headers: RawHeaders): void {
  const lines = [...pairs(headers)].map(([name, value]) => `${name}: ${value}\r\n`);
  const text = statusText === '' ? (STATUS_CODES[status] ?? '') : statusText;
  stream.write(`HTTP/1.1 ${status} ${text}\r\n${lines.join('')}\r\n`, 'latin1');
}

/**
 * Delays `destroy` of a stream that has ended: a reset could overtake its last bytes. Node's TLS destroys the stream below it
 * right after the end.
 */
export function lingerAfterEnd(stream: Duplex, clock: Clock): void {
  const destroy = stream.destroy.bind(stream);
  let isLingering = false;
  stream.destroy = (error?: Error) => {
    if (!stream.writableEnded || stream.readableEnded || isLingering || error instanceof Error) return destroy(error);
    isLingering = true;
    stream.resume();
    lingerThenDestroy(stream, clock);
    return stream;
  };
}

/** Reports an error to the caller, then closes the stream. */
export function sendErrorAndClose(stream: Duplex, error: SvcError, clock: Clock): void {
  const { status, headers, body } = daemonErrorResponse(error);
  writeHead(stream, status, '', ['Connection', 'close', ...headers]);
  stream.end(body);
  stream.resume();
  lingerThenDestroy(stream, clock);
}

/**
 * Passes the response of a service to an upgrade request on. After a switch, the caller and the service exchange bytes
 * directly.
 * @param head the first bytes of the caller after its request
 * @param accepted changes the headers of the response
 */
export function answerUpgrade(
  stream: Duplex,
  head: Buffer,
  { message, switched }: HttpResponse,
  clock: Clock,
  accepted: (headers: string[]) => string[] = (headers) => headers,
): void {
  const headers = accepted(withoutDaemonHeaders(message.rawHeaders));
  if (switched === null) {
    writeHead(stream, message.statusCode ?? 502, reasonPhrase(message), ['Connection', 'close', ...headers]);
    stream.resume();
    feed(message, stream, () => lingerThenDestroy(stream, clock));
    return;
  }
  const { socket, head: early } = switched;
  socket.on('error', () => socket.destroy());
  writeHead(stream, 101, '', ['Connection', 'Upgrade', 'Upgrade', message.headers.upgrade ?? '', ...headers]);
  if (early.length > 0) stream.write(early);
  if (head.length > 0) socket.write(head);
  feed(stream, socket, () => {});
  feed(socket, stream, () => {});
}
