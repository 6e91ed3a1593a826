import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { selfSigned } from '../../../../src/foundation/certificate.ts';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { deadline } from '../../../../src/foundation/deadline.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { HelperFailure, type HelperFailureCode } from '../../../../src/network/transport/borrowing.ts';
import { UdpOverTls } from '../../../../src/network/transport/tls/client.ts';
import { openTls } from '../../../../src/network/transport/tls/connect.ts';
import { type Environment, isExcepted, Proxies, parseProxy } from '../../../../src/network/transport/tls/proxy.ts';
import { ConnectProxy } from '../../../support/connect-proxy.ts';
import { SELF_SIGNED } from '../../../support/self-signed.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { TlsHelper } from '../../../support/tls-helper.ts';

const SIGNAL = new AbortController().signal;
const TARGET = { host: '192.0.2.1', port: 443 };

function proxies(env: Environment = {}, settings: Partial<Parameters<typeof settingsOf>[0]> = {}): Proxies {
  return new Proxies(() => settingsOf(settings), env);
}

function settingsOf({ proxy = 'auto', proxy_command = '', tls_ca = '' }) {
  return { proxy, proxy_command, tls_ca };
}

/** Checks a failure, and that nothing in it shows a password. */
function fails(failure: HelperFailureCode, text: RegExp) {
  return (error: unknown): true => {
    assert.ok(error instanceof HelperFailure, String(error));
    assert.deepEqual([error.failure, error.details], [failure, { cause: failure }]);
    assert.match(error.message, text);
    assert.doesNotMatch(inspect(error, { depth: 9 }), /pass-?word-?\d|c2VjcmV0|secret/);
    return true;
  };
}

async function proxy(t: TestContext, options: Parameters<typeof ConnectProxy.start>[0] = {}): Promise<ConnectProxy> {
  const made = await ConnectProxy.start(options);
  t.after(() => made[Symbol.asyncDispose]());
  return made;
}

async function helper(t: TestContext): Promise<TlsHelper> {
  const made = await TlsHelper.start(KeyPair.generate());
  t.after(() => made[Symbol.asyncDispose]());
  return made;
}

/** Connects to a helper through the proxy for it. */
async function open({ port }: { readonly port: number }, all: Proxies, host = '127.0.0.1'): Promise<void> {
  const target = { host, port };
  const { ws, proxy: used } = await openTls(target, { proxy: all.for(target), ca: '' }, SIGNAL);
  ws.terminate();
  assert.notEqual(used, null);
}

test('the environment chooses the proxy, in the spellings of other programs', () => {
  const nameOf = (env: Environment): string | undefined => proxies(env).for(TARGET)?.name;
  assert.equal(nameOf({}), undefined);
  assert.equal(nameOf({ HTTP_PROXY: 'http://a:1' }), undefined, 'it is for http:// only');
  assert.equal(nameOf({ HTTPS_PROXY: 'http://a:1', ALL_PROXY: 'http://b:2' }), 'a:1');
  assert.equal(nameOf({ https_proxy: 'http://c:3', HTTPS_PROXY: 'http://a:1' }), 'c:3');
  assert.equal(nameOf({ all_proxy: 'https://d' }), 'd:443');
  assert.equal(nameOf({ HTTPS_PROXY: 'e' }), 'e:80');
  assert.equal(nameOf({ HTTPS_PROXY: 'http://a:1', NO_PROXY: 'example, 192.0.2.0/24' }), undefined);
  assert.deepEqual([proxies({}).isSet, proxies({ ALL_PROXY: 'a' }).isSet], [false, true]);
});

test('the configuration comes before the environment', () => {
  const env = { HTTPS_PROXY: 'http://a:1', NO_PROXY: '*' };
  assert.equal(proxies(env, { proxy: 'http://b:2' }).for(TARGET)?.name, 'b:2');
  const none = proxies(env, { proxy: 'none' });
  assert.deepEqual([none.for(TARGET), none.isSet], [null, false]);
});

test('other kinds of proxies are refused with a reason', () => {
  const socks = proxies({ ALL_PROXY: 'socks5h://user:password1@a:1080' });
  assert.throws(
    () => socks.for(TARGET),
    fails('proxy_invalid', /^ALL_PROXY names a proxy of the kind socks5h:\/\/, which svcd does not support/),
  );
  assert.throws(() => parseProxy('ftp://a'), fails('proxy_invalid', /^"proxy" names a proxy of the kind ftp/));
  assert.throws(() => parseProxy('"http://proxy:3128"'), fails('proxy_invalid', /^"proxy" is not an http:/));
  assert.equal(parseProxy('http://proxy:3128\r\n').host, 'proxy');
  assert.throws(() => parseProxy('http://', 'https_proxy'), fails('proxy_invalid', /^https_proxy is not an http:/));
  assert.deepEqual(parseProxy('http://me:p%40ss@[2001:db8::1]:3128'), {
    ...{ host: '2001:db8::1', port: 3128, isSecure: false, credentials: 'me:p@ss', setBy: '"proxy"' },
  });
});

