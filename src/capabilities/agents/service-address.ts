/** Addresses of bound services: what `service_tcp` may hold. */
import { type Address, isLoopbackHost, mayBeThisMachine, parseAddress } from '../../foundation/address.ts';
import { MAX_SERVICE_ADDRESS_CHARS } from '../../foundation/domain/agents.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp } from '../../foundation/ip.ts';

export interface ServiceAddress extends Address {
  readonly scheme: 'tcp' | 'http' | 'https';
  /** HTTP requests come to it, each with who calls. */
  readonly takesCalls: boolean;
  /** TCP connections come to it, whose bytes may say anything: a header that names somebody too. */
  readonly takesTunnels: boolean;
  /** False for `https+insecure`: any certificate is taken. */
  readonly verifyCertificate: boolean;
  /** The canonical text: no blanks, no slash at the end. */
  readonly text: string;
}

function refused(reason: string): SvcError {
  return new SvcError('bad_service_address', {
    message: `A bound service is host:port, tcp://host:port, http://host:port, https://host:port or https+insecure://host:port, with +tcp in front of :// where tunnels may lead to a web service too: ${reason}.`,
    details: { reason },
  });
}

const FORM = /^(?:(?:(tcp)|(https?|https\+insecure)(\+tcp)?):\/\/)?(.*)$/is;

/**
 * Reads where a service is, and which ways lead to it. `http://host:port` and `https://host:port` take calls,
 * `tcp://host:port` takes tunnels, `host:port` both; so do `http+tcp://`, `https+tcp://`. The certificate of
 * `https+insecure://` and `https+insecure+tcp://` is not verified. See docs/decisions/0022.
 * @throws SvcError `bad_service_address`
 */
export function parseServiceAddress(input: string): ServiceAddress {
  const text = input.trim().replace(/\/$/, '');
  if (text.length > MAX_SERVICE_ADDRESS_CHARS) throw refused('the text is too long');
  const [, tcp, web, both, rest = ''] = FORM.exec(text) ?? [];
  const address = parseAddress(rest);
  if (address === null) throw refused('this is not a host and a port');
  if (address.host === '') throw refused('the host is missing');
  if (address.port === 0) throw refused('the port is 1 to 65535');
  const scheme = web?.toLowerCase();
  const prefix = [tcp, web, both]
    .filter((part) => part !== undefined)
    .join('')
    .toLowerCase();
  return {
    ...address,
    scheme: scheme === undefined ? 'tcp' : scheme === 'http' ? 'http' : 'https',
    takesCalls: tcp === undefined,
    takesTunnels: web === undefined || both !== undefined,
    verifyCertificate: scheme !== 'https+insecure',
    text: prefix === '' ? rest : `${prefix}://${rest}`,
  };
}

export interface OwnApi {
  /** Where the daemon's own API listens; null where it has none. An empty host is every interface. */
  api(): Address | null;
  /** The addresses of this machine's interfaces. */
  interfaces(): readonly string[];
  /** Addresses of a host name; rejects where it has none. */
  lookup(host: string): Promise<readonly string[]>;
}

/**
 * Refuses the daemon's own API: calls from the network would otherwise arrive at it as local ones.
 * Every spelling counts: `localhost`, `127.0.0.0/8`, mapped addresses, names that resolve to this machine.
 * @throws SvcError `bad_service_address`
 */
export async function refuseOwnApi(service: Address, own: OwnApi): Promise<void> {
  const api = own.api();
  if (api === null || api.port !== service.port) return;
  const local = new Set(own.interfaces().map(canonicalIp));
  const isOurs = (host: string): boolean => mayBeThisMachine(host) || local.has(canonicalIp(host));
  const isName = canonicalIp(service.host) === null && !isLoopbackHost(service.host);
  const candidates = isName ? await own.lookup(service.host).catch(() => []) : [service.host];
  if (candidates.some(isOurs)) throw refused("this is the daemon's own API address");
}
