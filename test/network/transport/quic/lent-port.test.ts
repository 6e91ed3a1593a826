import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { EngineLentPort, LENT_PORT_TIMEOUT_MS } from '../../../../src/network/transport/quic/lent-port.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { quietPort } from '../../../support/programs.ts';

const HOST = '127.0.0.1';

async function endpoint(t: TestContext) {
  const key = KeyPair.generate();
  const made = new NativeQuicEndpoint({ key, host: HOST, port: 0 }, { log: silentLog });
  await made.start();
  t.after(() => made.stop());
  return { key, endpoint: made };
}

async function world(t: TestContext) {
  const [listener, dialer] = await Promise.all([endpoint(t), endpoint(t)]);
  const port = await quietPort();
  const options = { host: '0.0.0.0', port, expectedKey: dialer.key.publicKey } as const;
  const lent = new EngineLentPort(options, listener.endpoint.parts, systemClock);
  t.after(() => lent.close());
  const dial = (from: typeof dialer) => from.endpoint.dial({ host: HOST, port }, listener.key.publicKey);
  return { listener, dialer, options, lent, dial };
}

test('of several connections, the first one with a stream from the other node is used, with that stream', async (t) => {
  const { listener, dialer, lent, dial } = await world(t);
  const [unused, wanted] = [await dial(dialer), await dial(dialer)];
  const stream = await wanted.openStream();
  stream.write('hello');
  const native = await lent.connection();
  await unused.closed;
  const accepted = Promise.withResolvers<Buffer>();
  listener.endpoint.onConnection((connection) =>
    connection.onStream((first) => first.once('data', (chunk: Buffer) => accepted.resolve(chunk))),
  );
  const adopted = listener.endpoint.adopt(native, { outbound: false, way: { kind: 'punched' } });
  assert.equal(String(await accepted.promise), 'hello');
  assert.deepEqual(adopted.remoteKey, dialer.key.publicKey);
  assert.equal(adopted.path.kind, 'punched');
  stream.on('error', () => {});
  wanted.close();
  await adopted.closed;
});

test('an unexpected node is rejected', async (t) => {
  const { lent, dial } = await world(t);
  const stranger = await dial(await endpoint(t));
  await stranger.closed;
  const none = await Promise.race([lent.ended.then(() => 'ended'), Promise.resolve('waiting')]);
  assert.equal(none, 'waiting');
});

test('a closed port is free again immediately, and its waiting caller gets an error', async (t) => {
  const { listener, options, lent } = await world(t);
  const waiting = lent.connection();
  const refused = assert.rejects(waiting, { code: 'cancelled' });
  await lent.close();
  await refused;
  await lent.ended;
  const again = new EngineLentPort(options, listener.endpoint.parts, systemClock);
  assert.throws(() => new EngineLentPort(options, listener.endpoint.parts, systemClock), { code: 'connect_failed' });
  await again.close();
});

test('a closed port is free although the other node has connected, if no caller took the connection', async (t) => {
  const { listener, dialer, lent, options, dial } = await world(t);
  const connection = await dial(dialer);
  const stream = await connection.openStream();
  stream.on('error', () => {});
  stream.write('hello');
  // Nothing tells when the port has accepted the stream, except that its other connections are closed.
  await (await dial(dialer)).closed;
  await lent.close();
  await connection.closed;
  await lent.ended;
  await new EngineLentPort(options, listener.endpoint.parts, systemClock).close();
});

test('without a connection the wait times out, and the port is free again', async (t) => {
  const { listener, options, lent } = await world(t);
  await assert.rejects(lent.connection(20), { code: 'timeout' });
  await lent.close();
  await new EngineLentPort(options, listener.endpoint.parts, systemClock).close();
});

test('a caller that waits for a port is not delayed by unfinished handshakes', async (t) => {
  const { dialer, lent, options, listener } = await world(t);
  const silent = createSocket('udp4').bind(0, HOST);
  t.after(() => silent.close());
  await once(silent, 'listening');
  const first = once(silent, 'message');
  const address = { host: HOST, port: silent.address().port };
  const dial = dialer.endpoint.dial(address, listener.key.publicKey, { timeoutMs: LENT_PORT_TIMEOUT_MS });
  dial.catch(() => {});
  const [initial] = await first;
  silent.send(initial, options.port, HOST);
  // The response shows that the handshake has begun. It does not continue.
  await once(silent, 'message', { signal: t.signal });
  await assert.rejects(lent.connection(20), { code: 'timeout' });
  const closed = lent.close().then(() => 'closed');
  assert.equal(await Promise.race([closed, setImmediate('waiting')]), 'waiting');
  await closed;
});

test('a connection dialed on request of the other node counts against its limit here', async (t) => {
  const key = KeyPair.generate();
  const limits = { connections: 1, countLoopback: true };
  const asked = new NativeQuicEndpoint({ key, host: HOST, port: 0, limits }, { log: silentLog });
  await asked.start();
  t.after(() => asked.stop());
  const requester = await endpoint(t);
  requester.endpoint.onConnection(() => {});
  const dial = (isAsked: boolean) =>
    asked.dial(requester.endpoint.address, requester.key.publicKey, { isAsked, way: { kind: 'punched' } });
  const first = await dial(true);
  await assert.rejects(dial(true), { code: 'connect_failed' });
  await dial(false);
  first.close();
  await first.closed;
  await dial(true);
});
