/** A public address over real TLS: a TCP port in place of an entry, the server of the agent's node, and a web service. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { type RequestOptions, request as requestHttps } from 'node:https';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { pipeline } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { GuessLimits, householdPrefix } from '../../src/capabilities/access/guess-limits.ts';
import type { BoundService } from '../../src/capabilities/calls/upstream.ts';
import { type ExposureChoice, Exposures } from '../../src/capabilities/exposures/exposures.ts';
import type { Address } from '../../src/foundation/address.ts';
import { selfSigned } from '../../src/foundation/certificate.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { ExposureStore } from '../../src/foundation/store/exposures.ts';
import type { Store } from '../../src/foundation/store/store.ts';
import { localPair } from '../../src/network/links/stream.ts';
import { PublicServer } from '../../src/surfaces/public-address/public-server.ts';
import { storeWithAgents } from '../foundation/store/store-with-agents.ts';

export const HOST = 'demo.vps.test';
export const PUBLIC_PROOF_KEY: Uint8Array = new Uint8Array(32).fill(9);

export interface PublicAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export function exposuresOf(store: Store, clock: Clock = systemClock): Exposures {
  const guesses = new GuessLimits(clock);
  return new Exposures({
    store: new ExposureStore(store),
    clock,
    guesses,
    household: householdPrefix,
    isTrusted: () => true,
  });
}

/** @param choice who may call. Default: everyone */
export async function publicWorld(
  t: TestContext,
  serve: RequestListener,
  choice: Partial<ExposureChoice> = {},
  clock: Clock = systemClock,
) {
  const { store, aids } = storeWithAgents(1);
  const aid = aids[0] as Aid;
  const exposures = exposuresOf(store, clock);
  const exposure = exposures.open(aid, HOST, { mode: 'public', rules: [], ...choice });
  const service = createServer(serve);
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port: servicePort } = service.address() as AddressInfo;
  const bound: BoundService = {
    acceptsCalls: true,
    scheme: 'http',
    host: '127.0.0.1',
    port: servicePort,
    verifyCertificate: true,
  };
  const secureContext = createSecureContext(selfSigned(HOST));
  const challenge: { context: SecureContext | null } = { context: null };
  const raw: { address: Address | null } = { address: null };
  const client = { address: '192.0.2.7' };
  const server = new PublicServer({
    clock,
    log: silentLog,
    exposures,
    certificates: { context: (host) => (host === HOST ? secureContext : null), challenge: () => challenge.context },
    serviceOf: () => bound,
    rawServiceOf: () => raw.address,
    connect: (address) => connectTcp(address),
    callerKey: () => PUBLIC_PROOF_KEY,
    publicCard: async (card, _aid, to) => ({ card: { ...card, url: to }, skipped: [], isSigned: false }),
    watch: () => {},
  });
  await server.start();
  const entry = createTcpServer({ allowHalfOpen: true }, (socket) => {
    // As a link of the entry, which is no socket.
    const [near, far] = localPair();
    pipeline(socket, far, socket, () => {});
    server.accept({ name: HOST, aid, clientAddress: client.address, clientPort: 4000 }, near);
  });
  entry.listen(0, '127.0.0.1');
  await once(entry, 'listening');
  const { port } = entry.address() as AddressInfo;
  const sessions = new Set<ClientHttp2Session>();
  t.after(async () => {
    for (const session of sessions) session.destroy();
    await server.stop();
    service.closeAllConnections();
    for (const one of [entry, service]) one.close();
    store.close();
  });

  const options = (more: RequestOptions = {}): RequestOptions => ({
    host: '127.0.0.1',
    port,
    servername: HOST,
    rejectUnauthorized: false,
    agent: false,
    ...more,
    headers: { host: HOST, ...(more.headers as Record<string, string> | undefined) },
  });

  return {
    aid,
    bound,
    challenge,
    client,
    raw,
    exposure,
    exposures,
    options,
    port,
    server,
    servicePort,

    /** A request of HTTP/1.1. */
    async ask(path: string, more: RequestOptions = {}, body: string | Buffer = ''): Promise<PublicAnswer> {
      const request = requestHttps(options({ path, ...more }));
      request.end(body);
      const [response] = await once(request, 'response');
      return {
        status: response.statusCode,
        headers: response.headers,
        body: (await buffer(response)).toString(),
      };
    },

    /** A connection of HTTP/2. */
    http2(): ClientHttp2Session {
      const tls = { host: '127.0.0.1', port, servername: HOST, rejectUnauthorized: false, ALPNProtocols: ['h2'] };
      const session = connectHttp2(`https://${HOST}`, { createConnection: () => connectTls(tls) });
      session.on('error', () => {});
      sessions.add(session);
      return session;
    },
  };
}
