/** Random legal responses, and clients that disconnect at random times, through a local address and the gateway. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { Random } from '../../support/random.ts';
import { type Edge, edgesWorld, open, speak } from './edges-world.ts';

const ROUNDS = 120;
const SEEDS = [1, 2, 3];

function some(random: Random, of: readonly string[]): string {
  return of.filter(() => random.chance(0.25)).join('');
}

const HEADERS = [
  'X-Empty:\r\n',
  'X-Tab: a\tb\r\n',
  'X-Latin: \xe9\xff\r\n',
  'Content-Disposition: attachment; filename="\xc3\xbc \xff"\r\n',
  'ETag: W/"\x80"\r\n',
  'Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=\xc3\xbc\r\n',
  'Connection: X-Named\r\nX-Named: 1\r\n',
  'Keep-Alive: timeout=1, max=2\r\n',
  'Trailer: X-T\r\n',
  'Location: //[\r\n',
  'Location: /a b\xff?q#f\r\n',
  'Content-Location: ../\r\n',
  'WWW-Authenticate: Basic\r\nWWW-Authenticate: Digest realm="\xff", nonce=\r\n',
  'Content-Type: text/html; charset=\xff\r\n',
  'Date: never\r\n',
  'Age: -1\r\nExpires: 0\r\n',
  'Upgrade: h2c, foo/1\r\n',
  'Proxy-Connection: keep-alive\r\nTE: trailers\r\n',
  'Content-Encoding: unknown\r\n',
  'Server:   spaced   \r\n',
  'SVC-ERROR: internal\r\nsvc_error: x\r\n',
  'Link: <a>; rel=b,\r\n',
  `X-Long: ${'x'.repeat(8_000)}\r\n`,
  "!#$%&'*+-.^_`|~: odd\r\n",
] as const;
const INTERIM = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 \xff\r\nLink: <a>\r\n\r\n',
  'HTTP/1.1 102 P\r\nTrailer: x\r\n\r\n',
];
const STATUSES = [
  200, 201, 203, 204, 205, 206, 226, 300, 304, 307, 399, 400, 401, 407, 418, 426, 451, 499, 500, 511, 599, 600, 999,
] as const;

/** A response with a legal head, its body, and whether the end of its connection ends it. */
function madeUp(random: Random, method: string) {
  const status = random.pick(STATUSES);
  const phrase = random.pick(['', ' ', ' OK', ' \xfcber\tall'] as const);
  const hasBody = method !== 'HEAD' && status !== 204 && status !== 304;
  const body = 'y'.repeat(random.pick([0, 1, 2, 70_000] as const));
  const way = random.pick(['length', 'chunks', 'close'] as const);
  const head = `${some(random, INTERIM)}HTTP/1.1 ${status}${phrase}\r\n`;
  const headers = some(random, HEADERS);
  const length = `Content-Length: ${body.length}\r\n`;
  if (way === 'length') {
    const framed = random.chance(0.5) ? length + headers : headers + length;
    return { status, text: `${head}${framed}\r\n${hasBody ? body : ''}`, body: hasBody ? body : '', ends: false };
  }
  if (way === 'close' || !hasBody)
    return { status, text: `${head}${headers}\r\n${hasBody ? body : ''}`, body: hasBody ? body : '', ends: true };
  const chunk = body === '' ? '' : `${body.length.toString(16)};ext="a b"\r\n${body}\r\n`;
  const trailers = some(random, ['X-T: \xff\r\n', 'X-U:\r\n', 'Svc-Error: internal\r\n']);
  return {
    status,
    text: `${head}Transfer-Encoding: Chunked\r\n${headers}\r\n${chunk}0\r\n${trailers}\r\n`,
    body,
    ends: false,
  };
}

/** Writes a text in random pieces. */
function writeCut(random: Random, socket: Socket, text: string, ends: boolean): void {
  const at = random.below(text.length);
  socket.write(text.slice(0, at), 'latin1');
  setImmediate(() => {
    if (socket.destroyed) return;
    socket.write(text.slice(at), 'latin1');
    if (ends) socket.end();
  });
}

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4).replace(/[^y]/g, '');
}

async function leave({ port, prefix, name }: Edge, random: Random): Promise<void> {
  const { socket } = open({ name, port, prefix });
  const [lines, body] = random.pick([
    ['', ''],
    ['Content-Length: 50\r\n', '{"a":'],
    ['Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n', '5\r\n{"a":\r\n'],
    ['Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 9\r\n', 'abc'],
  ] as const);
  const text = `POST ${prefix}/ HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n${body}`;
  socket.write(text.slice(0, 1 + random.below(text.length)));
  await new Promise((resolve) => {
    socket.once('connect', () => setTimeout(resolve, random.below(4)));
  });
  if (random.chance(0.5)) socket.resetAndDestroy();
  else socket.destroy();
}

for (const seed of SEEDS)
  test(`legal responses pass, regardless of other clients (seed ${seed})`, async (t) => {
    const random = new Random(seed);
    let made = madeUp(random, 'GET');
    const world = await edgesWorld(t, (head, socket) => {
      if (head.startsWith('POST')) return void (random.chance(0.5) && socket.destroy());
      writeCut(random, socket, made.text, made.ends);
    });
    for (let round = 0; round < ROUNDS; round++) {
      const edge = random.pick([world.edges[0], world.edges[1]] as const);
      assert.ok(edge !== undefined);
      const method = random.pick(['GET', 'GET', 'HEAD', 'OPTIONS', 'PROPFIND'] as const);
      made = madeUp(random, method);
      const leaving = random.chance(0.5) ? leave(edge, random) : null;
      const answer = await speak(edge, '/', '', method);
      await leaving;
      const where = `round ${round}, ${edge.name}, ${method}: ${JSON.stringify(made.text.slice(0, 600))} gave ${JSON.stringify(answer.slice(0, 600))}`;
      assert.ok(answer.startsWith(`HTTP/1.1 ${made.status}`), where);
      assert.doesNotMatch(answer, /^svc-error:/im, where);
      assert.equal(bodyOf(answer).length, made.body.length, where);
    }
    await eventually('no connection is left', () => world.calls.server.active === 0);
  });
