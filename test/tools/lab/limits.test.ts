/** The networks of the lab that allow little do what they say, checked with plain sockets. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Internet } from '../../support/lab/internet.ts';
import { Authority } from '../../support/lab/limits/certificates.ts';
import { behindLimits, type LimitedMachine, type LimitKind } from '../../support/lab/limits/limits.ts';
import { Probe } from '../../support/lab/limits/probe.ts';
import { NARROW_BYTES } from '../../support/lab/limits/rules.ts';

const HOST = '203.0.113.10';
const HOST_V6 = '[2001:db8:0:1::10]';
const PORT = 4121;
const HELLO = Buffer.from('hello');
/** The first bytes of a QUIC connection: a long header and version 1. */
const QUIC_INITIAL = Buffer.from('c300000001088394c8f03e51570800', 'hex');
/** IPv4 and UDP headers. */
const HEAD_BYTES = 28;

interface Ends extends LimitedMachine {
  readonly probe: Probe;
}

/** A machine with such a network, and a public machine with echo services. */
async function ends(t: TestContext, kind: LimitKind, { seconds = 30, tls = 8443 } = {}): Promise<Ends | null> {
  const internet = await Internet.start(t);
  if (internet === null) return null;
  const services = new Probe(await internet.publicMachine('services', [10]));
  await services.serve({ udp: [PORT, 443], tcp: [PORT, 80, 443].filter((port) => port !== tls), tls });
  const limited = await behindLimits(internet, kind, kind, { seconds });
  t.after(limited.leave);
  return Object.assign(limited, { probe: new Probe(limited.machine) });
}

/** The services that answer. */
async function answers(probe: Probe, host = HOST): Promise<string> {
  const udp = [PORT, 443].map(async (port) => ({ at: `udp ${port}`, is: await probe.udp(`${host}:${port}`, HELLO) }));
  const tcp = [80, 443, PORT].map(async (port) => ({ at: `tcp ${port}`, is: await probe.tcp(`${host}:${port}`) }));
  const all = await Promise.all([...udp, ...tcp]);
  return all.flatMap(({ at, is }) => (is === 'echoed' ? [at] : [])).join(', ');
}

const TCP = 'tcp 80, tcp 443, tcp 4121';
const ALL = `udp 4121, udp 443, ${TCP}`;

test('udp-blocked: only TCP passes', async (t) => {
  const place = await ends(t, 'udp-blocked');
  if (place !== null) assert.equal(await answers(place.probe), TCP);
});

test('tcp-443-only: only HTTP and HTTPS pass', async (t) => {
  const place = await ends(t, 'tcp-443-only');
  if (place !== null) assert.equal(await answers(place.probe), 'tcp 80, tcp 443');
});

/** The proxy's address in the environment, without credentials. */
function proxyOf({ env }: LimitedMachine): { readonly at: string; readonly credentials: string } {
  const { host, username, password } = new URL(env['HTTPS_PROXY'] ?? '');
  return { at: host, credentials: username === '' ? '' : `${username}:${decodeURIComponent(password)}` };
}

test('connect-proxy: only CONNECT to port 443 passes', async (t) => {
  const place = await ends(t, 'connect-proxy');
  if (place === null) return;
  assert.equal(await answers(place.probe), '');
  const { at } = proxyOf(place);
  assert.equal(await place.probe.through(at, `${HOST}:443`), 'echoed');
  assert.equal(await place.probe.through(at, `${HOST}:${PORT}`), '403');
  const get = `GET http://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  assert.equal(await place.probe.ask(at, get), 'HTTP/1.1 405 Method Not Allowed');
  assert.deepEqual((await place.proxy?.report())?.requests, [
    `CONNECT ${HOST}:443 200`,
    `CONNECT ${HOST}:${PORT} 403`,
    `GET http://${HOST}/ 405`,
  ]);
});

test('proxy-password: only clients with the password pass', async (t) => {
  const place = await ends(t, 'proxy-password');
  if (place === null) return;
  const { at, credentials } = proxyOf(place);
  assert.equal(await place.probe.through(at, `${HOST}:443`), '407');
  assert.equal(await place.probe.through(at, `${HOST}:443`, { credentials: 'lab:wrong' }), '407');
  assert.equal(await place.probe.through(at, `${HOST}:443`, { credentials }), 'echoed');
});

test('proxy-password-rotating: the password that a command prints changes', async (t) => {
  const place = await ends(t, 'proxy-password-rotating', { seconds: 1 });
  if (place === null) return;
  const { at } = proxyOf(place);
  const current = () => place.machine.run('sh', ['-c', place.env['SVCD_PROXY_COMMAND'] ?? '']);
  const first = await current();
  assert.equal(await place.probe.through(at, `${HOST}:443`, { credentials: first }), 'echoed');
  while ((await place.probe.through(at, `${HOST}:443`, { credentials: first })) !== '407');
  assert.notEqual(await current(), first);
  assert.equal(await place.probe.through(at, `${HOST}:443`, { credentials: await current() }), 'echoed');
});

