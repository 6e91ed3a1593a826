/** Connects to a helper for UDP over TLS: TCP or a proxy, TLS, and the WebSocket upgrade (docs/protocol-tls.md, steps 1 and 2). */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectTcp, isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { abortError } from '../../../foundation/deadline.ts';
import { codeOf } from '../../../foundation/errors.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import { guard } from '../../../foundation/stream-listeners.ts';
import { TlsFailure } from './failure.ts';
import type { Proxy } from './proxy.ts';
import {
  decodeNonce,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  MAX_TLS_MESSAGE_BYTES,
  NONCE_HEADER,
  OUTER_TLS,
  TLS_PATH,
} from './wire.ts';

export interface TlsRoute {
  readonly proxy: Proxy | null;
  /** The addresses to try without a proxy, in order. Default: the target. */
  readonly addresses?: readonly Address[];
  /** PEM certificates that must sign the helper's certificate; empty to accept any certificate. */
  readonly ca: string;
}

/** An upgraded connection, before the hellos. */
export interface OpenedTls {
  readonly ws: WebSocket;
  /** The helper's nonce. */
  readonly nonce: Uint8Array;
  /** The exporter of the TLS session. Zeros if TLS 1.2 has none. */
  readonly exporter: Uint8Array;
  /** The IP address of the helper; null if a proxy resolved its name. */
  readonly host: string | null;
  /** `host:port` of the proxy; null for a direct connection. */
  readonly proxy: string | null;
}

/** Steps, with the failure if the time ends during one. */
type Step = 'tcp' | 'proxy' | 'tls' | 'upgrade';

/**
 * Connects to a helper. Aborting the signal closes everything.
 * @throws TlsFailure, also if the signal aborts because of a timeout; or the signal's reason
 */
export async function openTls(
  target: Address,
  { proxy, addresses = [target], ca }: TlsRoute,
  signal: AbortSignal,
): Promise<OpenedTls> {
  const to = formatAddress(target);
  let step: Step = proxy === null ? 'tcp' : 'proxy';
  let socket: Duplex | null = null;
  try {
    const { tcp, isDirect } = await reach(target, { proxy, addresses }, signal);
    guard(tcp);
    socket = tcp;
    step = 'tls';
    const tls = await secure(tcp, target, ca, signal);
    socket = tls;
    step = 'upgrade';
    const { ws, nonce } = await upgrade(tls, to, signal);
    const host = canonicalIp(target.host) ?? (tcp instanceof Socket && isDirect ? tcp.remoteAddress : undefined);
    const names = {
      host: host === undefined ? null : canonicalIp(host),
      proxy: isDirect ? null : (proxy?.name ?? null),
    };
    return { ws, nonce, exporter: exporterOf(tls), ...names };
  } catch (error) {
    socket?.destroy();
    if (error instanceof TlsFailure || !signal.aborted) throw error;
    const reason = abortError(signal);
    throw reason.code === 'timeout' ? timeoutFailure(step, to, proxy) : reason;
  }
}

function timeoutFailure(step: Step, to: string, proxy: Proxy | null): TlsFailure {
  if (step === 'tcp') return new TlsFailure('tcp_silent', `${to} does not answer TCP. A firewall may drop it.`);
  if (step === 'proxy')
    return new TlsFailure(
      'proxy_unreachable',
      `The proxy ${proxy?.name} does not answer. Check HTTPS_PROXY or "proxy".`,
    );
  const what = step === 'tls' ? 'the TLS handshake' : 'the WebSocket upgrade';
  return new TlsFailure(
    step === 'tls' ? 'tls_failed' : 'upgrade_stripped',
    `${to} does not answer ${what}. A firewall may drop it.`,
  );
}

/**
 * A TCP connection to a helper. The environment names the proxy of one network, and this machine may be in another one:
 * if such a proxy cannot be reached, the connection is direct.
 */
async function reach(
  target: Address,
  { proxy, addresses }: Required<Pick<TlsRoute, 'proxy' | 'addresses'>>,
  signal: AbortSignal,
): Promise<{ readonly tcp: Duplex; readonly isDirect: boolean }> {
  if (proxy === null) return { tcp: await openFirst(addresses, signal), isDirect: true };
  try {
    return { tcp: await proxy.connect(target, signal), isDirect: false };
  } catch (error) {
    if (!proxy.isOfEnvironment || !isAbsence(error) || signal.aborted) throw error;
    try {
      return { tcp: await openFirst(addresses, signal), isDirect: true };
    } catch {
      // The user may expect the proxy to work.
      throw error;
    }
  }
}

/** True if no proxy was there. One with a bad certificate was. */
function isAbsence(error: unknown): boolean {
  return (
    error instanceof TlsFailure && error.failure === 'proxy_unreachable' && !CERTIFICATE_ERROR.test(codeOf(error.cause))
  );
}

