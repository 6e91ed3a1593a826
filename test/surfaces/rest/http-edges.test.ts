/** Legal but unusual HTTP. A local address and the gateway pass it unchanged, or fail with a clear error. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { MAX_HEADERS } from '../../../src/capabilities/calls/headers.ts';
import { eventually } from '../../support/eventually.ts';
import { edgesWorld, open, speak } from './edges-world.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok';
const UTF8 = Buffer.from('ü€').toString('latin1');

/** A service with fixed responses by path. */
function answering(answers: ReadonlyMap<string, string>) {
  return (head: string, socket: Socket): void => {
    const path = / (\S*)/.exec(head)?.[1] ?? '';
    socket.write(answers.get(path) ?? OK, 'latin1');
  };
}

test('bytes above 0x7F in response headers pass unchanged, before and after the length', async (t) => {
  const lines = [
    `Content-Disposition: attachment; filename="${UTF8}.txt"`,
    'Content-Disposition: attachment; filename="\xfc.txt"',
    'Content-Disposition: attachment; filename="\xd6\xd0.txt"',
    `ETag: "${UTF8}"`,
    `X-Title: ${UTF8}`,
  ];
  const length = 'Content-Length: 2';
  const answers = new Map<string, string>();
  for (const [i, line] of lines.entries())
    for (const [order, head] of [`${length}\r\n${line}`, `${line}\r\n${length}`, line].entries())
      answers.set(`/${i}/${order}`, `HTTP/1.1 200 OK\r\n${head}\r\nConnection: close\r\n\r\nok`);
  answers.set('/moved', `HTTP/1.1 302 Found\r\nLocation: /${UTF8}?a=${UTF8}\r\nContent-Length: 0\r\n\r\n`);
  answers.set('/cookie', `HTTP/1.1 200 OK\r\nSet-Cookie: n=${UTF8}\r\nContent-Length: 0\r\n\r\n`);
  const serve = answering(answers);
  const { edges } = await edgesWorld(t, (head, socket) => {
    serve(head, socket);
    // Without a length, the end of the connection ends the body.
    if (/ \/\d\/2 /.test(head)) socket.end();
  });
  for (const edge of edges) {
    for (const [i, line] of lines.entries())
      for (const order of [0, 1, 2]) {
        const answer = await speak(edge, `/${i}/${order}`);
        assert.match(answer, /^HTTP\/1\.1 200 /, `${edge.name}: ${line}: ${order}`);
        assert.ok(answer.split('\r\n').includes(line), `${edge.name}: ${line}: ${order}: ${answer}`);
      }
    const escaped = encodeURIComponent('ü€');
    assert.match(
      await speak(edge, '/moved'),
      new RegExp(`\r\nlocation: ${edge.prefix}/${escaped}\\?a=${escaped}\r\n`, 'i'),
    );
  }
  const [origin] = edges;
  assert.ok(origin !== undefined && (await speak(origin, '/cookie')).includes(`\r\nSet-Cookie: n=${UTF8}\r\n`));
});

test('bytes above 0x7F in request headers pass unchanged, with a body and without', async (t) => {
  const { edges, heads } = await edgesWorld(t, (_head, socket) => void socket.write(OK));
  const line = `X-Title: ${UTF8}\r\nContent-Disposition: form-data; filename="${UTF8}"\r\n`;
  for (const edge of edges) {
    assert.match(await speak(edge, '/', line), /^HTTP\/1\.1 200 /);
    assert.match(await speak(edge, '/', `Content-Length: 2\r\n${line}`, 'POST'), /^HTTP\/1\.1 200 /);
  }
  for (const head of heads) assert.ok(head.includes(line), head);
  assert.equal(heads.length, 2 * edges.length);
});

