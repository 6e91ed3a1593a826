import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { AcmeServer, newAccountKey } from '../../../src/capabilities/exposures/acme.ts';
import { Certificates } from '../../../src/capabilities/exposures/certificates.ts';
import { selfSigned, type TlsCertificate } from '../../../src/foundation/certificate.ts';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { CertificateStore } from '../../../src/foundation/store/certificates.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { needsGo, startPebble } from '../../support/pebble.ts';
import { HOST, publicWorld } from '../../support/public-world.ts';
import { SELF_SIGNED } from '../../support/self-signed.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { TestClock } from '../../support/test-clock.ts';

type Order = (
  host: string,
  prove: (challenge: TlsCertificate, verified: () => Promise<void>) => Promise<void>,
  signal: AbortSignal,
) => Promise<TlsCertificate>;

async function certificatesOf(t: TestContext, order: Order, clock: Clock = systemClock) {
  const store = new CertificateStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  const certificates = new Certificates({
    clock,
    log: silentLog,
    random: () => 0.5,
    store,
    network: { reachability: () => ({ ready: true }), onReachability: () => () => {} },
    files: async () => null,
    order,
    hosts: () => [HOST],
  });
  await certificates.start();
  t.after(() => certificates.stop());
  return { certificates, store };
}

test('a certificate is ordered through the entry while other clients are served', { skip: needsGo() }, async (t) => {
  setDefaultCACertificates([...getCACertificates('bundled'), SELF_SIGNED.cert]);
  const world = await publicWorld(t, (_request, response) => response.end('ok'));
  const pebble = await startPebble(t, world.port);
  const server = new AcmeServer({ ...pebble, accountKey: newAccountKey(), clock: systemClock, fetch });
  const duringProof: string[] = [];
  const { certificates, store } = await certificatesOf(t, (host, prove, signal) =>
    server.order(
      host,
      (challenge, verified) =>
        prove(challenge, async () => {
          world.challenge.context = certificates.challenge(HOST);
          duringProof.push((await world.ask('/')).body);
          await verified();
          world.challenge.context = null;
        }),
      signal,
    ),
  );
  certificates.exposed(HOST);
  await eventually('the certificate is there', () => certificates.context(HOST) !== null);
  assert.deepEqual(duringProof, ['ok']);
  const state = certificates.state(HOST);
  assert.equal(state.error, null);
  const [now, end] = [Date.now(), state.notAfter ?? 0];
  const share = ((store.find(HOST)?.dueAt ?? 0) - now) / (end - now);
  assert.ok(share > 0.65 && share < 0.72, `${share}`);
});

test('a name that leads elsewhere is refused with the reason of the server', { skip: needsGo() }, async (t) => {
  setDefaultCACertificates([...getCACertificates('bundled'), SELF_SIGNED.cert]);
  const pebble = await startPebble(t, 9);
  const server = new AcmeServer({ ...pebble, accountKey: newAccountKey(), clock: systemClock, fetch });
  await assert.rejects(
    server.order(HOST, (_challenge, verified) => verified(), new AbortController().signal),
    (error: SvcError) => error.code === 'certificate_refused' && /refused|connect/i.test(error.message),
  );
});