/** A TCP connection to the first address that accepts one. */
async function openFirst(addresses: readonly Address[], signal: AbortSignal): Promise<Socket> {
  let failure: unknown;
  for (const address of addresses) {
    try {
      return await openTcp(address, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}

async function openTcp(target: Address, signal: AbortSignal): Promise<Socket> {
  const socket = connectTcp({ ...target, noDelay: true });
  guard(socket);
  try {
    await once(socket, 'connect', { signal });
    return socket;
  } catch (cause) {
    socket.destroy();
    if (signal.aborted) throw cause;
    const code = codeOf(cause);
    if (isIP(target.host) === 0 && /^(ENOTFOUND|EAI_)/.test(code))
      throw new TlsFailure('name_unresolved', `${target.host} does not resolve. Check the DNS of this machine.`, cause);
    throw new TlsFailure('tcp_refused', `${formatAddress(target)} cannot be reached over TCP (${code}).`, cause);
  }
}

/** Step 1. Without a CA of the user, any certificate is accepted: the hellos inside prove the node keys. */
async function secure(socket: Duplex, { host, port }: Address, ca: string, signal: AbortSignal): Promise<TLSSocket> {
  const tls = connectTls({
    socket,
    servername: isIP(host) === 0 ? host : '',
    ...OUTER_TLS,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: ca !== '',
    // An inspecting proxy may issue a certificate for any name.
    checkServerIdentity: () => undefined,
    ...(ca === '' ? {} : { ca }),
  });
  guard(tls);
  try {
    await once(tls, 'secureConnect', { signal });
    return tls;
  } catch (cause) {
    tls.destroy();
    if (signal.aborted) throw cause;
    const to = formatAddress({ host, port });
    const code = codeOf(cause);
    if (CERTIFICATE_ERROR.test(code))
      throw new TlsFailure(
        'certificate',
        `The TLS certificate at ${to} is not signed by the certificates of tls_ca (${code}). Correct tls_ca, or remove it.`,
        cause,
      );
    throw new TlsFailure(
      'tls_failed',
      `The TLS handshake with ${to} failed (${code}). A firewall may allow only known websites.`,
      cause,
    );
  }
}

const CERTIFICATE_ERROR = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME/;

function exporterOf(tls: TLSSocket): Uint8Array {
  try {
    return new Uint8Array(tls.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)));
  } catch {
    return new Uint8Array(EXPORTER_BYTES);
  }
}

/** Step 2. */
async function upgrade(tls: TLSSocket, to: string, signal: AbortSignal): Promise<Pick<OpenedTls, 'ws' | 'nonce'>> {
  const ws = new WebSocket(`ws://${to}${TLS_PATH}`, {
    createConnection: () => tls,
    perMessageDeflate: false,
    maxPayload: MAX_TLS_MESSAGE_BYTES,
    // The mask is all zeros. Browsers need a random one against proxies that read plain HTTP; it costs more than TLS.
    generateMask: () => {},
  });
  guard(ws);
  const outcome = Promise.withResolvers<Uint8Array>();
  ws.on('upgrade', (response: IncomingMessage) => {
    const nonce = decodeNonce(headerOf(response, NONCE_HEADER));
    if (nonce === null) outcome.reject(notHelper(to));
    else ws.once('open', () => outcome.resolve(nonce));
  });
  ws.on('unexpected-response', (_request, response: IncomingMessage) => outcome.reject(refusal(to, response)));
  ws.on('error', (cause: Error) =>
    outcome.reject(
      new TlsFailure(
        'upgrade_stripped',
        `${to} ends the connection at the WebSocket upgrade. A proxy may not allow it.`,
        cause,
      ),
    ),
  );
  const abort = (): void => outcome.reject(abortError(signal));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return { ws, nonce: await outcome.promise };
  } catch (error) {
    ws.terminate();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  return headers[name.toLowerCase()]?.toString();
}

function notHelper(to: string): TlsFailure {
  return new TlsFailure('not_a_helper', `${to} is a web server, but not a node that lends ports.`);
}

/** The failure for a response that is not a helper's. */
function refusal(to: string, response: IncomingMessage): TlsFailure {
  const { statusCode = 0 } = response;
  const isRedirect = statusCode >= 300 && statusCode < 400;
  if (isRedirect || statusCode === 511)
    return new TlsFailure('portal', 'This network wants a login first. Open any website in a browser, and log in.');
  const isProxied = headerOf(response, 'Via') !== undefined;
  if (isProxied || statusCode === 426)
    return new TlsFailure(
      'upgrade_stripped',
      `A proxy on the way to ${to} does not allow WebSocket (${statusCode}). Ask its operator to allow it.`,
    );
  return notHelper(to);
}
