import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { endianness } from 'node:os';
import { type TestContext, test } from 'node:test';
import { connectToOwn, ForeignListener, findListeners, listenersIn } from '../../src/foundation/own-listener.ts';

const LINUX = { skip: process.platform !== 'linux' };

async function serverAt(t: TestContext, host: string): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.on('error', () => {}).end('hello')).listen(0, host);
  await once(server, 'listening');
  t.after(() => server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

test('only listeners that receive connections to 127.0.0.1 count, the most specific first', {
  skip: endianness() !== 'LE',
}, () => {
  const row = (local: string, state: string, uid: number, inode: number) =>
    `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1 0000 100 0 0 10 0`;
  const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
  const port = 0x1f90;
  const find = (...rows: string[]) => listenersIn([head, ...rows].join('\n'), port).map(({ uid }) => uid);
  assert.deepEqual(find(row('0100007F:1F90', '0A', 1000, 7)), [1000]);
  assert.deepEqual(find(row('0200007F:1F90', '0A', 1000, 7), row('0100007F:1F91', '0A', 1000, 7)), []);
  assert.deepEqual(find(row('0100007F:1F90', '01', 1000, 7)), []);
  const any = row('00000000:1F90', '0A', 1, 7);
  const any6 = row('00000000000000000000000000000000:1F90', '0A', 2, 8);
  const mapped = row('0000000000000000FFFF00000100007F:1F90', '0A', 3, 9);
  assert.deepEqual([find(any6), find(any6, any), find(any6, any, mapped)], [[2], [1], [3]]);
  const shared = [row('0100007F:1F90', '0A', 5, 1), row('0100007F:1F90', '0A', 6, 2)];
  assert.deepEqual(find(...shared), [5, 6]);
});

test('a program of this user is reached at each kind of address', LINUX, async (t) => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::']) {
    const { port } = await serverAt(t, host);
    assert.equal((await findListeners(port))?.length, 1, host);
    const socket = await connectToOwn(port);
    assert.ok(socket !== null, host);
    socket.destroy();
  }
});

test('a port of another user is not used', LINUX, async (t) => {
  const { port } = await serverAt(t, '127.0.0.1');
  const uid = (process.getuid?.() ?? 0) + 1;
  const find = async () => [{ inode: '1', uid: uid + 1 }];
  await assert.rejects(connectToOwn(port, { uid, find }), ForeignListener);
});

test('a listener that is replaced during the connection is not used', LINUX, async (t) => {
  const { server, port } = await serverAt(t, '127.0.0.1');
  let asked = 0;
  const find = async () => [{ inode: `${asked++}`, uid: 0 }];
  assert.equal(await connectToOwn(port, { find }), null);
  assert.equal(asked, 2);
  server.close();
  assert.equal(await connectToOwn(port), null);
});

test('on a system that does not report listeners, each listener is accepted', async (t) => {
  const { port } = await serverAt(t, '127.0.0.1');
  const socket = await connectToOwn(port, { find: async () => null });
  assert.ok(socket !== null);
  socket.destroy();
});
