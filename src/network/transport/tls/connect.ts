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
import { HelperFailure } from '../borrowing.ts';
import { observedResponse, tlsFailure } from './failure.ts';
import type { Proxy } from './proxy.ts';
import {
  decodeNonce,
  EXPORTER_BYTES,
  EXPORTER_LABEL,
  MAX_TLS_MESSAGE_BYTES,
  NODE_HEADER,
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
  /** The key that the helper states, and proves with its hello. */
  readonly nodeKey: Uint8Array;
  /** The exporter of the TLS session. Zeros if TLS 1.2 has none. */
  readonly exporter: Uint8Array;
  /** The IP address of the helper; null if a proxy resolved its name. */
  readonly host: string | null;
  /** `host:port` of the proxy; null for a direct connection. */
  readonly proxy: string | null;
}

/** Steps, with the failure if the time ends during one. */
type Step = 'tcp' | 'proxy' | 'connect' | 'tls' | 'upgrade';

/**
 * Connects to a helper. Aborting the signal closes everything.
 * @param onReached called when a proxy has accepted the connection, and connects
 * @throws HelperFailure, also if the signal aborts because of a timeout; or the signal's reason
 */
export async function openTls(
  target: Address,
  { proxy, addresses = [target], ca }: TlsRoute,
  signal: AbortSignal,
  onReached: () => void = () => {},
): Promise<OpenedTls> {
  const to = formatAddress(target);
  let step: Step = proxy === null ? 'tcp' : 'proxy';
  let socket: Duplex | null = null;
  try {
    const { tcp, isDirect } = await reach(target, { proxy, addresses }, signal, () => {
      step = 'connect';
      onReached();
    });
    guard(tcp);
    socket = tcp;
    step = 'tls';
    const tls = await secure(tcp, target, ca, signal);
    socket = tls;
    step = 'upgrade';
    const { ws, nonce, nodeKey } = await upgrade(tls, to, signal);
    const host = canonicalIp(target.host) ?? (tcp instanceof Socket && isDirect ? tcp.remoteAddress : undefined);
    const names = {
      host: host === undefined ? null : canonicalIp(host),
      proxy: isDirect ? null : (proxy?.name ?? null),
    };
    return { ws, nonce, nodeKey, exporter: exporterOf(tls), ...names };
  } catch (error) {
    socket?.destroy();
    if (error instanceof HelperFailure || !signal.aborted) throw error;
    const reason = abortError(signal);
    throw reason.code === 'timeout' ? timeoutFailure(step, to, proxy) : reason;
  }
}

function timeoutFailure(step: Step, to: string, proxy: Proxy | null): HelperFailure {
  const facts = { to, ...proxy?.facts };
  if (step === 'tcp') return tlsFailure('TCP is silent', facts);
  if (step === 'proxy') return tlsFailure('TCP to the proxy is silent', facts);
  if (step === 'connect') return tlsFailure('CONNECT is silent', facts);
  return tlsFailure(step === 'tls' ? 'TLS is silent' : 'the upgrade is silent', facts);
}

/**
 * A TCP connection to a helper. The environment names the proxy of one network, and this machine may be in another one:
 * if such a proxy cannot be reached, the connection is direct.
 */
async function reach(
  target: Address,
  { proxy, addresses }: Required<Pick<TlsRoute, 'proxy' | 'addresses'>>,
  signal: AbortSignal,
  onReached: () => void,
): Promise<{ readonly tcp: Duplex; readonly isDirect: boolean }> {
  if (proxy === null) return { tcp: await openFirst(addresses, signal), isDirect: true };
  try {
    return { tcp: await proxy.connect(target, signal, onReached), isDirect: false };
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
    error instanceof HelperFailure &&
    error.failure === 'proxy_unreachable' &&
    !CERTIFICATE_ERROR.test(codeOf(error.cause))
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
      throw tlsFailure('the name has no address', { to: formatAddress(target) }, cause);
    throw tlsFailure('TCP fails', { to: formatAddress(target), code }, cause);
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
    const isUnsigned = ca !== '' && CERTIFICATE_ERROR.test(code);
    throw tlsFailure(isUnsigned ? 'the certificate is not signed by tls_ca' : 'TLS fails', { to, code }, cause);
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
async function upgrade(
  tls: TLSSocket,
  to: string,
  signal: AbortSignal,
): Promise<Pick<OpenedTls, 'ws' | 'nonce' | 'nodeKey'>> {
  const ws = new WebSocket(`ws://${to}${TLS_PATH}`, {
    createConnection: () => tls,
    perMessageDeflate: false,
    maxPayload: MAX_TLS_MESSAGE_BYTES,
    // The mask is all zeros. Browsers need a random one against proxies that read plain HTTP; it costs more than TLS.
    generateMask: () => {},
  });
  guard(ws);
  const outcome = Promise.withResolvers<Pick<OpenedTls, 'nonce' | 'nodeKey'>>();
  ws.on('upgrade', (response: IncomingMessage) => {
    const [nonce, nodeKey] = [NONCE_HEADER, NODE_HEADER].map((name) => decodeNonce(headerOf(response, name)));
    if (!nonce || !nodeKey) outcome.reject(tlsFailure('a web server answers the upgrade', { to }));
    else ws.once('open', () => outcome.resolve({ nonce, nodeKey }));
  });
  ws.on('unexpected-response', (_request, response: IncomingMessage) => outcome.reject(refusal(to, response)));
  ws.on('error', (cause: Error) => outcome.reject(tlsFailure('the upgrade ends the connection', { to }, cause)));
  const abort = (): void => outcome.reject(abortError(signal));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return { ws, ...(await outcome.promise) };
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

/** The failure for a response that is not a helper's. */
function refusal(to: string, response: IncomingMessage): HelperFailure {
  const { statusCode: status = 0 } = response;
  return tlsFailure(
    observedResponse(status, (name) => headerOf(response, name)),
    { to, status },
  );
}
