/** What a link brings is freed once the HTTP parser has seen it, and not what somebody still reads. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex, PassThrough } from 'node:stream';
import { test } from 'node:test';
import { freeMemory } from '../../../src/foundation/bytes.ts';
import { linkHttpServer, StreamsPerNode } from '../../../src/network/links/http-server.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { plainPath } from '../../../src/network/path.ts';
import { testAid } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';

const OPTIONS = { maxHeaderBytes: 16_384, maxHeaderCount: 0 };

function linkOf(stream: Duplex, node = 1): LinkStream {
  const nodeKey = new Uint8Array(32).fill(node);
  const names = { caller: testAid(2), called: testAid(1), purpose: 'http', accessToken: undefined, nodeKey } as const;
  return asLink(stream, names, () => ({ ...plainPath('direct', { host: '192.0.2.1', port: 1 }), rttMs: 0 }));
}

/** A chunk that has its memory to itself, as those of a link. */
function chunkOf(text: string): Buffer {
  const chunk = Buffer.allocUnsafeSlow(Buffer.byteLength(text, 'latin1'));
  chunk.write(text, 'latin1');
  return chunk;
}

/** A link whose other side is the test, and which frees what it is told to. */
function freeing(): LinkStream {
  const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  return Object.assign(linkOf(stream), { release: freeMemory });
}

test('the chunks of a body are freed, and the body is whole', async () => {
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

test('what follows the head of a switch belongs to whoever takes the link', async () => {
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
  await eventually('all of it', () => heard.length === 3);
  assert.equal(Buffer.concat(heard).toString(), 'earlylaterlast');
});

test('a stream that something else counts gives its place back, and takes one again where there is one', async () => {
  const streams = new StreamsPerNode(2);
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
