/** One connection to a helper for UDP over TLS, from TCP to both hellos (docs/protocol-tls.md, steps 1 to 5). */

import { randomBytes } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { abortError, deadline } from '../../../foundation/deadline.ts';
import { type KeyPair, verifySignature } from '../../../foundation/identity/keys.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import { HelperFailure, type HelperFailureCode, type HelperSession, type HelperTarget } from '../borrowing.ts';
import type { BorrowedPort } from '../udp-socket.ts';
import { type OpenedTls, openTls, type TlsRoute } from './connect.ts';
import { type DatagramWebSocket, PacedSocket } from './pacing.ts';
import {
  type CarriedDatagram,
  closingEntry,
  decodeHelperHello,
  encodeClientHello,
  type HelperHello,
  MAX_LENT_NUMBER,
  NONCE_BYTES,
  TLS_PURPOSE,
  TLS_STATUS,
  type TlsPurpose,
  type TlsStatus,
} from './wire.ts';

/** Timeout from TCP to the helper's hello, milliseconds. */
export const TLS_OPEN_MS = 8_000;
/** The same from the connection to a proxy, milliseconds: some resolve the name slowly, or scan before they answer CONNECT. */
export const PROXIED_OPEN_MS = 30_000;

/** Time without an answer from a node after which the lent ports may be dead, milliseconds. */
export const PORTS_SILENT_MS = 2_000;
/** The number of the port for trials. */
const TRIAL_NUMBER = MAX_LENT_NUMBER;

/** This node, as helpers verify it. */
export interface TlsIdentity {
  readonly key: KeyPair;
  /** The tag of the record network. */
  readonly tag: Uint8Array;
}

interface TlsSessionOptions {
  readonly target: HelperTarget;
  readonly route: TlsRoute;
  readonly identity: TlsIdentity;
  /** The token of an earlier connection, or of a lane; null for new ports. */
  readonly token: Uint8Array | null;
  /** Keys of helpers that are in use. A hello to one of them would end that connection. */
  readonly inUse?: readonly Uint8Array[];
  readonly signal: AbortSignal;
}

const REFUSALS: Readonly<Record<Exclude<TlsStatus, 0>, readonly [HelperFailureCode, string]>> = {
  [TLS_STATUS.notHelping]: ['not_a_helper', 'does not help other nodes'],
  [TLS_STATUS.full]: ['helper_full', 'cannot lend another port now. svcd tries again'],
  [TLS_STATUS.rateLimited]: ['rate_limited', 'limits connections from here. svcd tries again'],
  [TLS_STATUS.otherNetwork]: ['other_network', 'belongs to another network. Compare the "network" of both nodes'],
  [TLS_STATUS.badSignature]: ['not_a_helper', 'rejects the signature of this node. Update svcd on both sides'],
  [TLS_STATUS.otherNode]: ['other_node', 'is a node with another key'],
  [TLS_STATUS.unknownVersion]: ['not_a_helper', 'has another protocol version. Update svcd on both sides'],
};

export class TlsSession implements HelperSession {
  readonly target: HelperTarget;
  readonly hello: HelperHello;
  readonly host: string | null;
  readonly proxy: string | null;
  readonly isInspected: boolean;
  /** Settles when the connection has ended for any reason. */
  readonly ended: Promise<void>;
  readonly #socket: PacedSocket;
  readonly #end = Promise.withResolvers<void>();
  /** Receives datagrams. Datagrams that arrive before it is set are dropped. */
  onEntries: (entries: readonly CarriedDatagram[]) => void = () => {};
  /** Called if no other node has answered for `PORTS_SILENT_MS`. The helper itself does not count. */
  onSilence: () => void = () => {};
  readonly #clock: Clock;
  /** When the first datagram after the last answer was sent; null if there was none. */
  #unansweredSince: number | null = null;
  #silence: Timer | null = null;
  #trial: Trial | null = null;
  #isEnded = false;

  /** @param opened after both hellos */
  constructor(
    { target }: Pick<TlsSessionOptions, 'target'>,
    opened: Pick<OpenedTls, 'host' | 'proxy' | 'exporter'> & { readonly ws: DatagramWebSocket },
    hello: HelperHello,
    clock: Clock,
  ) {
    this.target = target;
    this.hello = hello;
    this.host = hello.host ?? opened.host;
    this.proxy = opened.proxy;
    const isUnknown = [hello.exporter, opened.exporter].some((exporter) => exporter.every((byte) => byte === 0));
    this.isInspected = !isUnknown && !equalBytes(hello.exporter, opened.exporter);
    this.ended = this.#end.promise;
    this.#clock = clock;
    const events = {
      onEntries: (entries: readonly CarriedDatagram[]): void => this.#receive(entries),
      onEnd: (): void => this.#ended(),
    };
    this.#socket = new PacedSocket(opened.ws, events, { clock });
  }

  /** @throws HelperFailure, or the reason of `options.signal` */
  static async open(options: TlsSessionOptions, clock: Clock): Promise<TlsSession> {
    return await connect(
      options,
      TLS_PURPOSE.ports,
      clock,
      (opened, hello) => new TlsSession(options, opened, hello, clock),
    );
  }

  /** False if the datagram was dropped. */
  send(entry: CarriedDatagram): boolean {
    const isSent = this.#socket.send(entry);
    if (isSent && entry.remote !== null && entry.remote.host !== this.host) {
      this.#unansweredSince ??= this.#clock.monotonic();
      this.#silence ??= this.#clock.after(PORTS_SILENT_MS, () => this.#look());
    }
    return isSent;
  }

  /** Opens a port that shows what this connection carries, whether it is in use or not. It replaces an earlier one. */
  openTrial(): BorrowedPort {
    this.#trial?.close();
    const trial = new Trial(this);
    this.#trial = trial;
    return trial;
  }

