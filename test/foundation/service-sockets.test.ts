import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../src/foundation/address.ts';
import { ServiceSockets } from '../../src/foundation/service-sockets.ts';
import { eventually } from '../support/eventually.ts';

interface Listening {
  readonly port: number;
  /** Accepted connections with received bytes. */
  readonly accepted: { readonly socket: Socket; bytes: number }[];
}

async function listen(t: TestContext): Promise<Listening> {
  const accepted: { readonly socket: Socket; bytes: number }[] = [];
  const server: Server = createServer((socket) => {
    const one = { socket, bytes: 0 };
    accepted.push(one);
    socket
      .on('error', () => {})
      .on('data', (data: Buffer) => {
        one.bytes += data.length;
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const { socket } of accepted) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, accepted };
}

function socketsBeside(api: Address | null, interfaces: readonly string[] = []): ServiceSockets {
  return new ServiceSockets({ api: () => api, interfaces: () => interfaces });
}

test('destroys a connection to the API of the daemon before sending a byte', async (t) => {
  const api = await listen(t);
  const sockets = socketsBeside({ host: '127.0.0.1', port: api.port });
  for (const host of ['127.0.0.1', 'localhost', '0.0.0.0', '127.0.0.2']) {
    const socket = sockets.connect({ host, port: api.port, family: 4 });
    socket.write('GET / HTTP/1.1\r\n\r\n');
    const [error] = (await once(socket, 'error')) as [Error];
    // Where 127.0.0.2 is not listened on, nothing was reached either.
    assert.match(error.message, /API of the daemon|ECONNREFUSED/, host);
  }
  await eventually('the ends of all', () =>
    api.accepted.every(({ socket }) => socket.destroyed || socket.readableEnded),
  );
  assert.ok(api.accepted.length >= 3);
  assert.deepEqual(new Set(api.accepted.map(({ bytes }) => bytes)), new Set([0]));
});

/** A socket that reports its connection. */
function arrived(): Socket {
  return Object.defineProperties(new Socket(), { remoteAddress: { value: '192.0.2.7' }, remotePort: { value: 2121 } });
}

test('an address of an interface is the API too, however it is spelt, and only on its port', () => {
  for (const [own, port, isApi] of [
    ['192.0.2.7', 2121, true],
    ['::ffff:192.0.2.7', 2121, true],
    ['192.0.2.8', 2121, false],
    ['192.0.2.7', 2122, false],
  ] as const) {
    const socket = socketsBeside({ host: '', port }, [own]).watch(arrived());
    socket.on('error', () => {}).emit('connect');
    assert.equal(socket.destroyed, isApi, `${own} ${port}`);
  }
});

test('open connections to services are recognized at their other end', async (t) => {
  const service = await listen(t);
  const sockets = socketsBeside({ host: '127.0.0.1', port: service.port === 1 ? 2 : 1 });
  const ours = sockets.connect({ host: '127.0.0.1', port: service.port });
  const other = connect({ host: '127.0.0.1', port: service.port });
  await Promise.all([once(ours, 'connect'), once(other, 'connect')]);
  await eventually('both', () => service.accepted.length === 2);
  const seen = (client: Socket) =>
    service.accepted.find(({ socket }) => socket.remotePort === client.localPort)?.socket;
  const [oursThere, otherThere] = [seen(ours), seen(other)];
  assert.ok(oursThere !== undefined && otherThere !== undefined);
  assert.deepEqual([sockets.isOurs(oursThere), sockets.isOurs(otherThere)], [true, false]);
  const { localAddress, localPort, remoteAddress, remotePort } = oursThere;
  const ends = { localAddress, localPort, remoteAddress, remotePort };
  assert.equal(sockets.isOurs({ ...ends, remoteAddress: `::ffff:${remoteAddress}` }), true);
  // The system gives one port to connections to several places: another program may have it towards another one.
  assert.equal(sockets.isOurs({ ...ends, localPort: (localPort ?? 0) - 1 }), false);
  ours.destroy();
  other.destroy();
  await once(ours, 'close');
  assert.equal(sockets.isOurs(ends), false);
});

test('without an API every address is a service', async (t) => {
  const service = await listen(t);
  const socket = socketsBeside(null).connect({ host: '127.0.0.1', port: service.port });
  await once(socket, 'connect');
  assert.equal(socket.destroyed, false);
  socket.destroy();
});
