/** The API: its access checks, and requests of remote administrators. */
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { isLoopbackHost } from '../../../src/foundation/address.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { localPair } from '../../../src/network/links/stream.ts';
import { type AdmittedRequest, RequestGate } from '../../../src/surfaces/rest/gate.ts';
import { hostOf } from '../../../src/surfaces/rest/host.ts';
import { TestClock } from '../../support/test-clock.ts';
import { startWorld } from '../../surfaces/rest/support.ts';
import { testAgent } from '../engine/agents.ts';
import { HTTP_WORDS, untilQuiet } from '../engine/http.ts';
import { bytesOf, refusal, violation } from '../engine/properties.ts';
import { collectResponse, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const TOKEN = 'secret-token';
const ADDRESSES = ['127.0.0.1', '::1', '::ffff:127.0.0.1', '192.0.2.7', '2001:db8::7'];
const WORDS = [
  ...HTTP_WORDS,
  ...[
    `Authorization: Bearer ${TOKEN}\r\n`,
    'Authorization: bearer x\r\n',
    'Origin: http://127.0.0.1:2121\r\n',
    'Origin: null\r\n',
  ],
  ...[
    'Sec-Fetch-Site: same-origin\r\n',
    'Sec-Fetch-Site: cross-site\r\n',
    'Sec-Fetch-Mode: navigate\r\n',
    'Sec-Fetch-User: ?1\r\n',
  ],
  ...[
    'Sec-Fetch-Dest: document\r\n',
    'localhost',
    '127.0.0.1:2121',
    '[::1]:2121',
    '192.0.2.1',
    'evil.example',
    '/aid/x/',
  ],
  ...['/secret', '/ping?n=1', '/things/', '{"text":"x"}', '{', '}', '"__proto__":', '%2e%2e', '/openapi.json', '/docs'],
];

/** Streams as the listener passes them, with the address of the socket. */
function connection(address: string): readonly [Duplex, Duplex] {
  const [near, far] = localPair();
  near.on('error', () => {});
  far.on('error', () => {});
  return [near, Object.assign(far, { remoteAddress: address })];
}

/** The first byte selects the origin of the request, and whether a token is set. */
const gate: FuzzTarget = {
  name: 'api-gate',
  inputs: 800,
  maxBytes: 2048,
  edit: () => null,
  words: WORDS,
  prepare: () => {
    const clock = new TestClock();
    let token = '';
    let outcomes: string[] = [];
    const guard = new RequestGate({ host: '127.0.0.1', requireLocalToken: false }, { token: () => token, clock });
    const server = createServer((request, response) => {
      const { headers } = request;
      let admitted: AdmittedRequest | null = null;
      try {
        admitted = guard.admit(request);
        outcomes.push(`${admitted.origin} ${admitted.authorized}`);
      } catch (error) {
        outcomes.push(refusal(error, ['forbidden_host', 'forbidden_origin', 'unauthorized', 'rate_limited']));
      }
      response.destroy();
      if (admitted === null) return;
      const host = headers.host === undefined ? 'localhost' : hostOf(headers.host);
      const isLocal = host === '' || (host !== null && isLoopbackHost(host));
      if (admitted.origin === 'local' && !isLocal && headers.host !== '')
        outcomes.push('BROKEN: another host is local');
      const knows = /^Bearer +secret-token *$/i.test(headers.authorization ?? '');
      if (token !== '' && admitted.authorized && admitted.origin !== 'local' && !knows)
        outcomes.push('BROKEN: a caller without the token is authorized');
      if (headers.origin !== undefined && !/^https?:\/\//i.test(headers.origin))
        outcomes.push('BROKEN: an invalid origin');
    });
    server.on('clientError', (_error, socket) => socket.destroy());
    return {
      seeds: bytesOf(
        'GET /ping HTTP/1.1\r\nHost: 127.0.0.1:2121\r\n\r\n',
        `GET /ping HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\nOrigin: http://localhost\r\n\r\n`,
        'GET /aid/x/ HTTP/1.1\r\nHost: [::1]\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nSec-Fetch-User: ?1\r\n\r\n',
        'POST /x HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\nContent-Length: 2\r\n\r\n{}',
      ).flatMap((request) => ADDRESSES.flatMap((_, i) => [i, i + 8].map((first) => Uint8Array.of(first, ...request)))),
      run: async (input) => {
        clock.advance(60_000);
        outcomes = [];
        const first = input[0] ?? 0;
        token = (first & 8) === 0 ? '' : TOKEN;
        const [near, far] = connection(ADDRESSES[(first & 7) % ADDRESSES.length] ?? '');
        server.emit('connection', far);
        writeInput(input.subarray(1), near);
        await untilQuiet(near, () => outcomes.length);
        near.destroy();
        const wrong = outcomes.find((text) => text.startsWith('BROKEN'));
        if (wrong !== undefined) throw violation(wrong, input);
        return outcomes.join();
      },
      close: () => void server.close(),
    };
  },
};

/** A whole server with a small table of operations, as a remote administrator uses it. */
const admin: FuzzTarget = {
  name: 'api-remote-admin',
  inputs: 250,
  maxBytes: 4096,
  edit: () => null,
  words: WORDS,
  prepare: async () => {
    const tasks: (() => Promise<void>)[] = [];
    const world = await startWorld({ after: (task) => void tasks.push(task) }, { clock: systemClock });
    const { aid } = testAgent(1);
    const body = '{"text":"x","meta":{"a":[1]},"to":[]}';
    return {
      seeds: bytesOf(
        'GET /ping?n=4 HTTP/1.1\r\nHost: x\r\n\r\nGET /secret HTTP/1.1\r\nHost: x\r\n\r\n',
        `POST /things/${aid}/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        `DELETE /things/${aid} HTTP/1.1\r\nHost: x\r\n\r\n`,
        'GET /broken/known HTTP/1.1\r\nHost: x\r\n\r\n',
      ),
      run: async (input) => {
        const [near, far] = connection('192.0.2.7');
        const answer = collectResponse(near);
        const statuses: (number | null)[] = [];
        world.server.serveRemoteAdmin(far, () => ({
          tool: () => {},
          answered: (status) => void statuses.push(status),
        }));
        writeInput(input, near);
        await untilQuiet(near, () => answer().length);
        near.destroy();
        const text = answer().toString('latin1');
        if (text.includes('"key":"value"')) throw violation('a local operation ran remotely', input);
        if (text.includes('hunter2')) throw violation('an internal error was shown', input);
        const odd = world.logged.splice(0).find(({ fields }) => !/hunter2/.test(String(Reflect.get(fields, 'err'))));
        if (odd !== undefined) throw violation(`the log has: ${odd.message}`, String(Reflect.get(odd.fields, 'err')));
        return statuses.join();
      },
      close: async () => {
        for (const task of tasks) await task();
      },
    };
  },
};

export const apiTargets: readonly FuzzTarget[] = [gate, admin];