  #receive(entries: readonly CarriedDatagram[]): void {
    if (entries.some(({ remote }) => remote !== null && remote.host !== this.host)) this.#unansweredSince = null;
    const trial = this.#trial;
    if (trial?.isOpen === true)
      for (const { number, remote, datagram } of entries)
        if (number === TRIAL_NUMBER && remote !== null) trial.deliver(datagram, remote);
    this.onEntries(entries);
  }

  #look(): void {
    this.#silence = null;
    if (this.#unansweredSince === null || this.#isEnded) return;
    const leftMs = this.#unansweredSince + PORTS_SILENT_MS - this.#clock.monotonic();
    if (leftMs > 0) {
      this.#silence = this.#clock.after(leftMs, () => this.#look());
      return;
    }
    this.#unansweredSince = null;
    this.onSilence();
  }

  close(): void {
    if (this.#isEnded) return;
    this.#socket.close();
    this.#ended();
  }

  #ended(): void {
    this.#isEnded = true;
    this.#silence?.cancel();
    this.#end.resolve();
  }
}

/** The port of a trial. */
class Trial implements BorrowedPort {
  readonly #session: TlsSession;
  #handler: (datagram: Uint8Array, from: Address) => void = () => {};
  #isOpen = true;

  constructor(session: TlsSession) {
    this.#session = session;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(datagram: Uint8Array, to: Address): boolean {
    const host = canonicalIp(to.host);
    if (!this.#isOpen || host === null) return false;
    return this.#session.send({ number: TRIAL_NUMBER, remote: { host, port: to.port }, datagram });
  }

  receive(handler: (datagram: Uint8Array, from: Address) => void): void {
    this.#handler = handler;
  }

  deliver(datagram: Uint8Array, from: Address): void {
    this.#handler(datagram, from);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#session.send(closingEntry(TRIAL_NUMBER));
  }
}

/**
 * Opens one end of a lane at a helper. It receives messages when the other end has arrived.
 * @param make called in the event of the helper's hello, because messages may follow it
 * @throws as `TlsSession.open`
 */
export async function openLaneEnd<T>(
  options: TlsSessionOptions,
  clock: Clock,
  make: (socket: WebSocket) => T,
): Promise<T> {
  return await connect(options, TLS_PURPOSE.lane, clock, ({ ws }) => make(ws));
}

async function connect<T>(
  options: TlsSessionOptions,
  purpose: TlsPurpose,
  clock: Clock,
  make: (opened: OpenedTls, hello: HelperHello) => T,
): Promise<T> {
  using limit = deadline(clock, TLS_OPEN_MS, options.signal);
  const opened = await openTls(options.target, options.route, limit.signal, () => limit.restart(PROXIED_OPEN_MS));
  try {
    return await greet(options, purpose, opened, limit.signal, (hello) => make(opened, hello));
  } catch (error) {
    opened.ws.terminate();
    throw error;
  }
}

/**
 * Sends the hello and checks the answer, steps 3 and 4.
 * @param make called in the event of the answer, because the helper may send datagrams right after it
 */
function greet<T>(
  { target, identity: { key, tag }, token, inUse = [] }: TlsSessionOptions,
  purpose: TlsPurpose,
  { ws, nonce: helperNonce, nodeKey: helperKey, exporter }: OpenedTls,
  signal: AbortSignal,
  make: (hello: HelperHello) => T,
): Promise<T> {
  const to = formatAddress(target);
  if (target.nodeKey !== undefined && !equalBytes(target.nodeKey, helperKey)) throw otherNode(to);
  if (inUse.some((used) => equalBytes(used, helperKey)))
    throw new HelperFailure('other_node', `The node at ${to} is the helper that is in use.`);
  const nonce = new Uint8Array(randomBytes(NONCE_BYTES));
  return new Promise((resolve, reject) => {
    const stop = (error: Error): void => {
      release();
      reject(error);
    };
    const onMessage = (data: RawData): void => {
      release();
      try {
        resolve(make(checkHello(data, nonce, to, helperKey)));
      } catch (error) {
        reject(error);
      }
    };
    const onClose = (): void => stop(new HelperFailure('not_a_helper', `${to} ends the connection at the hello.`));
    const onAbort = (): void => {
      const reason = abortError(signal);
      stop(reason.code === 'timeout' ? new HelperFailure('not_a_helper', `${to} does not answer the hello.`) : reason);
    };
    const release = (): void => {
      ws.off('message', onMessage).off('close', onClose);
      signal.removeEventListener('abort', onAbort);
    };
    ws.on('message', onMessage).on('close', onClose);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    const names = { tag, nodeKey: key.publicKey, helperKey };
    ws.send(encodeClientHello({ purpose, ...names, nonce, exporter, token }, helperNonce, key));
  });
}

function otherNode(to: string): HelperFailure {
  return new HelperFailure('other_node', `A node with another key answers at ${to}.`);
}

function checkHello(data: RawData, nonce: Uint8Array, to: string, helperKey: Uint8Array): HelperHello {
  const signed = Buffer.isBuffer(data) ? decodeHelperHello(data, nonce) : null;
  if (signed === null || !verifySignature(signed.hello.nodeKey, signed.message, signed.signature))
    throw new HelperFailure('not_a_helper', `${to} sends an invalid hello. Update svcd on both sides.`);
  const { status, nodeKey } = signed.hello;
  if (status !== TLS_STATUS.ok) {
    const [failure, text] = REFUSALS[status];
    throw new HelperFailure(failure, `${to} ${text}.`);
  }
  if (!equalBytes(helperKey, nodeKey)) throw otherNode(to);
  return signed.hello;
}
