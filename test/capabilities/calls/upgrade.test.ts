import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type TestContext, test } from 'node:test';
import {
  type CallResponse,
  MAX_SWITCHED_PER_TARGET,
  type SwitchedCall,
} from '../../../src/capabilities/calls/http-caller.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { callWorld, headerOf, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { settle } from '../../support/link-world.ts';

const HANDSHAKE = ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version', '13'];

async function switchable(t: TestContext, onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void) {
  const world = await callWorld(t);
  const service = await webService(t, (_request, response) => response.writeHead(426).end('upgrade'));
  service.server.on('upgrade', onUpgrade);
  world.bound.set(world.remote, service.bound);
  const upgrade = (headers: readonly string[] = []) =>
    world.caller.upgrade(
      world.local,
      world.remote,
      { method: 'GET', path: '/ws', headers: [...HANDSHAKE, ...headers], body: null },
      ['websocket'],
    );
  return { world, upgrade };
}

function switched(answer: CallResponse | SwitchedCall): SwitchedCall {
  assert.ok('socket' in answer);
  answer.socket.on('error', () => {});
  return answer;
}

const ACCEPT = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

test('a WebSocket passes: handshake, early bytes, both directions, closing from both sides', async (t) => {
  const requests: IncomingMessage[] = [];
  const { world, upgrade } = await switchable(t, (request, socket) => {
    requests.push(request);
    socket.write(`${ACCEPT}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSvc-Error: x\r\n\r\nwelcome;`);
    socket.on('data', (data: Buffer) => socket.write(`echo ${data.toString()};`));
    socket.on('end', () => socket.end('bye'));
  });
  const { status, headers, socket, head } = switched(await upgrade(['Svc-Caller-Aid', 'evil']));
  assert.equal(status, 101);
  assert.equal(headerOf(headers, 'sec-websocket-accept'), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  assert.equal(headerOf(headers, 'svc-error'), undefined);
  let text = head.toString();
  socket.on('data', (data: Buffer) => {
    text += data.toString();
  });
  await eventually('the welcome', () => text === 'welcome;');
  socket.write('hello');
  await eventually('the echo', () => text === 'welcome;echo hello;');
  socket.end();
  await once(socket, 'close');
  assert.equal(text, 'welcome;echo hello;bye');
  const [request] = requests;
  assert.equal(request?.headers['svc-caller-aid'], world.local);
  assert.equal(request.headers.upgrade, 'websocket');
  assert.equal(request.headers['sec-websocket-version'], '13');
  await eventually('the slot is free', () => world.server.active === 0);
});

test('a service that does not switch sends a normal response', async (t) => {
  const { upgrade } = await switchable(t, (_request, socket) =>
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-Why: no\r\n\r\nno'),
  );
  const answer = await upgrade();
  assert.ok('body' in answer);
  assert.deepEqual([answer.status, await textOf(answer)], [403, 'no']);
  assert.equal(headerOf(answer.headers, 'x-why'), 'no');
});

test('errors of the called side keep their codes', async (t) => {
  const { world, upgrade } = await switchable(t, (_request, socket) => socket.destroy());
  await assert.rejects(upgrade(), { code: 'inbound_unreachable' });
  const service = world.bound.get(world.remote);
  world.bound.delete(world.remote);
  await assert.rejects(upgrade(), { code: 'no_inbound' });
  if (service !== undefined) world.bound.set(world.remote, service);
  world.access = ({ called }) => {
    if (called === world.remote) throw new SvcError('access_denied');
  };
  await assert.rejects(upgrade(), { code: 'access_denied' });
});

test('a change of the access list closes an open WebSocket immediately', async (t) => {
  const broken = Promise.withResolvers<void>();
  const { world, upgrade } = await switchable(t, (_request, socket) => {
    socket.once('error', () => broken.resolve()).resume();
    socket.write(`${ACCEPT}\r\n`);
  });
  const { socket } = switched(await upgrade());
  const closed = new Promise((resolve) => socket.resume().once('close', resolve));
  await world.server.recheck(world.remote);
  assert.equal(socket.destroyed, false);
  world.access = () => {
    throw new SvcError('access_denied');
  };
  await world.server.recheck(world.remote);
  await Promise.all([closed, broken.promise]);
});

test('a service that breaks off resets the WebSocket, and the other way round', async (t) => {
  const sockets: Socket[] = [];
  const { upgrade } = await switchable(t, (_request, socket) => {
    assert.ok(socket instanceof Socket);
    sockets.push(socket.on('error', () => {}).resume());
    socket.write(`${ACCEPT}\r\n`);
  });
  const first = switched(await upgrade());
  const firstClosed = new Promise((resolve) => first.socket.resume().once('close', resolve));
  sockets[0]?.resetAndDestroy();
  await firstClosed;
  const second = switched(await upgrade());
  second.socket.destroy();
  await eventually('the service sees the end', () => sockets[1]?.destroyed);
});

test('a service that switches without a request is rejected', async (t) => {
  const { world } = await switchable(t, () => {});
  const service = await webService(t, (_request, response) => response.end());
  service.server.removeAllListeners('request');
  service.server.on('connection', (socket) => socket.write(`${ACCEPT}\r\n`));
  world.bound.set(world.remote, service.bound);
  await assert.rejects(world.call(), { code: 'inbound_unreachable' });
});

test('open WebSockets use no call slots and have a separate limit', async (t) => {
  const sockets: Duplex[] = [];
  const { world, upgrade } = await switchable(t, (_request, socket) => {
    sockets.push(socket.on('error', () => {}));
    socket.resume();
    socket.write(`${ACCEPT}\r\n`);
  });
  const open: SwitchedCall[] = [];
  for (let i = 0; i < MAX_SWITCHED_PER_TARGET; i++) open.push(switched(await upgrade()));
  assert.equal((await world.call()).status, 426);
  await assert.rejects(upgrade(), { code: 'rate_limited' });
  open[0]?.socket.destroy();
  await eventually('the slot is free', () => world.server.active === MAX_SWITCHED_PER_TARGET - 1);
  switched(await upgrade());
});

test('a link that closes while a WebSocket is being authorized does not leak a slot', async (t) => {
  const { world } = await switchable(t, () => assert.fail('no caller is left to switch for'));
  const link = await world.near.links.open(world.local, world.remote, 'http');
  link.on('error', () => {});
  const asked = Promise.withResolvers<void>();
  const permitted = Promise.withResolvers<void>();
  world.access = () => {
    asked.resolve();
    return permitted.promise;
  };
  link.write('GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await asked.promise;
  link.destroy();
  await settle();
  permitted.resolve();
  await settle();
  assert.equal(world.server.active, 0);
});
