/** The listening socket of a node really gets a larger receive buffer. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import { isBuiltin, syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { enlargeReceiveBuffers, udpDescriptors } from '../../../../src/network/transport/quic/receive-memory.ts';
import { eventually } from '../../../support/eventually.ts';

/** The receive buffer of a descriptor, as seen by a child that inherits it. */
function bufferOf(fd: number): number {
  const script =
    "const s = require('dgram').createSocket('udp4'); s.bind({ fd: 3 }); console.log(s.getRecvBufferSize()); process.exit()";
  const { stdout } = spawnSync(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit', fd] });
  return Number(stdout.toString());
}

/** The buffer that the system grants for this request, or by default. A container does not show its limit. */
async function systemBuffer(bytes?: number): Promise<number> {
  const socket = createSocket({ type: 'udp4', ...(bytes === undefined ? {} : { recvBufferSize: bytes }) });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const size = socket.getRecvBufferSize();
  socket.close();
  return size;
}

test('a listening socket gets the maximum buffer of the system after the first connection', async () => {
  const key = KeyPair.generate();
  const endpoint = new NativeQuicEndpoint({ key, host: '127.0.0.1', port: 0 }, { log: silentLog });
  const caller = new NativeQuicEndpoint({ key: KeyPair.generate(), host: '127.0.0.1', port: 0 }, { log: silentLog });
  endpoint.onConnection(() => {});
  await endpoint.start();
  await caller.start();
  try {
    if (process.platform !== 'linux') return assert.deepEqual(udpDescriptors(endpoint.address.port), []);
    const [fd, ...more] = udpDescriptors(endpoint.address.port);
    assert.ok(fd !== undefined && more.length === 0);
    assert.equal(bufferOf(fd), await systemBuffer());
    await caller.dial(endpoint.address, key.publicKey);
    const expected = await systemBuffer(isBuiltin('node:ffi') ? 4 * 1024 * 1024 : undefined);
    await eventually('the buffer was enlarged', () => bufferOf(fd) === expected);
  } finally {
    await caller.stop();
    await endpoint.stop();
  }
});

test('no other program can bind the port of a socket with an enlarged buffer', async () => {
  const endpoint = new NativeQuicEndpoint({ key: KeyPair.generate(), host: '127.0.0.1', port: 0 }, { log: silentLog });
  endpoint.onConnection(() => {});
  await endpoint.start();
  try {
    const { port } = endpoint.address;
    await enlargeReceiveBuffers(udpDescriptors(port), 1024 * 1024);
    const thief = createSocket({ type: 'udp4', reuseAddr: true });
    const outcome = await new Promise((resolve) => {
      thief.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      thief.bind(port, '127.0.0.1', () => thief.close(() => resolve('bound')));
    });
    assert.equal(outcome, 'EADDRINUSE');
  } finally {
    await endpoint.stop();
  }
});

test('on a machine without IPv6 the IPv4 sockets are found', { skip: process.platform !== 'linux' }, async (t) => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  t.after(() => socket.close());
  await once(socket, 'listening');
  const { port } = socket.address();
  const expected = udpDescriptors(port);
  assert.equal(expected.length, 1);
  const real = fs.readFileSync;
  const read = t.mock.method(fs, 'readFileSync', (...args: Parameters<typeof real>) => {
    if (String(args[0]).endsWith('/udp6')) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    return real(...args);
  });
  syncBuiltinESMExports();
  try {
    assert.deepEqual(udpDescriptors(port), expected);
  } finally {
    read.mock.restore();
    syncBuiltinESMExports();
  }
});

test('without a socket nothing is done, and a port without a listener has no descriptors', async () => {
  assert.deepEqual(udpDescriptors(1), []);
  await enlargeReceiveBuffers([], 1);
});
