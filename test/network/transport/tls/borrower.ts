/** A client of UDP over TLS for tests, which can also break the rules. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { TestContext } from 'node:test';
import { TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import type { Address } from '../../../../src/foundation/address.ts';
import { KeyPair, verifySignature } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { WEB_SOCKET_OPTIONS } from '../../../../src/network/transport/tls/pacing.ts';
import { type TlsListener, TlsServer } from '../../../../src/network/transport/tls/server.ts';
import {
  type CarriedDatagram,
  type ClientHello,
  decodeBatch,
  decodeHelperHello,
  decodeNonce,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  encodeClientHello,
  encodeEntry,
  type HelperHello,
  NODE_HEADER,
  NONCE_HEADER,
  TLS_PATH,
  TLS_PURPOSE,
  type TlsPurpose,
} from '../../../../src/network/transport/tls/wire.ts';
import { ANSWER_BYTE, REQUEST_BYTE } from '../../../../src/network/transport/udp-socket.ts';
import { TestClock } from '../../../support/test-clock.ts';

export const TAG: Uint8Array = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);

/** A request of the record network. */
export function tagged(text = ''): Uint8Array {
  return new Uint8Array(Buffer.concat([TAG, Buffer.of(REQUEST_BYTE), Buffer.from(text)]));
}

/** An answer of the record network. */
export function answered(text = ''): Uint8Array {
  return new Uint8Array(Buffer.concat([TAG, Buffer.of(ANSWER_BYTE), Buffer.from(text)]));
}

interface HelperSettings {
  readonly sessions?: number;
  readonly isTls?: boolean;
  readonly helps?: () => boolean;
  readonly mayDial?: (address: Address) => boolean;
  /** An address in front of a NAT, and the local address behind it. */
  readonly outer?: readonly [Address, Address];
  readonly spend?: (bytes: number) => boolean;
  readonly descriptors?: number;
  readonly usesLoopback?: boolean;
  readonly certificate?: { readonly cert: string; readonly key: string };
  readonly clock?: TestClock;
  /** Default: any port. */
  readonly port?: number;
}

/** A helper on loopback. It is stopped after the test, and must leave no timer. */
export async function lendingHelper(t: TestContext, settings: HelperSettings = {}) {
  const { isTls = true, clock = new TestClock(), spend = () => true } = settings;
  const [outer, local] = settings.outer ?? [];
  const key = KeyPair.generate();
  const listener: TlsListener = { host: '127.0.0.1', port: settings.port ?? 0, isTls, isNamed: true };
  const server = new TlsServer(
    {
      key,
      tag: TAG,
      sessions: settings.sessions ?? 100,
      certificate: settings.certificate ?? { cert: '', key: '' },
      hosts: { ipv4: '127.0.0.1', ipv6: '::1' },
    },
    {
      clock,
      log: silentLog,
      listeners: () => [listener],
      helps: settings.helps ?? (() => true),
      isKnown: () => false,
      openAccount: () => ({ spend, close: () => {} }),
      mayDial: settings.mayDial ?? (() => true),
      places: {
        localHost: (host) => (host === outer?.host ? (local?.host ?? null) : null),
        localPort: ({ port }) => (port === outer?.port ? (local?.port ?? null) : null),
        seenHost: outer?.host ?? '127.0.0.1',
      },
      usesLoopback: () => settings.usesLoopback ?? true,
      descriptors: () => settings.descriptors ?? 65_536,
    },
  );
  await server.start();
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await server.stop();
    assert.equal(clock.timers, 0, 'timers after the stop');
    assert.deepEqual([server.usage.clients, server.usage.ports], [0, 0]);
  };
  t.after(stop);
  const port = server.addresses[0]?.port ?? 0;
  return { server, clock, key, port, stop, url: `${isTls ? 'wss' : 'ws'}://127.0.0.1:${port}${TLS_PATH}` };
}

interface BorrowOptions {
  readonly key?: KeyPair;
  readonly tag?: Uint8Array;
  readonly purpose?: TlsPurpose;
  /** The key of the helper that it wants. Default: the stated one. */
  readonly helperKey?: Uint8Array;
  readonly token?: Uint8Array | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address from which it connects. Default: the system's choice. */
  readonly localAddress?: string;
  /** Changes the encoded hello. */
  readonly change?: (hello: Uint8Array) => Uint8Array;
}

/** Connects and waits for the helper's hello. */
export async function borrow(t: Pick<TestContext, 'after'>, url: string, options: BorrowOptions = {}) {
  const key = options.key ?? KeyPair.generate();
  const socket = new WebSocket(url, {
    rejectUnauthorized: false,
    headers: { ...options.headers },
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
    ...WEB_SOCKET_OPTIONS,
  });
  t.after(() => socket.terminate());
  const upgraded = once(socket, 'upgrade') as Promise<[IncomingMessage]>;
  const opened = once(socket, 'open');
  // Fails together with `upgraded`.
  opened.catch(() => {});
  const [response] = await upgraded;
  const helperNonce = decodeNonce(response.headers[NONCE_HEADER.toLowerCase()]?.toString());
  const stated = decodeNonce(response.headers[NODE_HEADER.toLowerCase()]?.toString());
  assert.ok(helperNonce !== null && stated !== null);
  const tls = response.socket;
  const exporter =
    tls instanceof TLSSocket
      ? new Uint8Array(tls.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)))
      : new Uint8Array(EXPORTER_BYTES);
  await opened;
  const nonce = new Uint8Array(randomBytes(32));
  const hello: ClientHello = {
    tag: options.tag ?? TAG,
    nodeKey: key.publicKey,
    nonce,
    exporter,
    purpose: options.purpose ?? TLS_PURPOSE.ports,
    helperKey: options.helperKey ?? stated,
    token: options.token ?? null,
  };
  const encoded = encodeClientHello(hello, helperNonce, key);
  const received: CarriedDatagram[] = [];
  const answer = once(socket, 'message') as Promise<[Buffer]>;
  const closed = once(socket, 'close');
  socket.send(options.change?.(encoded) ?? encoded);
  const [message] = await Promise.race([answer, closed.then((): [Buffer] => [Buffer.alloc(0)])]);
  socket.on('message', (batch: Buffer) => void received.push(...(decodeBatch(batch) ?? [])));
  const decoded = decodeHelperHello(message, nonce);
  const isGenuine = decoded !== null && verifySignature(decoded.hello.nodeKey, decoded.message, decoded.signature);
  const reply: HelperHello | null = decoded?.hello ?? null;
  return {
    key,
    socket,
    exporter,
    reply,
    isGenuine,
    received,
    closed,
    send: (number: number, remote: Address | null, datagram: Uint8Array = new Uint8Array()) =>
      socket.send(encodeEntry({ number, remote, datagram })),
  };
}

interface Arrival {
  readonly datagram: Buffer;
  readonly from: Address;
}

/** A UDP socket on loopback that records what arrives. */
export async function udpNode(t: TestContext, host = '127.0.0.1') {
  const socket: UdpSocket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const arrivals: Arrival[] = [];
  socket.on(
    'message',
    (datagram, { address, port }) => void arrivals.push({ datagram, from: { host: address, port } }),
  );
  socket.bind(0, host);
  await once(socket, 'listening');
  t.after(() => socket.close());
  const address: Address = { host, port: socket.address().port };
  const send = async (datagram: Uint8Array, to: Address): Promise<void> => {
    await new Promise((resolve) => {
      socket.send(datagram, to.port, to.host, resolve);
    });
  };
  return { address, arrivals, send };
}
