import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { MAX_LOCAL_CONNECTIONS, MAX_PIPELINED } from '../../../src/surfaces/rest/connections.ts';
import { RestServer } from '../../../src/surfaces/rest/server.ts';
import { eventually } from '../../support/eventually.ts';
import { collectGarbage } from '../../support/leak-check.ts';
import { TestClock } from '../../support/test-clock.ts';
import { speak, startWorld } from './support.ts';

function bare(apiAddr: string): RestServer {
  return new RestServer(
    { apiAddr, requireLocalToken: false, version: '0' },
    {
      operations: [],
      streams: [],
      token: () => '',
      metrics: [],
      isServiceConnection: () => false,
      proofKey: new Uint8Array(32),
      clock: systemClock,
      log: silentLog,
    },
  );
}

test('an address in use is a clear and fatal error', async (t) => {
  const world = await startWorld(t);
  const second = bare(`127.0.0.1:${world.port}`);
  await assert.rejects(second.start(), (error) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, 'address_in_use');
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${world.port} is already in use`));
    return true;
  });
  await second.stop();
  assert.equal((await world.request('GET', '/ping')).status, 200);
});

test('an address of another machine cannot be bound', async () => {
  await assert.rejects(bare('192.0.2.1:0').start(), { code: 'network_unavailable', exit: 1 });
  assert.throws(() => bare('nonsense'), { code: 'config_invalid' });
});

test('localhost is 127.0.0.1, and an empty host means all interfaces', async (t) => {
  const local = await startWorld(t, { apiAddr: 'localhost:0' });
  assert.deepEqual(local.server.address, { host: '127.0.0.1', port: local.port });
  const open = await startWorld(t, { apiAddr: ':0' });
  assert.equal((await open.request('GET', '/ping')).status, 200);
  assert.notEqual(open.server.address.host, '127.0.0.1');
});

test('the actual port is reported while listening', async () => {
  const server = bare('127.0.0.1:0');
  const before = server.address;
  await server.start();
  assert.equal(server.address.host, before.host);
  assert.ok(server.address.port > 0);
  await server.stop();
  assert.deepEqual(server.address, before);
});

test('stop closes idle connections immediately and cuts requests after the grace period', async () => {
  const clock = new TestClock();
  const later: (() => unknown)[] = [];
  const world = await startWorld({ after: (task: () => unknown) => later.push(task) }, { clock });
  const socket = connect(world.port, world.host, () => socket.write('GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n'));
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const { signal } = await eventually('the request', () => world.waiting[0]);
  const stopped = world.server.stop();
  assert.equal(clock.timers, 1);
  assert.ok(!signal.aborted);
  clock.advance(1_000);
  await Promise.all([stopped, ended]);
  await eventually('the abort', () => signal.aborted);
  await assert.rejects(speak(world.host, world.port, 'GET /ping HTTP/1.1\r\n\r\n'), { code: 'ECONNREFUSED' });
});

test('twenty starts and stops leave nothing behind', async () => {
  const before = process.getActiveResourcesInfo().length;
  for (let i = 0; i < 20; i++) {
    const tasks: (() => unknown)[] = [];
    const world = await startWorld({ after: (task: () => unknown) => tasks.push(task) });
    assert.equal((await world.request('GET', '/ping')).status, 200);
    for (const task of tasks) await task();
  }
  await eventually('nothing left', () => {
    // Node closes the histograms of stopped servers only when it collects them.
    collectGarbage();
    return process.getActiveResourcesInfo().length <= before;
  });
});

test('an endless JSON body times out', async (t) => {
  const clock = new TestClock();
  const world = await startWorld(t, { clock });
  const head =
    'DELETE /things/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{';
  const answer = speak(world.host, world.port, head);
  await eventually('the body timer', () => clock.timers === 1);
  clock.advance(30_000);
  assert.equal(await answer, '');
  await eventually('the timer is canceled', () => clock.timers === 0);
});

test('idle and slow connections at the limit block no client and affect no running request', async (t) => {
  const world = await startWorld(t);
  let ended = false;
  const waiting = world.request('GET', '/wait').finally(() => {
    ended = true;
  });
  waiting.catch(() => {});
  await eventually('the pending request', () => world.waiting.length === 1);
  const held = new Set<Socket>();
  t.after(() => {
    for (const socket of held) socket.destroy();
  });
  const body =
    'DELETE /things/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{';
  const beginnings = ['', 'GET /ping HTTP/1.1\r\nX: ', body];
  for (let i = 0; i < MAX_LOCAL_CONNECTIONS; i++) {
    const socket = connect(world.port, world.host).on('error', () => {});
    held.add(socket.resume());
    await once(socket, 'connect');
    socket.write(beginnings[i % beginnings.length] ?? '');
  }
  for (let i = 0; i < 20; i++) assert.equal((await world.request('GET', '/ping')).status, 200);
  assert.equal(ended, false);
});

test('a client that pipelines too many requests is cut, and its later requests are ignored', async (t) => {
  const world = await startWorld(t);
  const asked = 'GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000);
  await speak(world.host, world.port, asked).catch(() => '');
  assert.equal(world.waiting.length, MAX_PIPELINED);
});

test('an unexpected body closes its connection', async (t) => {
  const world = await startWorld(t);
  const reads = ['GET /ping HTTP/1.1', 'POST /nowhere HTTP/1.1', 'POST /ping HTTP/1.1'];
  for (const line of reads) {
    const answer = await speak(
      world.host,
      world.port,
      `${line}\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx`,
    );
    assert.match(answer, /Connection: close/i, line);
  }
});

test('an upload is requested only after the gate', async (t) => {
  const world = await startWorld(t);
  const head = (host: string) =>
    `DELETE /things/x HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
  const refused = await speak(world.host, world.port, head('evil.example'));
  assert.match(refused, /^HTTP\/1\.1 403 /);
  const answer = await speak(world.host, world.port, `${head('localhost')}{}`);
  assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 [\s\S]*bad_aid/);
});

/** Both ends of a connection that is not a socket, like a link stream. */
function pair(): [Duplex, Duplex] {
  const ends: Duplex[] = [];
  const end = (other: () => Duplex | undefined): Duplex =>
    new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        other()?.push(chunk);
        done();
      },
      final(done) {
        other()?.push(null);
        done();
      },
    });
  const a = end(() => ends[1]);
  const b = end(() => ends[0]);
  ends.push(a, b);
  return [a, b];
}

async function overStream(stream: Duplex, text: string): Promise<string> {
  let answer = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    answer += chunk;
  });
  stream.write(text);
  await new Promise<void>((resolve) => stream.once('end', () => resolve()));
  return answer;
}

test('remote administration uses the same routes, needs no token, and is never local', async (t) => {
  const world = await startWorld(t, { token: 'the-token', requireLocalToken: true });
  const call = async (path: string): Promise<string> => {
    const [near, far] = pair();
    world.server.serveRemoteAdmin(far, () => ({ tool: () => {}, answered: () => {} }));
    return overStream(near, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  };
  assert.match(await call('/ping'), /^HTTP\/1\.1 200 [\s\S]*"origin":"remote_admin"/);
  assert.match(await call('/secret'), /^HTTP\/1\.1 403 [\s\S]*"error":"local_only"/);
});
