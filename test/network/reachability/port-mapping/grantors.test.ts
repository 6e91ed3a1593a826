import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../../src/foundation/address.ts';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { NatPmpGrantor } from '../../../../src/network/reachability/port-mapping/nat-pmp.ts';
import { PcpGrantor } from '../../../../src/network/reachability/port-mapping/pcp.ts';
import { UpnpGrantor } from '../../../../src/network/reachability/port-mapping/upnp.ts';

const HOST = '127.0.0.1';
const CHUNK = 'x'.repeat(65_536);
/** Maximum number of bytes in the socket buffers of both ends. */
const MOST_IN_BUFFERS = 32 * 1024 * 1024;
const { signal } = new AbortController();
const clock = systemClock;

/** A router that answers each datagram with the output of the script. */
async function udpRouter(t: TestContext, script: (request: Buffer) => readonly Uint8Array[]): Promise<Address> {
  const socket = createSocket('udp4');
  socket.on('message', (request, from) => {
    for (const answer of script(request)) socket.send(answer, from.port, from.address);
  });
  socket.bind(0, HOST);
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { host: HOST, port: socket.address().port };
}

function pcp(router: Address): PcpGrantor {
  return new PcpGrantor(router, HOST, clock, (length) => new Uint8Array(length).fill(7));
}

/** The response of a PCP router: the request with the response bits set. */
function granted(request: Buffer, port: number): Buffer {
  const answer = Buffer.from(request);
  answer[1] = 0x81;
  answer.fill(0, 8, 24);
  answer.writeUInt16BE(port, 42);
  answer.set([203, 0, 114, 7], 56);
  return answer;
}

test('PCP: only a response with the nonce of the request counts', async (t) => {
  const requests: Buffer[] = [];
  const router = await udpRouter(t, (request) => {
    requests.push(request);
    const foreign = granted(request, 666);
    foreign[24] = 8;
    const otherPort = granted(request, 667);
    otherPort.writeUInt16BE(1, 40);
    return [Buffer.from('x'), foreign, otherPort, granted(request, 5000)];
  });
  const grantor = pcp(router);
  const grant = await grantor.grant(4121, 4121, 600, signal);
  assert.deepEqual(grant, { external: { host: '203.0.114.7', port: 5000 }, lifetimeS: 600 });
  await grantor.release(4121, 5000, signal);
  assert.deepEqual(
    requests.map((request) => [request.readUInt32BE(4), request[24]]),
    [
      [600, 7],
      [0, 7],
    ],
  );
});

test('PCP: an unsupported version or a refusal ends the request immediately', async (t) => {
  const old = await udpRouter(t, () => [Uint8Array.of(0, 0x81, 0, 1, 0, 0, 0, 9)]);
  await assert.rejects(pcp(old).grant(4121, 4121, 600, signal), { code: 'connect_failed', message: /another version/ });
  const strict = await udpRouter(t, (request) => {
    const answer = granted(request, 5000);
    answer[3] = 2;
    return [answer];
  });
  await assert.rejects(pcp(strict).grant(4121, 4121, 600, signal), { code: 'connect_failed', message: /code 2/ });
});

test('NAT-PMP: a lost request is retransmitted', async (t) => {
  let asked = 0;
  const router = await udpRouter(t, (request) => {
    if (++asked === 1) return [];
    if (request[1] === 0) return [Buffer.from('0080000000000001cb007207', 'hex')];
    const answer = Buffer.from('00810000000000010000000000000258', 'hex');
    request.copy(answer, 8, 4, 6);
    answer.writeUInt16BE(5000, 10);
    return [answer];
  });
  const grant = await new NatPmpGrantor(router, { clock }).grant(4121, 4121, 600, signal);
  assert.deepEqual(grant, { external: { host: '203.0.114.7', port: 5000 }, lifetimeS: 600 });
  assert.equal(asked, 3);
});

test('a closed port ends the request immediately, and so does a stop', async (t) => {
  const closed = createSocket('udp4').bind(0, HOST);
  await once(closed, 'listening');
  const { port } = closed.address();
  closed.close();
  await once(closed, 'close');
  await assert.rejects(pcp({ host: HOST, port }).grant(4121, 4121, 600, signal), { code: 'connect_failed' });
  const silent = await udpRouter(t, () => []);
  const stop = new AbortController();
  const asked = pcp(silent).grant(4121, 4121, 600, stop.signal);
  stop.abort();
  await assert.rejects(asked, { code: 'cancelled' });
});

interface HttpRouter {
  readonly ssdp: Address;
  readonly actions: string[];
}

type Script = (action: string, body: string, response: ServerResponse) => void;

const WAN = 'urn:schemas-upnp-org:service:WANIPConnection';

