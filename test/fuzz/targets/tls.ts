/** UDP over TLS: hellos, batches, pings, the head of the request, and the datagrams of a hostile client. */
import { connect } from 'node:net';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { IP_SCOPE } from '../../../src/foundation/ip.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { Destinations, MAX_UNANSWERED_PACKETS } from '../../../src/network/transport/tls/destinations.ts';
import { TlsServer } from '../../../src/network/transport/tls/server.ts';
import {
  closingEntry,
  decodeBatch,
  decodeClientHello,
  decodeHelperHello,
  decodeNonce,
  decodePing,
  encodeClientHello,
  encodeEntry,
  encodeHelperHello,
  encodeNonce,
  encodePing,
  MAX_CARRIED_BYTES,
  type SignedHello,
  TLS_PATH,
  TLS_PURPOSE,
  TLS_STATUS,
} from '../../../src/network/transport/tls/wire.ts';
import { ANSWER_BYTE, REQUEST_BYTE } from '../../../src/network/transport/udp-socket.ts';
import { TestClock } from '../../support/test-clock.ts';
import { HTTP_WORDS } from '../engine/http.ts';
import { decoder, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const KEY = KeyPair.fromSeed(new Uint8Array(32).fill(1));
const NONCE = new Uint8Array(32).fill(2);
const TAG = new Uint8Array(8).fill(3);
const EXPORTER = new Uint8Array(32).fill(4);
const TOKEN = new Uint8Array(16).fill(5);
/** Bytes before the fields in a signed message: context and nonce. */
const PREFIX_BYTES = 'svcd/tls/client/1'.length + NONCE.length;

function wireOf({ message, signature }: SignedHello<unknown>): Uint8Array {
  return new Uint8Array(Buffer.concat([message.subarray(PREFIX_BYTES), signature]));
}

const clientHello = decoder({
  name: 'tls-client-hello',
  inputs: 3000,
  maxBytes: 512,
  edit: () => null,
  seeds: () =>
    [
      { purpose: TLS_PURPOSE.ports, helperKey: new Uint8Array(32), token: null },
      { purpose: TLS_PURPOSE.ports, helperKey: KEY.publicKey, token: TOKEN },
      { purpose: TLS_PURPOSE.lane, helperKey: KEY.publicKey, token: TOKEN },
    ].map((wish) =>
      encodeClientHello({ ...wish, tag: TAG, nodeKey: KEY.publicKey, nonce: NONCE, exporter: EXPORTER }, NONCE, KEY),
    ),
  decode: (bytes) => decodeClientHello(bytes, NONCE),
  encode: wireOf,
  canonical: true,
});

const helperHello = decoder({
  name: 'tls-helper-hello',
  inputs: 3000,
  maxBytes: 512,
  edit: () => null,
  seeds: () =>
    ['203.0.113.7', '2001:db8::7', null].map((host) => {
      const hello = { status: TLS_STATUS.ok, nodeKey: KEY.publicKey, exporter: EXPORTER, resume: TOKEN };
      return encodeHelperHello({ ...hello, isResumed: host === null, ports: 32, host }, NONCE, KEY);
    }),
  decode: (bytes) => decodeHelperHello(bytes, NONCE),
  encode: wireOf,
  canonical: true,
});

const ENTRIES = [
  { number: 1, remote: { host: '203.0.113.7', port: 4121 }, datagram: TAG },
  { number: 127, remote: { host: '2001:db8::7', port: 65_535 }, datagram: new Uint8Array() },
  closingEntry(2),
].map(encodeEntry);

const batch = decoder({
  name: 'tls-batch',
  inputs: 4000,
  edit: () => null,
  seeds: () => [...ENTRIES, Buffer.concat(ENTRIES)].map((bytes) => new Uint8Array(bytes)),
  decode: decodeBatch,
  encode: (entries) => new Uint8Array(Buffer.concat(entries.map(encodeEntry))),
  canonical: true,
  check: (entries, bytes) => {
    if (entries.some(({ datagram }) => datagram.length > MAX_CARRIED_BYTES)) throw violation('too long', bytes);
  },
});

const ping = decoder({
  name: 'tls-ping',
  inputs: 1000,
  maxBytes: 16,
  edit: () => null,
  seeds: () => [0, 65_537, Number.MAX_SAFE_INTEGER].map((count) => new Uint8Array(encodePing(count))),
  decode: decodePing,
  encode: (count) => new Uint8Array(encodePing(count)),
  canonical: true,
});

const nonce = decoder({
  name: 'tls-nonce',
  inputs: 1000,
  maxBytes: 64,
  seeds: () => [NONCE, EXPORTER].map((bytes) => textBytes(encodeNonce(bytes))),
  decode: (bytes) => decodeNonce(Buffer.from(bytes).toString('latin1')),
  encode: (value) => textBytes(encodeNonce(value)),
  canonical: true,
});

const UPGRADE = [
  `GET ${TLS_PATH} HTTP/1.1`,
  'Host: a',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  'X-Forwarded-For: 192.0.2.1, 203.0.113.7',
  '',
  '',
].join('\r\n');

/** A WebSocket frame of a client, masked with zeros. */
function frame(opcode: number, payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0), payload]);
}

