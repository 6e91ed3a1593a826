import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { deadline } from '../../../../src/foundation/deadline.ts';
import { SvcError } from '../../../../src/foundation/errors.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { HelperFailure, type HelperFailureCode } from '../../../../src/network/transport/borrowing.ts';
import { openTls } from '../../../../src/network/transport/tls/connect.ts';
import { Proxies } from '../../../../src/network/transport/tls/proxy.ts';
import { Authority } from '../../../support/lab/limits/certificates.ts';
import { SELF_SIGNED } from '../../../support/self-signed.ts';
import { TlsHelper } from '../../../support/tls-helper.ts';

const HOST = '127.0.0.1';
const NEVER = new AbortController().signal;
const DIRECT = { proxy: null, ca: '' };

function fails(failure: HelperFailureCode, text: RegExp) {
  return (error: unknown): true => {
    assert.ok(error instanceof HelperFailure, String(error));
    assert.equal(error.failure, failure);
    assert.match(error.message, text);
    return true;
  };
}

async function listen(t: TestContext, server: Server): Promise<{ host: string; port: number }> {
  server.listen(0, HOST);
  await once(server, 'listening');
  t.after(() => server.close());
  return { host: HOST, port: (server.address() as AddressInfo).port };
}

/** A website that answers every request alike. */
async function website(
  t: TestContext,
  answer: (response: ServerResponse) => void,
): Promise<{ host: string; port: number }> {
  const server = createServer(SELF_SIGNED, (_request, response) => answer(response));
  t.after(() => server.closeAllConnections());
  return await listen(t, server);
}

test('a connection is upgraded, and both sides see the same TLS session', async (t) => {
  await using helper = await TlsHelper.start(KeyPair.generate());
  const opened = await openTls({ host: HOST, port: helper.port }, DIRECT, NEVER);
  t.after(() => opened.ws.terminate());
  assert.deepEqual([opened.nonce.length, opened.exporter.length, opened.host], [32, 32, HOST]);
  assert.ok(opened.exporter.some((byte) => byte !== 0));
});

test('what answers instead of a helper is named', async (t) => {
  const open = async (answer: (response: ServerResponse) => void) =>
    await openTls(await website(t, answer), DIRECT, NEVER);
  const redirect = (response: ServerResponse) => response.writeHead(302, { Location: 'https://login.example' }).end();
  await assert.rejects(open(redirect), fails('portal', /wants a login first/));
  await assert.rejects(
    open((response) => response.writeHead(511).end()),
    fails('portal', /login/),
  );
  await assert.rejects(
    open((response) => response.writeHead(404).end()),
    fails('not_a_helper', /a web server/),
  );
  const stripped = (response: ServerResponse) => response.writeHead(404, { Via: '1.1 proxy' }).end();
  await assert.rejects(open(stripped), fails('upgrade_stripped', /does not allow WebSocket/));
  await assert.rejects(
    open((response) => response.writeHead(426).end()),
    fails('upgrade_stripped', /426/),
  );
  const squid = (status: number, error: string) => (response: ServerResponse) =>
    response.writeHead(status, { Via: '1.1 squid', 'X-Squid-Error': `${error} 0` }).end();
  await assert.rejects(
    open(squid(503, 'ERR_SECURE_CONNECT_FAIL')),
    fails('certificate_refused', /does not accept the certificate of .*tls_cert/),
  );
  await assert.rejects(open(squid(403, 'ERR_ACCESS_DENIED')), fails('proxy_refuses', /does not allow/));
  await assert.rejects(open(squid(503, 'ERR_CONNECT_FAIL')), fails('proxy_cannot_connect', /cannot connect/));
  await assert.rejects(
    open((response) => response.writeHead(502, { Via: '1.1 mitmproxy' }).end()),
    fails('proxy_cannot_connect', /does not accept its certificate \(502\)/),
  );
  await assert.rejects(
    open((response) => response.destroy()),
    fails('upgrade_stripped', /ends the connection/),
  );
});

test('a host without TCP, without TLS, or without any answer is reported with its step', async (t) => {
  const gone = createTcpServer();
  const closed = await listen(t, gone);
  gone.close();
  await assert.rejects(openTls(closed, DIRECT, NEVER), fails('tcp_refused', /ECONNREFUSED/));
  const echo = await listen(
    t,
    createTcpServer((socket) => socket.on('error', () => {}).end('220 mail\r\n')),
  );
  await assert.rejects(openTls(echo, DIRECT, NEVER), fails('tls_failed', /TLS handshake/));
  await assert.rejects(
    openTls({ host: 'nowhere.invalid', port: 443 }, DIRECT, NEVER),
    fails('name_unresolved', /does not resolve/),
  );
  const silent = await listen(
    t,
    createTcpServer((socket) => t.after(() => socket.destroy())),
  );
  using limit = deadline(systemClock, 50);
  await assert.rejects(openTls(silent, DIRECT, limit.signal), fails('tls_failed', /does not answer the TLS handshake/));
});

test('the first message fits into one packet of a path for 1,220 bytes, to a helper and to an https:// proxy', async (t) => {
  const TCP_HEADERS = 40 + 12;
  const name = `${`${'a'.repeat(63)}.`.repeat(3)}localhost`;
  const first = async (open: (at: { port: number }, signal: AbortSignal) => Promise<unknown>): Promise<number> => {
    const server = createTcpServer();
    const at = await listen(t, server);
    const end = new AbortController();
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const opening = assert.rejects(open(at, end.signal));
    const [socket] = await connected;
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    end.abort(new SvcError('cancelled'));
    socket.destroy();
    await opening;
    assert.deepEqual([bytes[0], bytes.length], [22, 5 + bytes.readUInt16BE(3)], 'the whole ClientHello');
    return bytes.length;
  };
  const toHelper = await first(({ port }, signal) => {
    const route = { ...DIRECT, addresses: [{ host: HOST, port }] };
    return openTls({ host: name, port }, route, signal);
  });
  const toProxy = await first(({ port }, signal) => {
    const settings = { proxy: `https://localhost:${port}`, proxy_command: '', tls_ca: '' };
    const proxy = new Proxies(() => settings, {}).for({ host: HOST, port: 443 });
    return openTls({ host: HOST, port: 443 }, { proxy, ca: '' }, signal);
  });
  assert.ok(Math.max(toHelper, toProxy) <= 1_220 - TCP_HEADERS, `${toHelper} and ${toProxy} bytes`);
});

test('a cancelled connection is no failure of the helper', async (t) => {
  const silent = await listen(
    t,
    createTcpServer((socket) => t.after(() => socket.destroy())),
  );
  const controller = new AbortController();
  const opening = openTls(silent, DIRECT, controller.signal);
  controller.abort(new SvcError('cancelled'));
  await assert.rejects(opening, (error) => error instanceof SvcError && error.code === 'cancelled');
});

test('with tls_ca, only certificates that it signs are accepted, for any name', async (t) => {
  await using helper = await TlsHelper.start(KeyPair.generate());
  const target = { host: HOST, port: helper.port };
  const { ws } = await openTls(target, { proxy: null, ca: SELF_SIGNED.cert }, NEVER);
  t.after(() => ws.terminate());
  await assert.rejects(
    openTls(target, { proxy: null, ca: new Authority('other').cert }, NEVER),
    fails('certificate', /not signed by the certificates of tls_ca/),
  );
});
