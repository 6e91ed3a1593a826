/** HTTP on links: when chunks are freed, the order of requests, and the quotas. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Duplex, PassThrough } from 'node:stream';
import { test } from 'node:test';
import { freeMemory } from '../../../src/foundation/bytes.ts';
import {
  HEAD_COPIES,
  LinkPlaces,
  linkHttpServer,
  MAX_HEADS_PER_NODE_BYTES,
} from '../../../src/network/links/http-server.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';

const isNamed = (): boolean => false;
const OPTIONS = { maxHeaderBytes: 16_384, maxHeaderCount: 0, isNamed };

function linkOf(stream: Duplex, node = 1, host = '192.0.2.1'): LinkStream {
  const nodeKey = new Uint8Array(32).fill(node);
  const names = { caller: testAid(2), called: testAid(1), purpose: 'http', accessToken: undefined, nodeKey } as const;
  return asLink(stream, names, () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 }));
}

/** A chunk with its own memory, like the chunks of a link. */
function chunkOf(text: string): Buffer {
  const chunk = Buffer.allocUnsafeSlow(Buffer.byteLength(text, 'latin1'));
  chunk.write(text, 'latin1');
  return chunk;
}

/** A link with the test as its remote side. It frees the chunks that it is given. */
function freeing(node = 1, host = '192.0.2.1'): LinkStream {
  const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  return Object.assign(linkOf(stream, node, host), { release: freeMemory });
}