test('NO_PROXY takes names with their subdomains, addresses, networks and ports', () => {
  const cases: readonly (readonly [entry: string, host: string, isExcepted: boolean])[] = [
    ['*', 'a.example', true],
    ['example.com', 'example.com', true],
    ['example.com', 'a.EXAMPLE.com', true],
    ['.example.com', 'a.example.com', true],
    ['*.example.com', 'a.example.com', true],
    ['example.com', 'notexample.com', false],
    ['example.com:443', 'example.com', true],
    ['example.com:80', 'example.com', false],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1:443', '192.0.2.1', true],
    ['192.0.2.0/24', '192.0.2.77', true],
    ['192.0.2.0/24', '192.0.3.1', false],
    ['2001:db8::1', '2001:db8::1', true],
    ['[2001:db8::1]:443', '2001:db8::1', true],
    ['[2001:db8::1]:80', '2001:db8::1', false],
    [' , ', 'example.com', false],
  ];
  for (const [entry, host, expected] of cases)
    assert.equal(isExcepted({ host, port: 443 }, `localhost, ${entry}`), expected, `${entry} ${host}`);
});

test('a connection leads through the proxy with the password of its URL', async (t) => {
  const [to, door] = [await helper(t), await proxy(t, { credentials: 'me:p@ss:1' })];
  await open(to, proxies({ HTTPS_PROXY: `http://me:p%40ss:1@127.0.0.1:${door.port}` }));
  assert.deepEqual(door.requests, [`127.0.0.1:${to.port} 200`], 'without a round trip for the password');
});

test('the proxy resolves names, so this machine needs no DNS', async (t) => {
  const to = await helper(t);
  const door = await proxy(t, { hosts: { 'helper.invalid': '127.0.0.1' } });
  await open(to, proxies({ HTTPS_PROXY: `http://127.0.0.1:${door.port}` }), 'helper.invalid');
  assert.deepEqual(door.requests, [`helper.invalid:${to.port} 200`]);
});

test('proxy_command runs once, and again when the password has changed', async (t) => {
  const [to, door] = [await helper(t), await proxy(t, { credentials: 'me:password1' })];
  const directory = temporaryDirectory(t);
  const [file, runs] = [join(directory, 'password'), join(directory, 'runs')];
  writeFileSync(file, 'me:password1\n');
  const proxy_command = `echo run >> ${runs}; cat ${file}`;
  const all = proxies({}, { proxy: `http://127.0.0.1:${door.port}`, proxy_command });
  await open(to, all);
  await open(to, all);
  door.credentials = 'me:password2';
  writeFileSync(file, 'me:password2\n');
  await open(to, all);
  await open(to, all);
  const statuses = door.requests.map((line) => line.split(' ')[1]);
  assert.deepEqual(statuses, ['200', '200', '407', '200', '200']);
  // The command still prints the old password: later attempts run it again.
  door.credentials = 'me:password3';
  await assert.rejects(open(to, all), fails('proxy_wants_password', /rejects the password that proxy_command prints/));
  writeFileSync(file, 'me:password3\n');
  await open(to, all);
});

test('a proxy command that fails is reported without its output', async (t) => {
  const door = await proxy(t);
  const proxied = (proxy_command: string) => proxies({}, { proxy: `http://127.0.0.1:${door.port}`, proxy_command });
  await assert.rejects(
    open({ port: 443 }, proxied('echo secret >&2; exit 3')),
    fails('proxy_command_failed', /failed \(3\)/),
  );
  await assert.rejects(
    open({ port: 443 }, proxied('echo secret')),
    fails('proxy_command_failed', /does not print user:password/),
  );
  assert.deepEqual(door.requests, []);
});

