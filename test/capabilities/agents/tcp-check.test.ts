import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { checkTcp } from '../../../src/capabilities/agents/tcp-check.ts';

test('a listening service is ok, a closed port is not', async () => {
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const open = await checkTcp({ host: '127.0.0.1', port }, 5000);
  assert.equal(open.ok, true);
  assert.ok(open.ms >= 0);
  server.close();
  await once(server, 'close');
  const closed = await checkTcp({ host: '127.0.0.1', port }, 5000);
  assert.deepEqual([closed.ok, closed.error], [false, 'ECONNREFUSED']);
});

test('a name that does not exist is not ok', async () => {
  const check = await checkTcp({ host: 'nothing.invalid', port: 1 }, 5000);
  assert.equal(check.ok, false);
  assert.ok(check.error !== undefined);
});

test('times out', async () => {
  const check = await checkTcp({ host: '127.0.0.1', port: 9 }, 0);
  assert.equal(check.ok, false);
});