test('many owners of a link can wait for its end without a warning of Node', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const server = linkHttpServer({ ...OPTIONS, serve: (_request, response) => response.end() });
  const link = freeing();
  for (let i = 0; i < 9; i++) link.once('close', () => {});
  server.emit('connection', link);
  link.push(chunkOf('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await once(server, 'request');
  await new Promise(setImmediate);
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});

test('the chunks of a body are freed, and the body is complete', async () => {
  const bodies: string[] = [];
  const server = linkHttpServer({
    ...OPTIONS,
    serve: (request, response) => {
      let body = '';
      request.setEncoding('latin1').on('data', (text: string) => (body += text));
      request.on('end', () => {
        bodies.push(body);
        response.end();
      });
    },
  });
  const link = freeing();
  server.emit('connection', link);
  const chunks = [
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\nab',
    'c'.repeat(199_998),
    'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  ].map(chunkOf);
  for (const chunk of chunks) link.push(chunk);
  await eventually('both requests', () => bodies.length === 2);
  assert.deepEqual(bodies, [`ab${'c'.repeat(199_998)}`, '']);
  for (const { buffer } of chunks) assert.equal(buffer.byteLength, 0);
});

test('the bytes after the head of an upgrade request belong to the upgrade handler', async () => {
  const server = linkHttpServer({ ...OPTIONS, serve: (_request, response) => void response.end() });
  const heard: Buffer[] = [];
  server.on('upgrade', (_request, link: Duplex, head: Buffer) => {
    heard.push(head);
    link.on('data', (chunk: Buffer) => heard.push(chunk));
  });
  const link = freeing();
  server.emit('connection', link);
  const head = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  for (const text of [`${head}early`, 'later', 'last']) link.push(chunkOf(text));
  await eventually('all bytes', () => heard.length === 3);
  assert.equal(Buffer.concat(heard).toString(), 'earlylaterlast');
});

test('a stream that another quota counts releases its slot, and takes one again if there is one', async () => {
  const streams = new LinkPlaces(2, isNamed);
  const [first, second, third] = [1, 1, 1].map((node) => linkOf(new PassThrough(), node));
  assert.ok(first && second && third);
  assert.deepEqual(
    [first, second, third].map((link) => streams.enter(link)),
    [true, true, false],
  );
  assert.equal(streams.enter(first), true);
  assert.equal(streams.enter(linkOf(new PassThrough(), 2)), true);
  streams.leave(first);
  streams.leave(first);
  assert.equal(streams.enter(third), true);
  assert.equal(streams.enter(first), false);
  await once(third.destroy(), 'close');
  assert.equal(streams.enter(first), true);
  assert.equal(streams.enter(linkOf(new PassThrough())), false);
});

test('links from many node keys of one source leave room for other sources and for known callers', () => {
  const named = testAid(3);
  const places = new LinkPlaces(4, ({ caller }) => caller === named);
  const entered = Array.from({ length: 40 }, (_, i) => places.enter(linkOf(new PassThrough(), i)));
  assert.equal(entered.filter(Boolean).length, 6);
  for (let i = 0; i < 40; i++) places.enter(linkOf(new PassThrough(), 50 + i, `10.${i}.0.1`));
  assert.equal(
    places.enter(linkOf(new PassThrough(), 99, '10.250.0.1')),
    false,
    'strangers cannot use the reserved part',
  );
  const friend = Object.assign(linkOf(new PassThrough(), 100), { caller: named });
  assert.equal(places.enter(friend), true);
});

test('incomplete request heads have a budget, and a complete one releases its share', async () => {
  const served: string[] = [];
  const server = linkHttpServer({
    ...OPTIONS,
    serve: (request, response) => {
      served.push(request.url ?? '');
      response.end();
    },
  });
  const half = `GET /half HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(15_000)}`;
  const open = (node: number, host?: string): LinkStream => {
    const link = freeing(node, host);
    server.emit('connection', link);
    link.push(chunkOf(half));
    return link;
  };
  const count = 2 * Math.ceil(MAX_HEADS_PER_NODE_BYTES / (HEAD_COPIES * half.length));
  const links = Array.from({ length: count }, () => open(1));
  await eventually('the first links are reset', () => links.filter(({ destroyed }) => destroyed).length >= count / 2);
  const alive = links.filter(({ destroyed }) => !destroyed);
  assert.ok(alive.length > count / 3 && links[0]?.destroyed === true);
  const other = open(2, '198.51.100.1');
  for (const link of [other, alive.at(-1)]) link?.push(chunkOf('\r\n\r\n'));
  await eventually('both are served', () => served.length === 2);
});

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test('requests of a link are served sequentially, so that only one response is buffered', async () => {
  const responses: ServerResponse[] = [];
  const server = linkHttpServer({ ...OPTIONS, serve: (_request, response) => void responses.push(response) });
  const link = freeing();
  server.emit('connection', link);
  link.push(chunkOf(GET.repeat(3)));
  link.push(chunkOf(GET));
  for (let served = 1; served <= 4; served++) {
    await eventually('the next request', () => responses.length === served);
    if (served < 3) assert.equal(link.isPaused(), true, `while request ${served} is served`);
    responses[served - 1]?.end();
  }
  await eventually('the last response', () => responses[3]?.writableFinished === true);
  assert.equal(link.destroyed, false);
});

test('request heads that arrive while a request is served have a budget, and a known caller keeps its link', async () => {
  const friend = testAid(3);
  let served = 0;
  const server = linkHttpServer({ ...OPTIONS, isNamed: ({ caller }) => caller === friend, serve: () => void served++ });
  const half = `GET /half HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(15_000)}`;
  const open = (caller: typeof friend, host: string, ...chunks: readonly string[]): LinkStream => {
    const link = Object.assign(freeing(caller === friend ? 2 : 1, host), { caller });
    server.emit('connection', link);
    for (const chunk of chunks) link.push(chunkOf(chunk));
    return link;
  };
  const named = open(friend, '192.0.2.1', GET, half);
  const fitting = Math.floor(MAX_HEADS_PER_NODE_BYTES / (HEAD_COPIES * half.length));
  const floods: readonly (readonly string[])[] = [[GET, half], [GET + half], [GET + GET, half]];
  for (const chunks of floods) {
    served = 0;
    const links = Array.from({ length: 2 * fitting }, () => open(testAid(2), '192.0.2.1', ...chunks));
    await eventually('every link is served', () => served >= 2 * fitting);
    await eventually('the first links are reset', () => links.filter(({ destroyed }) => destroyed).length >= fitting);
    assert.deepEqual([links[0]?.destroyed, links.at(-1)?.destroyed], [true, false]);
    for (const link of links) link.destroy();
  }
  assert.equal(named.destroyed, false);
});

test('complete requests release all their bytes, with or without a body', async () => {
  let served = 0;
  const server = linkHttpServer({
    ...OPTIONS,
    serve: (request, response) => void request.resume().once('end', () => response.end(`${++served}`)),
  });
  const body = 'b'.repeat(15_000);
  const head = 'POST / HTTP/1.1\r\nHost: x\r\n';
  const posts = [
    [`${head}Content-Length: 15000\r\n\r\n${body}`],
    [`${head}Content-Length: 15000\r\n\r\n`, body],
    [`${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`, `${body}\r\n0\r\n\r\n`],
  ];
  const links = Array.from({ length: 600 }, (_, i) => {
    const link = freeing();
    server.emit('connection', link);
    for (const chunk of posts[i % posts.length] ?? []) link.push(chunkOf(chunk));
    return link;
  });
  await eventually('all are served', () => served === links.length);
  assert.equal(links.filter(({ destroyed }) => destroyed).length, 0);
});
