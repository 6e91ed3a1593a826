/** Words that HTTP parsers get wrong, for targets that speak HTTP on streams. */
import type { Duplex } from 'node:stream';

export const HTTP_WORDS: readonly string[] = [
  ...[
    'GET ',
    'POST ',
    'HEAD ',
    'CONNECT ',
    'OPTIONS ',
    '/',
    '/a?b',
    '*',
    ' HTTP/1.1',
    ' HTTP/1.0',
    ' HTTP/2',
    'http://x/',
  ],
  ...['\r\n', '\n', '\r', '\r\n\r\n', '\0', ' ', '\t', ': ', ':', ',', ';', '\u00ff', 'X:', '%00', '..', '//'],
  ...['Host: x\r\n', 'Host: 127.0.0.1\r\n', 'Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Content-Length: -1\r\n'],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: gzip\r\n',
    'Connection: close\r\n',
    'Connection: Upgrade\r\n',
  ],
  ...[
    'Connection: Svc-Caller-Aid\r\n',
    'Upgrade: websocket\r\n',
    'Expect: 100-continue\r\n',
    'Trailer: Svc-Caller-Aid\r\n',
  ],
  ...[
    'Svc-Caller-Aid: evil\r\n',
    'svc_caller_aid: evil\r\n',
    'Forwarded: for=evil\r\n',
    'Svc-Error: access_denied\r\n',
  ],
  ...[
    '5\r\nhello\r\n',
    '0\r\n\r\n',
    '0\r\nSvc-Caller-Aid: evil\r\n\r\n',
    'ffffffffffffffff\r\n',
    '5;x=y\r\nhello\r\n',
    'hello',
  ],
  ...[
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\n',
    'HTTP/1.1 204 X\r\n',
  ],
  ...['Location: http://127.0.0.1/\r\n', 'Retry-After: 99999999999\r\n', 'Content-Type: application/json\r\n'],
];

/** Maximum event loop turns of an exchange over real sockets. */
const MAX_TURNS = 60;
/** Turns without data after which the exchange counts as finished. */
const QUIET_TURNS = 12;

/** Waits until the remote end is closed, or idle for a while. */
export async function untilQuiet(stream: Duplex, heard: () => number): Promise<void> {
  let before = -1;
  for (let turn = 0, quiet = 0; turn < MAX_TURNS && quiet < QUIET_TURNS && !stream.destroyed; turn++) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    quiet = heard() === before ? quiet + 1 : 0;
    before = heard();
  }
}
