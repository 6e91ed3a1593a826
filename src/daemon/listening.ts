/** The addresses on which the daemon listens, according to the configuration. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Address, isLoopbackHost, type NodeContact, parseAddress, parseContact } from '../foundation/address.ts';
import { SvcError } from '../foundation/errors.ts';

function parsed(key: string, text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new SvcError('config_invalid', { details: { key } });
  return address;
}

/** An IPv4 address to bind: all interfaces for an empty host, the first address of a name. */
async function ipv4(key: string, host: string): Promise<string> {
  if (host === '') return '0.0.0.0';
  if (isIP(host) === 4) return host;
  try {
    const { address, family } = await lookup(host, { family: 4 });
    // An IPv6 address is returned unchanged, regardless of the requested family.
    if (family === 4) return address;
    throw new RangeError('an IPv6 address');
  } catch (error) {
    throw new SvcError('config_invalid', {
      message: `The host of ${key} has no IPv4 address, which the record network requires.`,
      details: { key },
      cause: error,
    });
  }
}

/** Listen address of the record network (UDP, IPv4). */
export async function dhtAddress(listenAddr: string): Promise<Address> {
  const { host, port } = parsed('listen_addr', listenAddr);
  return { host: await ipv4('listen_addr', host), port };
}

/** Listen address of QUIC: as configured, or on the port after the record network's port. */
export async function quicAddress(quicListenAddr: string, dht: Address): Promise<Address> {
  if (quicListenAddr !== '') return parsed('quic_listen_addr', quicListenAddr);
  return { host: dht.host === '0.0.0.0' ? '' : dht.host, port: dht.port === 0 ? 0 : dht.port + 1 };
}

/**
 * Whether to request port mappings from the router. Not if the owner disabled it, or if the daemon only listens on
 * loopback.
 */
export function needsPortMapping(config: { readonly disable_upnp: boolean }, listens: readonly Address[]): boolean {
  return !config.disable_upnp && !listens.some(({ host }) => isLoopbackHost(host));
}

/**
 * The bootstrap nodes.
 * @throws SvcError `config_invalid`
 */
export function bootstrapNodes(texts: readonly string[]): NodeContact[] {
  return texts.map((text) => {
    const contact = parseContact(text);
    if (contact === null) throw new SvcError('config_invalid', { details: { key: 'bootstrap' } });
    return contact;
  });
}