test('inspected: the proxy reads TLS with a certificate of its authority', async (t) => {
  const place = await ends(t, 'inspected', { tls: 443 });
  if (place === null) return;
  const { at } = proxyOf(place);
  await place.proxy?.watch('GET / HTTP');
  const authority = await place.machine.run('cat', [place.env['SVCD_TLS_CA'] ?? '']);
  assert.equal(await place.probe.through(at, `${HOST}:443`, { authority }), 'echoed');
  const other = new Authority('Other').cert;
  assert.equal(
    await place.probe.through(at, `${HOST}:443`, { authority: other }),
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'the certificate is not that of the server',
  );
  const report = await place.proxy?.report();
  assert.deepEqual(report?.requests.slice(0, 2), [`CONNECT ${HOST}:443 200`, 'inspected GET / HTTP/1.1']);
  assert.equal(report?.seen, 1);
});

test('quic-dropped: UDP passes, but no QUIC connection begins', async (t) => {
  const place = await ends(t, 'quic-dropped');
  if (place === null) return;
  assert.equal(await answers(place.probe), ALL);
  assert.equal(await place.probe.udp(`${HOST}:${PORT}`, QUIC_INITIAL), 'silent');
  assert.equal(await place.probe.udp(`${HOST}:443`, QUIC_INITIAL), 'silent');
});

test('five-tuple: each UDP flow is blocked permanently after some time, and a new one works', async (t) => {
  const place = await ends(t, 'five-tuple', { seconds: 1 });
  if (place === null) return;
  assert.equal(await place.probe.flow(`${HOST}:${PORT}`, 500), 'echoed, echoed, echoed');
  assert.equal(await place.probe.flow(`${HOST}:${PORT}`, 2_000), 'echoed, silent, echoed');
});

test('ipv6-only: IPv6 passes, IPv4 does not', async (t) => {
  const place = await ends(t, 'ipv6-only');
  if (place === null) return;
  assert.equal(await place.probe.udp(`${HOST}:${PORT}`, HELLO), 'silent');
  assert.equal(await place.probe.tcp(`${HOST}:443`), 'ENETUNREACH');
  assert.equal(await answers(place.probe, HOST_V6), ALL);
  assert.equal(await place.probe.tcp(`[64:ff9b::${HOST}]:443`), 'silent', 'no NAT64');
});

test('ipv6-nat64: IPv4 hosts have IPv6 addresses', async (t) => {
  const place = await ends(t, 'ipv6-nat64');
  if (place === null) return;
  assert.equal(await place.probe.tcp(`${HOST}:443`), 'ENETUNREACH');
  assert.equal(await answers(place.probe, HOST_V6), ALL);
  assert.equal(await answers(place.probe, `[64:ff9b::${HOST}]`), ALL);
  assert.equal(await place.probe.tcp(`[64:ff9b::${HOST}]:443`, { bytes: 1_000_000 }), 'echoed');
});

test('mtu-1200: larger packets are lost, and TCP works', async (t) => {
  const place = await ends(t, 'mtu-1200');
  if (place === null) return;
  const sized = (bytes: number) => place.probe.udp(`${HOST}:${PORT}`, Buffer.alloc(bytes - HEAD_BYTES));
  assert.equal(await sized(NARROW_BYTES - 4), 'echoed');
  assert.equal(await sized(NARROW_BYTES + 1), 'silent');
  assert.equal(await sized(NARROW_BYTES + 1), 'silent', 'without an ICMP message');
  assert.equal(await place.probe.tcp(`${HOST}:443`, { bytes: 1_000_000 }), 'echoed');
});

test('idle-cut: idle TCP connections are forgotten, and UDP is blocked', async (t) => {
  const place = await ends(t, 'idle-cut', { seconds: 1 });
  if (place === null) return;
  assert.equal(await answers(place.probe), TCP);
  assert.equal(await place.probe.tcp(`${HOST}:443`, { pauseMs: 200 }), 'echoed');
  assert.equal(await place.probe.tcp(`${HOST}:443`, { pauseMs: 2_000 }), 'silent');
});

test('portal: only its page answers until the login', async (t) => {
  const place = await ends(t, 'portal');
  if (place === null) return;
  const get = 'GET / HTTP/1.1\r\nHost: example.com\r\n\r\n';
  assert.equal(await place.probe.udp(`${HOST}:${PORT}`, HELLO), 'silent');
  assert.equal(await place.probe.tcp(`${HOST}:${PORT}`), 'silent');
  assert.equal(await place.probe.ask(`${HOST}:80`, get), 'HTTP/1.1 302 Found');
  assert.equal(await place.probe.ask(`${HOST}:443`, get, true), 'HTTP/1.1 302 Found');
  await place.logIn();
  assert.equal(await answers(place.probe), ALL);
});
