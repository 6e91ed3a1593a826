import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { resetSocket } from '../../src/foundation/sockets.ts';
import { eventually } from '../support/eventually.ts';

/** Both ends of a connection of this machine. */
async function pair(t: TestContext): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert(typeof address === 'object' && address !== null);
  const accepted = Promise.withResolvers<Socket>();
  server.once('connection', accepted.resolve);
  const near = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true });
  const far = await accepted.promise;
  t.after(() => {
    for (const end of [near, far]) end.destroy();
    server.close();
  });
  return [near, far];
}

test('the other end of a connection reads its reset', async (t) => {
  const [near, far] = await pair(t);
  far.resume();
  resetSocket(near);
  const [error] = await once(far, 'error');
  assert.equal(error.code, 'ECONNRESET');
  resetSocket(near);
});

test('closes a connection during the end of one half', async (t) => {
  const sockets = (): number => process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap').length;
  const before = sockets();
  const [near, far] = await pair(t);
  far.resume();
  near.write('last');
  near.end();
  const closed = once(near, 'close');
  resetSocket(near);
  await closed;
  far.destroy();
  await eventually('both are closed', () => sockets() === before);
});