function soap(members: string): string {
  return `<s:Envelope><s:Body><u:R>${members}</u:R></s:Body></s:Envelope>`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

/** A UPnP router. @param describe writes the response to a request for its description */
async function upnpRouter(
  t: TestContext,
  version: number,
  script: Script,
  describe?: (response: ServerResponse) => void,
): Promise<HttpRouter> {
  const actions: string[] = [];
  const description = `<root><service><serviceType>${WAN}:${version}</serviceType><controlURL>/ctl</controlURL></service></root>`;
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      if (request.method === 'GET') {
        if (describe === undefined) response.end(description);
        else describe(response);
        return;
      }
      const action = String(request.headers['soapaction']).replaceAll('"', '').split('#')[1] ?? '';
      actions.push(action);
      script(action, body, response);
    });
  });
  server.listen(0, HOST);
  await once(server, 'listening');
  t.after(() => server.close());
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  const ssdp = await udpRouter(t, () => [
    Buffer.from(
      `HTTP/1.1 200 OK\r\nST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nLOCATION: http://${HOST}:${port}/d.xml\r\n\r\n`,
    ),
  ]);
  return { ssdp, actions };
}

function find(ssdp: Address, mayBeRouter = (host: string): boolean => host === HOST): Promise<UpnpGrantor | null> {
  return UpnpGrantor.find({ ownHost: HOST, ssdp, mayBeRouter }, clock, () => 0.5, signal);
}

const ADDRESS = soap('<NewExternalIPAddress>203.0.114.7</NewExternalIPAddress>');

function fault(response: ServerResponse, code: number): void {
  response.writeHead(500).end(soap(`<errorCode>${code}</errorCode>`));
}

test('UPnP: version 2 assigns a port, and releases it', async (t) => {
  const { ssdp, actions } = await upnpRouter(t, 2, (action, _body, response) =>
    response.end(action === 'GetExternalIPAddress' ? ADDRESS : soap('<NewReservedPort>5000</NewReservedPort>')),
  );
  const grantor = await find(ssdp);
  const grant = await grantor?.grant(4121, 4121, 600, signal);
  assert.deepEqual(grant, { external: { host: '203.0.114.7', port: 5000 }, lifetimeS: 600 });
  await grantor?.release(4121, 5000, signal);
  assert.deepEqual(actions, ['GetExternalIPAddress', 'AddAnyPortMapping', 'DeletePortMapping']);
});

test('UPnP: with version 1, a conflict is retried with another port, and an unsupported lease with a permanent one', async (t) => {
  const bodies: string[] = [];
  const { ssdp } = await upnpRouter(t, 1, (action, body, response) => {
    if (action === 'GetExternalIPAddress') return void response.end(ADDRESS);
    bodies.push(body);
    if (bodies.length < 3) return fault(response, bodies.length === 1 ? 725 : 718);
    response.end(soap(''));
  });
  const grant = await (await find(ssdp))?.grant(4121, 4121, 600, signal);
  assert.deepEqual(grant, { external: { host: '203.0.114.7', port: 33_280 }, lifetimeS: 600 });
  const leases = bodies.map((body) => /<NewLeaseDuration>(\d+)</.exec(body)?.[1]);
  assert.deepEqual(leases, ['600', '0', '0']);
});

test('UPnP: a router that always refuses receives a few requests', async (t) => {
  const { ssdp, actions } = await upnpRouter(t, 1, (action, _body, response) =>
    action === 'GetExternalIPAddress' ? void response.end(ADDRESS) : fault(response, 718),
  );
  const grantor = await find(ssdp);
  assert.ok(grantor);
  await assert.rejects(grantor.grant(4121, 4121, 600, signal), { code: 'connect_failed', message: /error 718/ });
  assert.equal(actions.length, 5);
});

test('UPnP: redirects are not followed, endless responses are aborted, and other hosts are not contacted', async (t) => {
  const never: Script = (_action, _body, response) => response.end();
  const elsewhere = await upnpRouter(t, 1, never, (response) => response.writeHead(302, { Location: '/x' }).end());
  assert.equal(await find(elsewhere.ssdp), null);
  let written = 0;
  const endless = await upnpRouter(t, 1, never, (response) => {
    const more = (): void => {
      do written += CHUNK.length;
      while (!response.destroyed && response.write(CHUNK));
    };
    response.on('drain', more);
    more();
  });
  assert.equal(await find(endless.ssdp), null);
  assert.ok(written < MOST_IN_BUFFERS, `${written} bytes were written`);
  const control = `<service><serviceType>${WAN}:1</serviceType><controlURL>http://127.0.0.2/</controlURL></service>`;
  const pointing = await upnpRouter(t, 1, never, (response) => response.end(control));
  assert.equal(await find(pointing.ssdp), null);
  const foreign = await upnpRouter(t, 1, never);
  assert.equal(await find(foreign.ssdp, () => false), null);
});