test('a Trailer header is dropped without chunks, and kept with trailers', async (t) => {
  const trailer = 'Trailer: X-T\r\n';
  const chunks = 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: v\r\n\r\n';
  const { edges, heads } = await edgesWorld(
    t,
    answering(
      new Map([
        ['/304', `HTTP/1.1 304 Not Modified\r\n${trailer}ETag: "a"\r\n\r\n`],
        ['/204', `HTTP/1.1 204 No Content\r\n${trailer}\r\n`],
        ['/length', `HTTP/1.1 200 OK\r\n${trailer}Content-Length: 2\r\n\r\nok`],
        ['/chunks', `HTTP/1.1 200 OK\r\n${trailer}${chunks}`],
      ]),
    ),
  );
  for (const edge of edges) {
    for (const path of ['/304', '/204', '/length'])
      assert.doesNotMatch(await speak(edge, path), /^HTTP\/1\.1 502 |\r\ntrailer:/i, `${edge.name} ${path}`);
    assert.match(await speak(edge, '/chunks'), /^HTTP\/1\.1 200 [\s\S]*\r\ntrailer: X-T\r\n[\s\S]*\r\nX-T: v\r\n/i);
    const asked = heads.length;
    assert.match(await speak(edge, '/', `${trailer}Content-Length: 0\r\n`, 'POST'), /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(heads[asked] ?? '', /^trailer:/im);
  }
});

test('a response over a header limit has a clear error', async (t) => {
  const many = (count: number): string => Array.from({ length: count }, (_, i) => `X-H${i}: v\r\n`).join('');
  const { edges } = await edgesWorld(
    t,
    answering(
      new Map([
        ['/fits', `HTTP/1.1 200 OK\r\n${many(MAX_HEADERS - 1)}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
        ['/many', `HTTP/1.1 200 OK\r\n${many(MAX_HEADERS)}Content-Length: 0\r\n\r\n`],
        ['/large', `HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(60_000)}\r\nContent-Length: 0\r\n\r\n`],
        ['/broken', 'HTTP/1.1 2x0 OK\r\n\r\n'],
      ]),
    ),
  );
  for (const edge of edges) {
    assert.match(await speak(edge, '/fits'), /^HTTP\/1\.1 200 /, edge.name);
    for (const [path, reason] of [
      ['/many', 'too_many_headers'],
      ['/large', 'head_too_large'],
      ['/broken', 'malformed'],
    ] as const)
      assert.match(
        await speak(edge, path),
        new RegExp(`^HTTP/1\\.1 502 [\\s\\S]*"bad_response"[\\s\\S]*"${reason}"`),
        `${edge.name} ${path}`,
      );
  }
});

test('a request with too many headers is rejected with the reason', async (t) => {
  const { edges, heads } = await edgesWorld(t, (_head, socket) => void socket.write(OK));
  const many = Array.from({ length: MAX_HEADERS }, (_, i) => `X-H${i}: v\r\n`).join('');
  for (const edge of edges) assert.match(await speak(edge, '/', many), /^HTTP\/1\.1 431 [\s\S]*"too_large"/, edge.name);
  assert.deepEqual(heads, []);
});

test('a switch to a protocol without HTTP passes, including the body of the request', async (t) => {
  const body = '{"Detach":false,"Tty":true}';
  const { edges, heads } = await edgesWorld(t, (head, socket, rest) => {
    let asked = rest.toString();
    const begin = (): void => {
      if (asked.length < (head.includes('/exec') ? body.length : 0)) return;
      socket.off('data', take);
      socket.write('HTTP/1.1 101 UPGRADED\r\nContent-Type: x/raw\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
      socket.write(`${asked};`);
      socket.on('data', (chunk) => socket.write(`echo ${chunk.toString()};`));
      socket.on('end', () => socket.end('bye'));
    };
    const take = (chunk: Buffer): void => {
      asked += chunk.toString();
      begin();
    };
    socket.on('data', take);
    begin();
  });
  const upgrade = 'Connection: Upgrade\r\nUpgrade: tcp\r\n';
  for (const edge of edges)
    for (const [path, lines, sent] of [
      ['/attach', 'Content-Length: 0\r\n', ''],
      ['/exec', `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`, body],
    ] as const) {
      const { socket, output, ended } = open(edge);
      socket.write(`POST ${edge.prefix}${path} HTTP/1.1\r\nHost: localhost\r\n${upgrade}${lines}\r\n`);
      // After the head, in a separate packet.
      if (sent !== '') setImmediate(() => socket.write(sent));
      await eventually(`${edge.name} ${path}: the protocol switched`, () => output().endsWith(`\r\n\r\n${sent};`));
      assert.match(output(), /^HTTP\/1\.1 101 [\s\S]*\r\nUpgrade: tcp\r\n/);
      socket.write('one');
      await eventually('the echo', () => output().endsWith('echo one;'));
      // A half-close: the other direction continues.
      socket.end();
      assert.equal(await ended, 'end');
      assert.ok(output().endsWith('bye'), output());
      assert.match(heads.at(-1) ?? '', /^upgrade: tcp\r$/im);
    }
});

test('a switch to a protocol with HTTP is not requested, and an unoffered protocol is rejected', async (t) => {
  const { edges, heads } = await edgesWorld(t, (head, socket) => {
    if (head.includes('/other')) socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI');
    else socket.write(OK);
  });
  const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\nUpgrade: h2c\r\n';
  for (const edge of edges) {
    const { socket, output } = open(edge);
    socket.write(`GET ${edge.prefix}/ HTTP/1.1\r\nHost: localhost\r\n${h2c}\r\n`);
    await eventually('the response', () => /^HTTP\/1\.1 200 [\s\S]*ok$/.test(output()));
    socket.destroy();
    assert.doesNotMatch(heads.at(-1) ?? '', /^(?:upgrade|http2-settings):/im);
    const other = open(edge);
    other.socket.write(
      `GET ${edge.prefix}/other HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp, h2c\r\n\r\n`,
    );
    await other.ended;
    assert.match(other.output(), /^HTTP\/1\.1 502 [\s\S]*"bad_response"/);
    assert.match(heads.at(-1) ?? '', /^upgrade: tcp\r$/im);
  }
});

test('a call that returns to an agent that it has passed is rejected with 508', async (t) => {
  const world = await edgesWorld(t, (_head, socket) => void socket.write(OK));
  const [origin] = world.edges;
  assert.ok(origin !== undefined);
  const bound = world.calls.bound.get(world.calls.remote);
  assert.ok(bound !== undefined);
  world.calls.bound.set(world.calls.remote, { ...bound, port: origin.port });
  for (const edge of world.edges)
    assert.match(await speak(edge, '/'), /^HTTP\/1\.1 508 [\s\S]*"loop_detected"/, edge.name);
  assert.match(
    await speak(origin, '/', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
    /^HTTP\/1\.1 508 [\s\S]*"loop_detected"/,
  );
});

test('an incomplete response of unknown length never looks complete, even to an HTTP/1.0 client', async (t) => {
  const { edges, served } = await edgesWorld(t, (_head, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n');
  });
  for (const edge of edges)
    for (const version of ['1.0', '1.1']) {
      const { socket, output, ended } = open(edge);
      socket.write(`GET ${edge.prefix}/ HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      await eventually('it has begun', () => output().includes('ok'));
      for (const one of served) one.resetAndDestroy();
      const end = await ended;
      if (version === '1.0') assert.equal(end, 'broken', `${edge.name}: HTTP/1.0`);
      else assert.doesNotMatch(output(), /\r\n0\r\n\r\n$/, edge.name);
      if (!socket.closed) await once(socket.destroy(), 'close');
    }
});
