import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { chatService } from '../../support/web-socket-service.ts';
import { gatewayWorld } from './gateway-world.ts';
import { speak } from './support.ts';

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';

/** A chat client, like a browser or an agent. */
class ChatClient {
  readonly socket: WebSocket;
  readonly heard: string[] = [];
  readonly closed: Promise<unknown>;

  constructor(url: string) {
    this.socket = new WebSocket(url.replace('http', 'ws'));
    this.socket.addEventListener('message', ({ data }) => this.heard.push(String(data)));
    this.socket.addEventListener('error', () => {});
    this.closed = new Promise((resolve) => this.socket.addEventListener('close', resolve));
  }

  hears(text: string): Promise<unknown> {
    return eventually(`hearing ${text}`, () => this.heard.includes(text));
  }
}

async function chatWorld(t: Parameters<typeof chatService>[0]) {
  const world = await gatewayWorld(t, null);
  const chat = await chatService(t);
  world.calls.bound.set(world.calls.remote, chat.bound);
  return { ...world, chat };
}

test('two clients chat through the gateway', async (t) => {
  const { api, prefix, chat, calls } = await chatWorld(t);
  const [anna, bob] = [new ChatClient(`${api.url}${prefix}/chat`), new ChatClient(`${api.url}${prefix}/chat`)];
  await Promise.all([anna.hears('welcome'), bob.hears('welcome')]);
  anna.socket.send('hello');
  await Promise.all([anna.hears('hello'), bob.hears('hello')]);
  const long = 'x'.repeat(60_000);
  bob.socket.send(long);
  await anna.hears(long);
  assert.equal(chat.asked[0]?.['svc-caller-aid'], calls.local);
  anna.socket.close();
  await anna.closed;
  await eventually('one member is left', () => chat.sockets.size === 1);
  bob.socket.close();
  await bob.closed;
});

test('the head of a 101 response has no cookie, and early bytes of the client arrive', async (t) => {
  const { api, prefix, chat } = await chatWorld(t);
  const masked = Buffer.concat([Buffer.of(0x81, 0x82, 0, 0, 0, 0), Buffer.from('hi')]);
  const socket = connect(api.port, api.host);
  const head = Buffer.from(
    `GET ${prefix}/chat HTTP/1.1\r\nHost: localhost\r\nCookie: panel=secret\r\n${HANDSHAKE}\r\n`,
  );
  socket.write(Buffer.concat([head, masked]));
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    answer += chunk;
  });
  await eventually('the echo', () => answer.endsWith('\u0081\u0002hi'));
  assert.match(answer, /^HTTP\/1\.1 101 /);
  assert.doesNotMatch(answer, /set-cookie/i);
  assert.equal(chat.asked[0]?.cookie, undefined);
  socket.destroy();
  await eventually('the service connection is closed', () => chat.sockets.size === 0);
});

test('a service may respond normally instead of switching, and errors are responses', async (t) => {
  const { api, prefix, calls } = await chatWorld(t);
  const ask = (path: string, more = ''): Promise<string> =>
    speak(api.host, api.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}${HANDSHAKE}\r\n`);
  const plain = await ask(`${prefix}/elsewhere`);
  assert.match(plain, /^HTTP\/1\.1 404 [\s\S]*content-security-policy: sandbox[\s\S]*\r\n\r\nno$/i);
  assert.doesNotMatch(plain, /set-cookie/i);
  assert.match(await ask('/aid/aid1nonsense/chat'), /^HTTP\/1\.1 400 [\s\S]*"error":"bad_aid"/);
  assert.match(await ask(`${prefix}/chat`, 'Origin: null\r\n'), /^HTTP\/1\.1 403 [\s\S]*"error":"forbidden_origin"/);
  assert.match(
    await ask(`${prefix}/chat`, 'Origin: https://evil.example\r\n'),
    /^HTTP\/1\.1 403 [\s\S]*"error":"forbidden_origin"/,
  );
  calls.access = () => {
    throw new SvcError('access_denied');
  };
  assert.match(await ask(`${prefix}/chat`), /^HTTP\/1\.1 403 [\s\S]*"error":"access_denied"/);
});

test('only WebSocket below the gateway can switch; other upgrade requests are served normally', async (t) => {
  const { api } = await chatWorld(t);
  const ask = (path: string, protocol: string): Promise<string> =>
    speak(
      api.host,
      api.port,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\n`,
    );
  assert.match(await ask('/ping', 'h2c'), /^HTTP\/1\.1 200 /);
  assert.match(await ask('/ping', 'websocket'), /^HTTP\/1\.1 200 /);
});

test('a chat is closed when the access list denies its caller', async (t) => {
  const { api, prefix, calls, chat } = await chatWorld(t);
  const client = new ChatClient(`${api.url}${prefix}/chat`);
  await client.hears('welcome');
  calls.access = () => {
    throw new SvcError('access_denied');
  };
  await calls.server.recheck(calls.remote);
  await client.closed;
  await eventually('the service connection is closed', () => chat.sockets.size === 0);
});

test('stopping the API closes its chats', async (t) => {
  const { api, prefix, chat } = await chatWorld(t);
  const socket = connect(api.port, api.host);
  socket.write(`GET ${prefix}/chat HTTP/1.1\r\nHost: localhost\r\n${HANDSHAKE}\r\n`);
  await once(socket, 'data');
  const closed = once(socket, 'close');
  await api.server.stop();
  await closed;
  await eventually('the service connection is closed', () => chat.sockets.size === 0);
});