/** An ACME server that answers new accounts in this way. */
async function fakeServer(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    response.setHeader('replay-nonce', 'abc');
    if (request.url !== '/dir') return answer(request, response);
    const url = `http://${request.headers.host}`;
    response.end(JSON.stringify({ newNonce: `${url}/nonce`, newAccount: `${url}/account`, newOrder: `${url}/order` }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const directory = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`;
  return new AcmeServer({ directory, accountKey: newAccountKey(), clock: systemClock, fetch });
}

test('the owner sees the reason of a server, without control characters', async (t) => {
  const problem = (type: string, detail: string) =>
    JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail });
  const order = (server: AcmeServer) => server.order(HOST, () => Promise.resolve(), new AbortController().signal);
  const limited = await fakeServer(t, (_request, response) => {
    response.writeHead(429, { 'retry-after': '7200' }).end(problem('rateLimited', 'too many certificates'));
  });
  await assert.rejects(order(limited), (error: SvcError) => {
    assert.equal(error.code, 'certificate_limited');
    assert.equal(error.details?.['retry_after_s'], 7200);
    assert.match(error.message, /too many certificates/);
    return true;
  });
  const refusing = await fakeServer(t, (_request, response) => {
    response.writeHead(403).end(problem('caa', 'CAA \u001b[31mforbids'));
  });
  await assert.rejects(order(refusing), (error: SvcError) => {
    assert.equal(error.code, 'certificate_refused');
    assert.ok(!error.message.includes('\u001b'));
    return true;
  });
  let asked = 0;
  const forgetful = await fakeServer(t, (request, response) => {
    if (request.method === 'HEAD') return void response.end();
    asked++;
    response.writeHead(400).end(problem('badNonce', 'old'));
  });
  await assert.rejects(order(forgetful), (error: SvcError) => error.code === 'certificate_refused');
  assert.equal(asked, 6);
  const large = await fakeServer(t, (_request, response) => response.end('x'.repeat(300_000)));
  await assert.rejects(order(large), (error: SvcError) => error.code === 'connect_failed');
});

test('the old certificate serves until a new one works; a limit of the server delays the next order', async (t) => {
  const clock = new TestClock();
  const answers: (TlsCertificate | SvcError)[] = [
    selfSigned(HOST, HOST),
    new SvcError('certificate_limited', { details: { retry_after_s: 20 * 3600 } }),
    { cert: 'broken', key: 'broken' },
  ];
  const { certificates, store } = await certificatesOf(
    t,
    async () => {
      const answer = answers.shift() ?? new SvcError('certificate_refused');
      if (answer instanceof SvcError) throw answer;
      return answer;
    },
    clock,
  );
  certificates.exposed(HOST);
  await clock.run(1);
  const first = certificates.context(HOST);
  assert.ok(first !== null);
  const day = 86_400_000;
  assert.equal(store.find(HOST)?.dueAt, clock.now() - 1 + 400 * day);
  await clock.run(400 * day);
  assert.equal(certificates.state(HOST).error?.code, 'certificate_limited');
  assert.ok((store.find(HOST)?.dueAt ?? 0) >= clock.now() + 19.9 * 3_600_000);
  await clock.run(20 * 3_600_000);
  assert.equal(certificates.state(HOST).error?.code, 'internal');
  assert.equal(certificates.context(HOST), first);
  assert.ok(new X509Certificate(store.find(HOST)?.chain ?? '').checkHost(HOST));
});

test('a server can delay the next order by eight days at most', async (t) => {
  const clock = new TestClock();
  let orders = 0;
  const order = async (): Promise<TlsCertificate> => {
    orders++;
    throw new SvcError('certificate_limited', { details: { retry_after_s: 90_000_000 } });
  };
  const { certificates } = await certificatesOf(t, order, clock);
  certificates.exposed(HOST);
  const day = 86_400_000;
  await clock.run(7 * day);
  assert.equal(orders, 1);
  await clock.run(2 * day);
  assert.equal(orders, 2);
});

test('an order is planned at the start for a host without one', async (t) => {
  const { certificates } = await certificatesOf(t, async () => selfSigned(HOST, HOST));
  await eventually('its certificate is there', () => certificates.context(HOST) !== null);
});

test('the key is stored sealed, and a host that is no longer exposed is not renewed', async (t) => {
  const own = selfSigned(HOST, HOST);
  const { certificates, store } = await certificatesOf(t, async () => own);
  certificates.exposed(HOST);
  await eventually('it is there', () => certificates.context(HOST) !== null);
  assert.equal(store.find(HOST)?.key, own.key);
  store.plan('other.vps.test', 0);
  certificates.exposed('other.vps.test');
  assert.equal(store.find('other.vps.test')?.dueAt, null);
  assert.equal(certificates.state('other.vps.test').notAfter, null);
});
