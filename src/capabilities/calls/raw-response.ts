/** Writes responses directly to a stream that no HTTP server handles anymore. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import { lingerThenDestroy } from '../../network/links/wire.ts';
import { daemonErrorResponse } from './error-response.ts';
import { pairs, type RawHeaders } from './headers.ts';

/** Writes the head of a response. Names and values come from an HTTP parser, so they contain no line breaks. */
export function writeHead(stream: Duplex, status: number, statusText: string, headers: RawHeaders): void {
  const lines = [...pairs(headers)].map(([name, value]) => `${name}: ${value}\r\n`);
  const text = statusText === '' ? (STATUS_CODES[status] ?? '') : statusText;
  stream.write(`HTTP/1.1 ${status} ${text}\r\n${lines.join('')}\r\n`, 'latin1');
}

/** Reports an error to the caller's daemon, then closes the stream. */
export function sendErrorAndClose(stream: Duplex, error: SvcError, clock: Clock): void {
  const { status, headers, body } = daemonErrorResponse(error);
  writeHead(stream, status, '', ['Connection', 'close', ...headers]);
  stream.end(body);
  stream.resume();
  lingerThenDestroy(stream, clock);
}
