/** Finds the router of this network and defines how to request port mappings from it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortError } from '../../../foundation/deadline.ts';
import type { MappingProtocol } from '../../../foundation/domain/reach.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { IP_SCOPE, ipScope, ipv4Text } from '../../../foundation/ip.ts';
import { guard } from '../../../foundation/stream-listeners.ts';

/** The router, and the address of this machine in its network. */
export interface Gateway {
  /** IPv4 address of the router; null if the system does not report it. */
  readonly host: string | null;
  /** IPv4 address of this machine in the router's network. */
  readonly ownHost: string;
}

/** A UDP port that the router mapped to this machine. */
export interface GrantedPort {
  /** The external address as the router reports it. It may be a private address behind another NAT. */
  readonly external: Address;
  /** Seconds from now; at least 1. */
  readonly lifetimeS: number;
}

/** A router that maps ports, by one of the protocols. */
export interface PortGrantor {
  readonly protocol: MappingProtocol;
  /**
   * Requests or renews a mapping of a UDP port.
   * @param suggestedPort the preferred external port; the router may map another one
   * @throws SvcError `connect_failed` if the router does not answer or refuses, `cancelled`
   */
  grant(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<GrantedPort>;
  /**
   * Deletes a mapping.
   * @throws SvcError as `grant`
   */
  release(internalPort: number, externalPort: number, signal: AbortSignal): Promise<void>;
}

/* The router of the default route. */

const ROUTES_FILE = '/proc/net/route';
/** RTF_UP and RTF_GATEWAY (`linux/route.h`). */
const RTF_UP_GATEWAY = 0x3;
/** Maximum number of lines to read from the table. */
const MAX_ROUTES = 4096;
/**
 * An arbitrary address on the Internet. Nothing is sent there: connecting a UDP socket only selects the source address.
 */
const INTERNET_HOST = '203.0.113.1';
const ANY_PORT = 9;

/** Parses an IPv4 address from the kernel's hexadecimal text, which is in the byte order of the machine. */
function parseKernelIpv4(text: string): string | null {
  if (!/^[0-9A-F]{8}$/.test(text)) return null;
  const bytes = Buffer.from(text, 'hex');
  return ipv4Text(new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? bytes.readUInt32LE() : bytes.readUInt32BE());
}

/** The router of the default route with the lowest metric in the text of `/proc/net/route`; null if there is none. */
export function parseDefaultGateway(table: string): string | null {
  let best: { readonly host: string; readonly metric: number } | null = null;
  for (const line of table.split('\n', MAX_ROUTES).slice(1)) {
    const [, destination, gateway = '', flags = '', , , metricText = '', mask] = line.trim().split(/\s+/, 9);
    const isDefault = destination === '00000000' && mask === '00000000';
    if (!isDefault || (Number.parseInt(flags, 16) & RTF_UP_GATEWAY) !== RTF_UP_GATEWAY) continue;
    const host = parseKernelIpv4(gateway);
    const metric = Number(metricText);
    if (host !== null && Number.isInteger(metric) && (best === null || metric < best.metric)) best = { host, metric };
  }
  return best?.host ?? null;
}

/** The source address that this machine uses for a host; null if there is no route. */
async function sourceAddressTo(host: string): Promise<string | null> {
  const socket = createSocket('udp4');
  guard(socket);
  try {
    const connected = once(socket, 'connect');
    socket.connect(ANY_PORT, host);
    await connected;
    return socket.address().address;
  } catch {
    return null;
  } finally {
    socket.close();
  }
}

/**
 * Finds the router and this machine's address in its network. Returns null if the route to the Internet does not start
 * at a private IPv4 address: then there is no NAT that could map ports.
 */
export async function findGateway(): Promise<Gateway | null> {
  const routes = await readFile(ROUTES_FILE, 'utf8').catch(() => '');
  const host = parseDefaultGateway(routes);
  const ownHost = await sourceAddressTo(host ?? INTERNET_HOST);
  return ownHost === null || ipScope(ownHost) !== IP_SCOPE.private ? null : { host, ownHost };
}

/* A request to the router over UDP, retransmitted until it is answered. */

/** Port of PCP and NAT-PMP servers (RFC 6887, 19.1). */
export const GATEWAY_PORT = 5351;
/** Maximum number of datagrams to read while waiting for one answer. */
const MAX_DATAGRAMS_PER_REQUEST = 64;

export interface GatewayRequest<T> {
  readonly datagram: Uint8Array;
  /** How long to wait after each transmission, milliseconds. */
  readonly waitsMs: readonly number[];
  /** Parses an answer; undefined if the datagram is something else. Throws the error of a refusal. */
  readonly read: (datagram: Uint8Array) => T | undefined;
}

/**
 * Sends a request. Only datagrams from the router's address are read.
 * @throws SvcError `connect_failed` if the router does not answer or nothing listens there, `cancelled`; errors of
 *   `read`
 */
export function requestGateway<T>(
  clock: Clock,
  router: Address,
  question: GatewayRequest<T>,
  signal: AbortSignal,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = createSocket(router.host.includes(':') ? 'udp6' : 'udp4');
  const [...waits] = question.waitsMs;
  let datagrams = 0;
  let timer = clock.after(0, () => {});
  const fail = (cause?: unknown): void =>
    reject(new SvcError('connect_failed', { message: 'The router does not answer.', cause }));
  const cancel = (): void => reject(abortError(signal));
  const send = (): void => {
    const wait = waits.shift();
    if (wait === undefined) return fail();
    timer = clock.after(wait, send);
    socket.send(question.datagram, (error) => {
      if (error !== null) fail(error);
    });
  };
  socket.on('error', fail);
  socket.on('message', (datagram) => {
    if (++datagrams > MAX_DATAGRAMS_PER_REQUEST) return fail();
    try {
      const answer = question.read(datagram);
      if (answer !== undefined) resolve(answer);
    } catch (error) {
      reject(error);
    }
  });
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  else {
    // Node passes a failed connect to a callback of `connect`, and to `error` without one.
    socket.once('connect', () => {
      if (!signal.aborted) send();
    });
    socket.connect(router.port, router.host);
  }
  return promise.finally(() => {
    timer.cancel();
    signal.removeEventListener('abort', cancel);
    socket.close();
  });
}