test('each refusal of a proxy has its code and says what to do', async (t) => {
  const through = async (options: Parameters<typeof ConnectProxy.start>[0], user = ''): Promise<void> => {
    const door = await proxy(t, options);
    await open({ port: 443 }, proxies({ HTTPS_PROXY: `http://${user}127.0.0.1:${door.port}` }));
  };
  const credentials = 'me:password1';
  await assert.rejects(through({ credentials }), fails('proxy_wants_password', /wants a password\. Set HTTPS_PROXY/));
  await assert.rejects(
    through({ credentials }, 'me:password2@'),
    fails('proxy_wants_password', /rejects the password in its URL/),
  );
  await assert.rejects(
    through({ credentials, wants: 'Negotiate' }),
    fails('proxy_wants_password', /wants Negotiate authentication, which svcd does not support/),
  );
  await assert.rejects(
    through({ status: 403 }),
    fails('proxy_refuses', /does not allow connections to 127\.0\.0\.1:443 \(403\)/),
  );
  await assert.rejects(through({ status: 302 }), fails('portal', /answers with a login page/));
  await assert.rejects(
    through({ headers: 'Content-Type: text/html\r\n' }),
    fails('portal', /answers with a login page/),
  );
  await assert.rejects(
    through({ status: 503 }),
    fails('proxy_cannot_connect', /cannot connect to 127\.0\.0\.1:443 \(503\)/),
  );
});

test('a proxy that is not there, or is none, is reported', async (t) => {
  const gone = await ConnectProxy.start();
  const { port } = gone;
  await gone[Symbol.asyncDispose]();
  const at = (to: number): Proxies => proxies({ HTTPS_PROXY: `http://me:password1@127.0.0.1:${to}` });
  await assert.rejects(open({ port: 443 }, at(port)), fails('proxy_unreachable', /cannot be reached \(ECONNREFUSED\)/));
  const lender = await helper(t);
  await assert.rejects(open({ port: 443 }, at(lender.port)), fails('proxy_unreachable', /without an answer/));
});

test('without the proxy of the environment the connection is direct, but not without a configured one', async (t) => {
  const [gone, to] = [await ConnectProxy.start(), await helper(t)];
  const url = `http://127.0.0.1:${gone.port}`;
  await gone[Symbol.asyncDispose]();
  const target = { host: '127.0.0.1', port: to.port };
  const through = async (all: Proxies) => await openTls(target, { proxy: all.for(target), ca: '' }, SIGNAL);
  const { ws, host, proxy: used } = await through(proxies({ HTTPS_PROXY: url }));
  ws.terminate();
  assert.deepEqual([host, used], ['127.0.0.1', null]);
  await assert.rejects(through(proxies({}, { proxy: url })), fails('proxy_unreachable', /cannot be reached/));
});

test('tls_ca is for the certificate of an https:// proxy, and not for that of the helper', async (t) => {
  const key = KeyPair.generate();
  const [to, door] = [await helper(t), await proxy(t, { isSecure: true })];
  const file = join(temporaryDirectory(t), 'ca.pem');
  writeFileSync(file, SELF_SIGNED.cert);
  const all = proxies({ HTTPS_PROXY: `https://localhost:${door.port}` }, { tls_ca: file });
  const { cert } = selfSigned();
  const client = new UdpOverTls({
    ...{ clock: systemClock, log: silentLog, proxies: all, ca: () => cert },
    identity: { key, tag: new Uint8Array(8) },
  });
  const session = await client.open({ host: '127.0.0.1', port: to.port }, SIGNAL);
  assert.equal(session.proxy, `localhost:${door.port}`);
  session.close();
});

test('a proxy that does not answer CONNECT is reached, but slow', async (t) => {
  const door = await proxy(t, { isSilent: true });
  const all = proxies({ HTTPS_PROXY: `http://127.0.0.1:${door.port}` });
  using limit = deadline(systemClock, 200);
  const opening = openTls(TARGET, { proxy: all.for(TARGET), ca: '' }, limit.signal);
  await assert.rejects(
    opening,
    fails('proxy_silent', /accepts connections, but has not connected to 192\.0\.2\.1:443/),
  );
});

test('only HTTP_PROXY is no proxy for svcd, and is reported', () => {
  assert.equal(proxies({ HTTP_PROXY: 'http://a:1' }).isPlainOnly, true);
  assert.equal(proxies({ HTTP_PROXY: 'http://a:1', ALL_PROXY: 'http://b:2' }).isPlainOnly, false);
  assert.equal(proxies({ HTTP_PROXY: 'http://a:1' }, { proxy: 'none' }).isPlainOnly, false);
});

test('a password goes to an https:// proxy only if its certificate is valid', async (t) => {
  const [to, door] = [await helper(t), await proxy(t, { isSecure: true, credentials: 'me:password1' })];
  const env = { HTTPS_PROXY: `https://me:password1@localhost:${door.port}` };
  await assert.rejects(open(to, proxies(env)), fails('proxy_unreachable', /SELF_SIGNED/));
  assert.deepEqual(door.requests, []);
  const file = join(temporaryDirectory(t), 'ca.pem');
  writeFileSync(file, SELF_SIGNED.cert);
  await open(to, proxies(env, { tls_ca: file }));
  assert.equal(door.requests.length, 1);
});
