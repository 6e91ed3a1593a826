/** Finds the router that this machine sends to what is not near. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { IP_SCOPE, ipScope, ipv4Text } from '../../../foundation/ip.ts';
import { guard } from '../../../foundation/stream-listeners.ts';
import type { Gateway } from './types.ts';

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
