/** Ports of our router that lead to ports of ours, and the ways to ask for them. */
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

/** The router, and where we stand in its network. */
export interface Gateway {
  /** IPv4 address of the router; null where the system does not say. */
  readonly host: string | null;
  /** Our IPv4 address in its network. */
  readonly ownHost: string;
}

/** A UDP port that the router gives us. */
export interface GrantedPort {
  /** Where packets come in, as the router has it: whoever reads it asks how far that reaches. */
  readonly external: Address;
  /** Seconds from now; at least 1. */
  readonly lifetimeS: number;
}

/** A router that grants ports by one of the protocols. */
export interface PortGrantor {
  readonly protocol: MappingProtocol;
  /**
   * Asks for a UDP port, or for more time for one that was granted.
   * @param suggestedPort the outer port that we would like; the router may give another
   * @throws SvcError `connect_failed` where the router does not answer or refuses, `cancelled`
   */
  grant(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<GrantedPort>;
  /**
   * Gives a port back.
   * @throws SvcError as `grant`
   */
  release(internalPort: number, externalPort: number, signal: AbortSignal): Promise<void>;
}

/* Finds the router that this machine sends to what is not near. */

const ROUTES_FILE = '/proc/net/route';
/** Flags of a route: in use, by a router (`linux/route.h`). */
const RTF_UP_GATEWAY = 0x3;
/** Lines of the table that are read. */
const MAX_ROUTES = 4096;
/** An address of the Internet; nothing is sent there: the system only says from where it would be. */
const FAR_HOST = '203.0.113.1';
const ANY_PORT = 9;

/** The IPv4 address in the hexadecimal text of the kernel, which has the order of bytes of the machine. */
function ipv4OfKernel(text: string): string | null {
  if (!/^[0-9A-F]{8}$/.test(text)) return null;
  const bytes = Buffer.from(text, 'hex');
  return ipv4Text(new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? bytes.readUInt32LE() : bytes.readUInt32BE());
}

/** The router of the default route with the least metric in the text of `/proc/net/route`; null without one. */
export function defaultGatewayIn(table: string): string | null {
  let best: { readonly host: string; readonly metric: number } | null = null;
  for (const line of table.split('\n', MAX_ROUTES).slice(1)) {
    const [, destination, gateway = '', flags = '', , , metricText = '', mask] = line.trim().split(/\s+/, 9);
    const isDefault = destination === '00000000' && mask === '00000000';
    if (!isDefault || (Number.parseInt(flags, 16) & RTF_UP_GATEWAY) !== RTF_UP_GATEWAY) continue;
    const host = ipv4OfKernel(gateway);
    const metric = Number(metricText);
    if (host !== null && Number.isInteger(metric) && (best === null || metric < best.metric)) best = { host, metric };
  }
  return best?.host ?? null;
}

/** Our own address on the way to another; null where no way leads there. */
async function ownHostTowards(host: string): Promise<string | null> {
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
 * The router, and our address in its network. Null where we have no private IPv4 address towards the Internet: then
 * there is nothing to translate, and nobody to ask.
 */
export async function findGateway(): Promise<Gateway | null> {
  const routes = await readFile(ROUTES_FILE, 'utf8').catch(() => '');
  const host = defaultGatewayIn(routes);
  const ownHost = await ownHostTowards(host ?? FAR_HOST);
  return ownHost === null || ipScope(ownHost) !== IP_SCOPE.private ? null : { host, ownHost };
}

/* One question to the router by UDP, sent again until the answer comes. */

/** Where routers listen for PCP and NAT-PMP (RFC 6887, 19.1). */
export const GATEWAY_PORT = 5351;
/** Datagrams that are read while one answer is awaited. */
const MAX_DATAGRAMS_PER_QUESTION = 64;

export interface Question<T> {
  readonly datagram: Uint8Array;
  /** How long the answer is awaited after each sending, milliseconds. */
  readonly waitsMs: readonly number[];
  /** Undefined for what is not the answer. Throws what the answer comes to where it is a refusal. */
  readonly read: (datagram: Uint8Array) => T | undefined;
}

/**
 * Asks. Only datagrams from the address that was asked are read.
 * @throws SvcError `connect_failed` for silence and where nothing listens there, `cancelled`; what `read` throws
 */
export function askGateway<T>(clock: Clock, router: Address, question: Question<T>, signal: AbortSignal): Promise<T> {
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
    if (++datagrams > MAX_DATAGRAMS_PER_QUESTION) return fail();
    try {
      const answer = question.read(datagram);
      if (answer !== undefined) resolve(answer);
    } catch (error) {
      reject(error);
    }
  });
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  else
    socket.connect(router.port, router.host, () => {
      if (!signal.aborted) send();
    });
  return promise.finally(() => {
    timer.cancel();
    signal.removeEventListener('abort', cancel);
    socket.close();
  });
}
