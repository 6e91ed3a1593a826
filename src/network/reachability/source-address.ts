/** From which of its addresses this machine writes to another one. */
import { createSocket } from 'node:dgram';
import type { Address } from '../../foundation/address.ts';
import { canonicalIp } from '../../foundation/ip.ts';
import { isPublicIpv6 } from './public-ipv6.ts';

/** A public IPv6 address from which this machine writes to another one, as its routes have it; null for none. Sends nothing. */
export async function publicIpv6To({ host, port }: Address): Promise<string | null> {
  const socket = createSocket('udp6');
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.on('error', reject);
    socket.connect(port, host, resolve);
    await promise;
    const own = canonicalIp(socket.address().address);
    return own !== null && isPublicIpv6({ host: own }) ? own : null;
  } catch {
    return null;
  } finally {
    socket.close();
  }
}
