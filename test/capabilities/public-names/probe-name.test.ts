import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { probeName } from '../../../src/capabilities/public-names/probe-name.ts';
import { selfSigned } from '../../../src/foundation/certificate.ts';
import { systemClock } from '../../../src/foundation/clock.ts';

const NAME = 'demo.vps.test';

test('a probe tells a server with a certificate for the name from others', async (t) => {
  const clock = systemClock;
  const tls = createTlsServer(selfSigned(NAME, NAME)).listen(0, '127.0.0.1');
  const closing = createServer((socket) => socket.resetAndDestroy()).listen(0, '127.0.0.1');
  t.after(() => [tls, closing].forEach((server) => server.close()));
  await Promise.all([once(tls, 'listening'), once(closing, 'listening')]);
  const portOf = (server: typeof closing): number => (server.address() as AddressInfo).port;
  const resolve = async (): Promise<string> => '127.0.0.1';
  assert.equal(await probeName(NAME, { clock, resolve, port: portOf(tls) }), 'answers');
  assert.equal(await probeName('other.vps.test', { clock, resolve, port: portOf(tls) }), 'other');
  assert.equal(await probeName(NAME, { clock, resolve, port: portOf(closing) }), 'unreachable');
  assert.equal(await probeName(NAME, { clock, resolve: () => Promise.reject(new Error('none')) }), 'unresolved');
});
