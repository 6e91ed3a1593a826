/** The addresses that the configuration asks the daemon to listen on. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Address, isLoopbackHost, parseAddress } from '../foundation/address.ts';
import { type NodeContact, parseContact } from '../foundation/contact.ts';
import { SvcError } from '../foundation/errors.ts';

function parsed(key: string, text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new SvcError('config_invalid', { details: { key } });
  return address;
}

/** An IPv4 address to bind: every interface for an empty host, the first address of a name. */
async function ipv4(key: string, host: string): Promise<string> {
  if (host === '') return '0.0.0.0';
  if (isIP(host) === 4) return host;
  try {
    const { address, family } = await lookup(host, { family: 4 });
    // An IPv6 address is given back as it is, whatever family was asked for.
    if (family === 4) return address;
    throw new RangeError('an IPv6 address');
  } catch (error) {
    throw new SvcError('config_invalid', {
      message: `The host of ${key} has no IPv4 address: the record network speaks IPv4.`,
      details: { key },
      cause: error,
    });
  }
}

/** Where the record network listens (UDP, IPv4). */
export async function dhtAddress(listenAddr: string): Promise<Address> {
  const { host, port } = parsed('listen_addr', listenAddr);
  return { host: await ipv4('listen_addr', host), port };
}

/** Where QUIC listens: as configured, or at the port after the record network's. */
export async function quicAddress(quicListenAddr: string, dht: Address): Promise<Address> {
  if (quicListenAddr !== '') return parsed('quic_listen_addr', quicListenAddr);
  return { host: dht.host === '0.0.0.0' ? '' : dht.host, port: dht.port === 0 ? 0 : dht.port + 1 };
}

/** Whether the router is asked to lead ports here: not where the owner forbids it, nor for what only this machine reaches. */
export function asksRouter(config: { readonly disable_upnp: boolean }, listens: readonly Address[]): boolean {
  return !config.disable_upnp && !listens.some(({ host }) => isLoopbackHost(host));
}

/** The nodes to start from. @throws SvcError `config_invalid` */
export function bootstrapNodes(texts: readonly string[]): NodeContact[] {
  return texts.map((text) => {
    const contact = parseContact(text);
    if (contact === null) throw new SvcError('config_invalid', { details: { key: 'bootstrap' } });
    return contact;
  });
}