/** Sends the input over a new connection, and waits for its end. */
function exchange(port: number, input: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    for (const piece of splitInput(input)) socket.write(piece);
    socket.end();
  });
}

/** A helper behind a web server. A stranger without a signature never becomes a client. */
const head: FuzzTarget = {
  name: 'tls-head',
  inputs: 250,
  maxBytes: 2048,
  edit: () => null,
  words: [...HTTP_WORDS, TLS_PATH, 'Upgrade: websocket\r\n', 'X-Forwarded-For: ::ffff:192.0.2.1\r\n'],
  prepare: async () => {
    const clock = new TestClock();
    const server = new TlsServer(
      {
        key: KEY,
        tag: TAG,
        sessions: 4,
        certificate: { cert: '', key: '' },
        hosts: { ipv4: '127.0.0.1', ipv6: '::1' },
      },
      {
        clock,
        log: silentLog,
        listeners: () => [{ host: '127.0.0.1', port: 0, isTls: false, isNamed: true }],
        helps: () => true,
        isKnown: () => false,
        openAccount: () => ({ spend: () => true, close: () => {} }),
        mayDial: () => false,
        places: { localHost: () => null, localPort: () => null, seenHost: null },
        usesLoopback: () => true,
        descriptors: () => 1024,
      },
    );
    await server.start();
    const [address] = server.addresses;
    return {
      seeds: [
        textBytes(UPGRADE),
        textBytes('GET / HTTP/1.1\r\nHost: a\r\n\r\n'),
        ...[2, 9, 8].map(
          (opcode) => new Uint8Array(Buffer.concat([Buffer.from(UPGRADE), frame(opcode, new Uint8Array(100).fill(1))])),
        ),
      ],
      run: async (input) => {
        clock.advance(50);
        const answer = await exchange(address?.port ?? 0, input);
        if (server.usage.clients > 0) throw violation('a stranger has become a client', input);
        const [status = ''] = answer.split('\r\n', 1);
        if (!/^(HTTP\/1\.1 (101|400|404|405|426|429|431) .*)?$/.test(status)) throw violation(status, input);
        return status;
      },
      close: () => server.stop(),
    };
  },
};

const REQUEST: Uint8Array = Buffer.concat([TAG, Buffer.of(REQUEST_BYTE)]);
const ANSWER: Uint8Array = Buffer.concat([TAG, Buffer.of(ANSWER_BYTE)]);

/** The datagram that a byte of the input selects. */
function datagramOf(kind: number): Uint8Array {
  const long = Buffer.alloc(1200, 7);
  long.writeUInt32BE(1, 1);
  long[0] = 0xc3;
  const kinds = [REQUEST, long, long.subarray(0, 60), new Uint8Array(60).fill(0x47), Uint8Array.of(0), TOKEN, ANSWER];
  return kinds[kind % kinds.length] ?? new Uint8Array(30);
}

/** Any order of sent and received datagrams, with pauses. Silent destinations get at most three packets. */
const destinations: FuzzTarget = {
  name: 'tls-destinations',
  inputs: 1500,
  maxBytes: 256,
  edit: () => null,
  prepare: () => ({
    seeds: [
      Uint8Array.of(0, 0, 0, 0, 1, 1, 1),
      Uint8Array.of(1, 0x42, 3, 3, 0x80, 0xff, 1),
      new Uint8Array(40).fill(9),
    ],
    run: (input) => {
      const clock = new TestClock();
      let left = 8;
      const guard = new Destinations({
        clock,
        tag: TAG,
        scope: IP_SCOPE.public,
        mayDial: ({ port }) => port !== 1026,
        isOwn: () => false,
        takeNew: () => left-- > 0,
      });
      const passed = new Map<number, number>();
      let heard = new Set<number>();
      for (const byte of input) {
        const port = 1024 + ((byte >> 4) & 3);
        const remote = { host: '198.51.100.7', port };
        const datagram = datagramOf(byte & 15);
        if (byte >= 0xf0) {
          clock.advance(31_000);
          passed.clear();
          heard = new Set();
        } else if ((byte & 0x40) !== 0) {
          if (!guard.mayReceive(remote, datagram)) continue;
          if (datagram === REQUEST) throw violation('a client gets a request', input);
          heard.add(port);
        } else if (guard.maySend(1 + (byte & 15), remote, datagram)) {
          if (datagram === ANSWER) throw violation('a client answers', input);
          const count = (passed.get(port) ?? 0) + 1;
          passed.set(port, count);
          if (port === 1026) throw violation('a forbidden destination gets datagrams', input);
          if (!heard.has(port) && count > MAX_UNANSWERED_PACKETS)
            throw violation('a silent destination gets more', input);
        }
      }
      return `${[...passed.values()].join()} ${heard.size}`;
    },
  }),
};

export const tlsTargets: readonly FuzzTarget[] = [clientHello, helperHello, batch, ping, nonce, head, destinations];
