/** Addresses of bound services: what `service_tcp` may hold. */
import { type Address, isLoopbackHost, mayBeThisMachine, parseAddress } from '../../foundation/address.ts';
import { MAX_SERVICE_ADDRESS_CHARS } from '../../foundation/domain/agents.ts';
import { SvcError } from '../../foundation/errors.ts';
import { canonicalIp } from '../../foundation/ip.ts';

export type ServiceScheme = 'tcp' | 'http' | 'https';

export interface ServiceAddress extends Address {
  readonly scheme: ServiceScheme;
  /** False for `https+insecure`: any certificate is taken. */
  readonly verifyCertificate: boolean;
  /** The canonical text: no blanks, no slash at the end. */
  readonly text: string;
}

function refused(reason: string): SvcError {
  return new SvcError('bad_service_address', {
    message: `A bound service is host:port, http://host:port, https://host:port or https+insecure://host:port: ${reason}.`,
    details: { reason },
  });
}

/**
 * Reads `host:port`, `http://host:port`, `https://host:port`, or `https+insecure://host:port`, whose
 * certificate is not verified.
 * @throws SvcError `bad_service_address`
 */
export function parseServiceAddress(input: string): ServiceAddress {
  const text = input.trim().replace(/\/$/, '');
  if (text.length > MAX_SERVICE_ADDRESS_CHARS) throw refused('the text is too long');
  const [, scheme, rest = ''] = /^(?:(https?|https\+insecure):\/\/)?(.*)$/is.exec(text) ?? [];
  const address = parseAddress(rest);
  if (address === null) throw refused('this is not a host and a port');
  if (address.host === '') throw refused('the host is missing');
  if (address.port === 0) throw refused('the port is 1 to 65535');
  const lower = scheme?.toLowerCase();
  return {
    ...address,
    scheme: lower === undefined ? 'tcp' : lower === 'http' ? 'http' : 'https',
    verifyCertificate: lower !== 'https+insecure',
    text: lower === undefined ? rest : `${lower}://${rest}`,
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
