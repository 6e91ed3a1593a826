/** HTTP over links: requests of strangers to a bound service, and responses of strangers to a call. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { CallServer } from '../../../src/capabilities/calls/call-server.ts';
import { EvidenceCheck } from '../../../src/capabilities/calls/evidence/evidence-check.ts';
import { pairs } from '../../../src/capabilities/calls/headers.ts';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { ErrorCode } from '../../../src/foundation/errors.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { Traces } from '../../../src/foundation/traces/traces.ts';
import type { LinkStream, Links, Purpose } from '../../../src/network/links/types.ts';
import { acceptedHeaders } from '../../../src/surfaces/rest/remote-headers.ts';
import { valuesOf } from '../../support/call-world.ts';
import { testAgent } from '../engine/agents.ts';
import { HTTP_WORDS, untilQuiet } from '../engine/http.ts';
import { bytesOf, refusal, violation } from '../engine/properties.ts';
import { collectResponse, IncomingOnly, linkPair, splitInput, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };

/** A local service that detects forged callers. */
class Service {
  readonly #server: Server;
  forged: readonly string[] | null = null;
  heard = 0;

  constructor() {
    this.#server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
      this.heard++;
      const callers = valuesOf(request.rawHeaders, 'svc-caller-aid');
      if (
        callers.length !== 1 ||
        callers[0] !== NAMES.caller ||
        /evil/.test(valuesOf(request.rawHeaders, 'forwarded').join())
      )
        this.forged = request.rawHeaders;
      request.resume().once('end', () => {
        if (/svc/i.test(request.rawTrailers.join())) this.forged = request.rawTrailers;
        response.end('ok');
      });
      request.once('error', () => {});
    });
  }

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const requests: FuzzTarget = {
  name: 'call-requests',
  inputs: 150,
  maxBytes: 4096,
  edit: () => null,
  words: HTTP_WORDS,
  prepare: async () => {
    const service = new Service();
    const port = await service.start();
    const links = new IncomingOnly();
    const failures: unknown[] = [];
    const keep = (fields: object): void => void failures.push(fields);
    const server = new CallServer({
      links,
      clock: systemClock,
      log: { ...silentLog, error: keep, child: () => ({ ...silentLog, error: keep }) },
      serviceOf: () => ({ scheme: 'http', host: '127.0.0.1', port, verifyCertificate: true, acceptsCalls: true }),
      authorize: () => {},
      enter: async () => ({ tools: null, isServer: false, begin: () => () => {} }),
      isNamed: () => false,
      callers: { entered: () => {}, refused: () => {} },
      watch: () => {},
      callerKey: () => new Uint8Array(32).fill(6),
      evidence: new EvidenceCheck(systemClock, new DelegationVerifier(), () => 0),
      traces: new Traces({ clock: systemClock, randomBytes, percent: 100 }),
    });
    await server.start();
    return {
      seeds: bytesOf(
        'GET /a?b HTTP/1.1\r\nHost: x\r\nX-One: 1\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n',
        'POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello',
        'PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: x\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ntracestate: a=b\r\n\r\n',
        'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      ),
      run: async (input) => {
        const near = links.dial('http', NAMES);
        const answer = collectResponse(near);
        const before = service.heard;
        writeInput(input, near);
        await untilQuiet(near, () => answer().length + service.heard);
        near.destroy();
        if (service.forged !== null) throw violation('a caller was forged', String(service.forged));
        if (failures.length > 0) throw violation('the log has an error', String(failures[0]));
        return `${service.heard - before} ${answer().toString('latin1').split('\r\n', 1)[0]}`;
      },
      close: async () => {
        await server.stop();
        service.stop();
      },
    };
  },
};

/** Links on which the called side sends the same bytes for every request. */
class HostileLinks implements Links {
  answer: Uint8Array = new Uint8Array();

  accept(): void {}

  reset(): void {}

  async open(local: typeof NAMES.caller, remote: typeof NAMES.called, purpose: Purpose): Promise<LinkStream> {
    const [far, link] = linkPair({ caller: local, called: remote }, purpose);
    far.once('data', () => {
      if (!far.destroyed) writeInput(this.answer, far);
    });
    far.resume();
    return link;
  }
}

/** Errors that a call may fail with. */
const CALL_ERRORS: readonly ErrorCode[] = [
  ...(['connect_failed', 'protocol_error', 'access_denied', 'rate_limited'] as const),
  ...(['no_inbound', 'inbound_unreachable', 'timeout', 'too_large'] as const),
];
const PLACE = { prefix: '/aid/aid1x', path: '/', host: '127.0.0.1:2121' };
const SECRET_HEADERS =
  /^(?:set-cookie|content-security-policy|access-control-.*|svc-.*|clear-site-data|service-worker-allowed)$/;

export const HTTP_ANSWERS: readonly Uint8Array[] = bytesOf(
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /next\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 403 Forbidden\r\nSvc-Error: access_denied\r\nContent-Length: 2\r\nRetry-After: 5\r\n\r\n{}',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbytes',
  'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n',
);

const answers: FuzzTarget = {
  name: 'call-answers',
  inputs: 250,
  maxBytes: 4096,
  edit: () => null,
  words: HTTP_WORDS,
  prepare: () => {
    const links = new HostileLinks();
    const caller = new HttpCaller(links, systemClock);
    return {
      seeds: HTTP_ANSWERS,
      run: async (input) => {
        links.answer = input;
        // Pooled links would continue after the last input, so each input has its own link.
        const accessToken = String(splitInput(input).length) + String(Math.random());
        const call = { method: 'GET', path: '/', headers: [], accessToken };
        try {
          const answer =
            (input.length & 1) === 0
              ? await caller.request(NAMES.caller, NAMES.called, { ...call, body: null })
              : await caller.upgrade(NAMES.caller, NAMES.called, { ...call, body: null }, ['websocket']);
          for (const [name] of pairs(acceptedHeaders(answer.headers, PLACE)))
            if (SECRET_HEADERS.test(name.toLowerCase())) throw violation('a forbidden header passed', name);
          if ('socket' in answer) {
            answer.socket.destroy();
            return `switched ${answer.status}`;
          }
          let bytes = 0;
          try {
            for await (const chunk of answer.body) bytes += Buffer.from(chunk).length;
          } catch {
            return `${answer.status} broken off`;
          }
          return `${answer.status} ${bytes}`;
        } catch (error) {
          return refusal(error, CALL_ERRORS);
        }
      },
      close: () => caller.stop(),
    };
  },
};

export const callTargets: readonly FuzzTarget[] = [requests, answers];
